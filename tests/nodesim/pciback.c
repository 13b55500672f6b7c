/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The slots of pciback: the file "slots" in the directory of the driver. A slot is a whole address; the wildcards of
 * the kernel's str_to_slot() are refused with EINVAL.
 */

#include <errno.h>
#include <string.h>

#include "device.h"
#include "pciback.h"

#define PAGE_SIZE 4096

#define DIRECTORY "sys/bus/pci/drivers/" PCIBACK

void pciback_make(Node *dir) {
        node_write(dir, "new_slot", "%s", "");
        node_write(dir, "remove_slot", "%s", "");
        (void) node_default(dir, "slots", "");
}

/* Finds the line of the slot in the list, or NULL. */
static char *find(char *slots, const char *address) {
        char *line = slots;

        while (line && *line && strncmp(line, address, strlen(address)) != 0) {
                line = strchr(line, '\n');
                line += line != NULL;
        }
        return line && *line ? line : NULL;
}

static char *read_slots(const Sim *sim) {
        const Node *slots = node_at(sim->root, DIRECTORY "/slots");

        return xstrdup(slots && slots->data ? slots->data : "");
}

bool pciback_has(const Sim *sim, const char *address) {
        _cleanup_free_ char *slots = read_slots(sim);

        return find(slots, address);
}

void pciback_add(Sim *sim, const char *address) {
        _cleanup_free_ char *slots = read_slots(sim);

        if (!find(slots, address))
                node_write(node_at(sim->root, DIRECTORY), "slots", "%s%s\n", slots, address);
}

/* slots_show() of the kernel cuts the list at the size of a page, with a NUL. */
size_t pciback_shown_size(const Node *file) {
        const Node *dir = file->parent;
        bool is_slots = dir && strcmp(file->name, "slots") == 0 && strcmp(dir->name, PCIBACK) == 0;

        return is_slots && file->size >= PAGE_SIZE ? PAGE_SIZE - 1 : file->size;
}

static char *parse(const char *value) {
        return xstrndup(value, strcspn(value, "\n"));
}

int pciback_new_slot(Sim *sim, Node *dir, const char *value) {
        _cleanup_free_ char *address = parse(value);

        (void) dir;
        if (!address_is_valid(address))
                return -EINVAL;
        pciback_add(sim, address);
        return 0;
}

int pciback_remove_slot(Sim *sim, Node *dir, const char *value) {
        _cleanup_free_ char *address = parse(value), *slots = read_slots(sim);
        char *line = find(slots, address);

        if (!address_is_valid(address))
                return -EINVAL;
        if (!line)
                return -ENOENT;
        memmove(line, line + strlen(address) + 1, strlen(line + strlen(address) + 1) + 1);
        node_write(dir, "slots", "%s", slots);
        return 0;
}
