/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * pci.ids has 36,000 lines and a node has a few dozen different ids. One pass reads the lines of these; libpci would
 * copy every entry into a table first, which takes ten times as long.
 */

#include "pciids.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "util/fileio.h"
#include "util/strings.h"

#define FILE_MAX   (64U * 1024U * 1024U)
#define COMPRESSED "\x1f\x8b" /* the first bytes of a gzip file */
#define SUFFIX     ".gz"

typedef struct Name {
        uint32_t id; /* vendor << 16 | device */
        char *text;  /* NULL until it is found */
} Name;

typedef struct NameList {
        Name *names; /* ascending by id, each once */
        size_t n;
} NameList;

static void cleanup_name_list(NameList *l) {
        for (size_t i = 0; i < l->n; i++)
                free(l->names[i].text);
        free(l->names);
}

static int name_compare(const void *a, const void *b) {
        uint32_t x = ((const Name *) a)->id, y = ((const Name *) b)->id;

        return (x > y) - (x < y);
}

static int vendor_compare(const void *a, const void *b) {
        uint32_t x = ((const Name *) a)->id >> 16, y = ((const Name *) b)->id >> 16;

        return (x > y) - (x < y);
}

static uint32_t make_id(uint16_t vendor, uint16_t device) {
        return (uint32_t) vendor << 16 | device;
}

/* Skips an id that equals the previous one, because the VFs of a PF follow each other. */
static void add_wanted(NameList *l, size_t *n, uint32_t id) {
        if (*n == 0 || l->names[*n - 1].id != id)
                l->names[(*n)++].id = id;
}

static int list_wanted(const Inventory *inv, NameList *l) {
        size_t n = 0;

        l->names = calloc(2 * inv->n_devices + 1, sizeof(*l->names));
        if (!l->names)
                return -ENOMEM;
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];

                if (dev->named)
                        continue;
                add_wanted(l, &n, make_id(dev->vendor, dev->device));
                if (dev->vf_device)
                        add_wanted(l, &n, make_id(dev->vendor, dev->vf_device));
        }
        qsort(l->names, n, sizeof(*l->names), name_compare);
        for (size_t i = 0; i < n; i++)
                if (i == 0 || l->names[i].id != l->names[l->n - 1].id)
                        l->names[l->n++].id = l->names[i].id;
        return 0;
}

/* "10de  NVIDIA Corporation": the id at the beginning of line; false when line is something else. */
static bool parse_id(const char *line, uint16_t *ret) {
        char *end;

        if (!isxdigit((unsigned char) line[0]) || !isxdigit((unsigned char) line[1]))
                return false;
        *ret = (uint16_t) strtoul(line, &end, 16);
        return end == line + 4 && (*end == ' ' || *end == '\t');
}

/* The name behind the id. Cuts line. */
static const char *parse_name(char *line) {
        char *name = line + 4 + strspn(line + 4, " \t"), *end = name + strcspn(name, "\r");

        if (end > name && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
        *end = '\0';
        return name;
}

static Name *find_name(const NameList *l, uint16_t vendor, uint16_t device) {
        const Name key = { .id = make_id(vendor, device) };

        return bsearch(&key, l->names, l->n, sizeof(*l->names), name_compare);
}

/* The first entry of an id counts. */
static int take_device(const NameList *l, uint16_t vendor, const char *vendor_name, char *line) {
        uint16_t device;
        Name *found = parse_id(line, &device) ? find_name(l, vendor, device) : NULL;
        const char *name = found && !found->text ? parse_name(line) : "";

        if (!*name || !text_is_clean(vendor_name) || !text_is_clean(name))
                return 0;
        return string_replace(&found->text, "%s %s", vendor_name, name);
}

/* NULL: none of its devices is wanted. */
static const char *take_vendor(const NameList *l, char *line, uint16_t *ret) {
        Name key = { 0 };

        if (!parse_id(line, ret))
                return NULL;
        key.id = make_id(*ret, 0);
        return bsearch(&key, l->names, l->n, sizeof(*l->names), vendor_compare) ? parse_name(line) : NULL;
}

static int find_names(const NameList *l, char *text) {
        const char *vendor_name = NULL;
        uint16_t vendor = 0;
        int r = 0;

        for (char *line = text, *next; r >= 0 && *line; line = next) {
                char *newline = strchrnul(line, '\n');

                next = newline + (*newline == '\n');
                if (newline == line || *line == '#' || (*line == '\t' && (line[1] == '\t' || !vendor_name)))
                        continue;
                *newline = '\0';
                if (*line == '\t')
                        r = take_device(l, vendor, vendor_name, line + 1);
                else
                        vendor_name = take_vendor(l, line, &vendor);
        }
        return r;
}

static const char *name_of(const NameList *l, uint16_t vendor, uint16_t device) {
        const Name *found = find_name(l, vendor, device);

        return found ? found->text : NULL;
}

static int set_names(const NameList *l, Inventory *inv) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                PciDevice *dev = &inv->devices[i];
                int r;

                if (dev->named)
                        continue;
                r = string_copy(&dev->name, name_of(l, dev->vendor, dev->device));
                if (r >= 0 && dev->vf_device)
                        r = string_copy(&dev->vf_name, name_of(l, dev->vendor, dev->vf_device));
                if (r < 0)
                        return r;
                dev->named = true;
        }
        return 0;
}

static int read_text(const char *file, char **ret) {
        size_t n = strlen(file), suffix = strlen(SUFFIX);
        int r = read_file_at(AT_FDCWD, file, FILE_MAX, ret, NULL);

        if (r == -ENOENT && n > suffix && streq(file + n - suffix, SUFFIX)) {
                _cleanup_free_ char *plain = strndup(file, n - suffix);

                r = plain ? read_file_at(AT_FDCWD, plain, FILE_MAX, ret, NULL) : -ENOMEM;
        }
        if (r < 0)
                return r;
        return strncmp(*ret, COMPRESSED, strlen(COMPRESSED)) == 0 ? -EBADMSG : 0;
}

int pciids_name_devices(const char *file, Inventory *inv) {
        __attribute__((cleanup(cleanup_name_list))) NameList wanted = { 0 };
        _cleanup_free_ char *text = NULL;
        int r = list_wanted(inv, &wanted);

        if (r < 0 || wanted.n == 0)
                return r;
        r = read_text(file, &text);
        if (r >= 0)
                r = find_names(&wanted, text);
        return r < 0 ? r : set_names(&wanted, inv);
}
