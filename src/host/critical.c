/* SPDX-License-Identifier: GPL-2.0-or-later */

/* From what the host uses down to the PCI functions that carry it: marking, and what all kinds of use share. */

#include <errno.h>
#include <fcntl.h>

#include "critical-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

static PciDevice *find_unmarked(Inventory *inv, PciAddress address) {
        const PciDevice *found = inventory_find(inv, address);
        PciDevice *dev = found ? inv->devices + inventory_device_index(inv, found) : NULL;

        return dev && !dev->critical ? dev : NULL;
}

static int mark(Inventory *inv, PciAddress address, const char *chain) {
        PciDevice *dev = find_unmarked(inv, address);

        return dev ? string_replace(&dev->critical, "%s <- %s", PCI_ADDRESS_STR(address), chain) : 0;
}

bool critical_next_function(const char **path, PciAddress *ret) {
        while (**path) {
                char name[PCI_ADDRESS_STRING_MAX];
                const char *component = *path;
                size_t n = strcspn(component, "/");

                *path += n + (component[n] == '/');
                if (n >= sizeof(name))
                        continue;
                memcpy(name, component, n);
                name[n] = '\0';
                if (pci_address_parse(name, ret) >= 0)
                        return true;
        }
        return false;
}

/* A VMD controller is an endpoint like any other, and has a domain of disks below it that no inventory lists. */
static int mark_above(const Critical *c, const char *path, PciAddress address, const char *chain) {
        _cleanup_free_ char *longer = NULL;
        PciAddress above;
        int r = string_replace(&longer, "%s <- %s", PCI_ADDRESS_STR(address), chain);

        while (r >= 0 && critical_next_function(&path, &above))
                if (!pci_address_equal(above, address))
                        r = mark(c->inv, above, longer);
        return r;
}

int critical_mark_function(const Critical *c, const char *path, PciAddress address, const char *chain) {
        const PciDevice *dev = inventory_find(c->inv, address);
        int r;

        if (dev && dev->critical)
                return 0;
        r = mark(c->inv, address, chain);
        if (r >= 0)
                r = mark_above(c, path, address, chain);
        return r >= 0 && dev && dev->type == PCI_TYPE_VF ? mark(c->inv, dev->physfn, dev->critical) : MIN(r, 0);
}

typedef struct Taker {
        const Critical *c;
        int (*take)(const Critical *c, char *line);
} Taker;

static int take_line(char *line, void *userdata) {
        const Taker *taker = userdata;

        return MIN(taker->take(taker->c, line), 0);
}

int critical_lines(const Critical *c, const char *path, bool optional, int (*take)(const Critical *, char *)) {
        Taker taker = { c, take };
        /* O_NONBLOCK: opening a FIFO would wait for a writer. */
        int fd = sysfs_open(c->fs, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
        int r = fd < 0 ? fd : read_lines_fd(fd, take_line, &taker);

        if (r >= 0 || r == -ENOMEM || (r == -ENOENT && optional))
                return r == -ENOENT ? 0 : r;
        /* Even when it is not there. */
        return string_replace(&c->inv->critical_unknown, "%s cannot be read (%s).", path, strerror(-r));
}

/* Not there, not any more, or under a name that nothing can have. */
static bool is_absent(int error) {
        return error == -ENOENT || error == -ENOTDIR || error == -ENODEV || error == -ENXIO || error == -ENAMETOOLONG;
}

int critical_unreadable(const Critical *c, const char *path, int error) {
        if (error == -ENOMEM)
                return error;
        if (is_absent(error) || c->inv->critical_unknown)
                return 0;
        return string_replace(&c->inv->critical_unknown, "%s cannot be read (%s).",
                              text_is_clean(path) ? path : QUOTABLE(path), strerror(-error));
}

int critical_list(const Critical *c, const char *path, char ***ret, size_t *ret_n) {
        _cleanup_close_ int fd = sysfs_open(c->fs, path, O_RDONLY | O_DIRECTORY);
        int r = fd < 0 ? fd : list_dir_at(fd, ".", CRITICAL_ENTRIES_MAX, ret, ret_n);

        if (r >= 0)
                return r;
        *ret = NULL;
        *ret_n = 0;
        return critical_unreadable(c, path, r);
}

int critical_realpath(const Critical *c, const char *path, char **ret) {
        int r;

        *ret = NULL;
        r = sysfs_realpath(c->fs, path, ret);
        return r < 0 ? critical_unreadable(c, path, r) : 0;
}

void critical_unescape(char *s) {
        char *to = s;

        for (const char *from = s; *from; to++) {
                if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
                    from[3] >= '0' && from[3] <= '7') {
                        *to = (char) ((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
                        from += 4;
                } else
                        *to = *from++;
        }
        *to = '\0';
}

int critical_mark(const Sysfs *fs, const Config *config, Inventory *inv) {
        const Critical c = { .fs = fs, .config = config, .inv = inv };
        int r;

        (void) string_copy(&inv->critical_unknown, NULL);
        for (size_t i = 0; i < inv->n_devices; i++) {
                (void) string_copy(&inv->devices[i].critical, NULL);
                (void) string_copy(&inv->devices[i].console, NULL);
        }
        r = critical_mark_storage(&c);
        if (r >= 0)
                r = critical_mark_network(&c);
        return r < 0 ? r : critical_mark_display(&c);
}
