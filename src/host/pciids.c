/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * pci.ids has 36,000 lines, and a node has a few dozen different ids. One pass reads the lines of these ids; libpci
 * would first copy every entry into a table, which takes ten times as long. A device newer than the file is named by
 * its vendor and its class.
 */

#include "pciids.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "util/fileio.h"
#include "util/strings.h"

#define FILE_MAX   (64U * 1024U * 1024U)
#define COMPRESSED "\x1f\x8b" /* how a gzip file begins */
#define SUFFIX     ".gz"

typedef struct Name {
        uint32_t id;
        char *text; /* NULL: not found yet */
} Name;

typedef struct NameList {
        Name *names; /* ascending by id, without duplicates */
        size_t n;
} NameList;

typedef struct Wanted {
        NameList devices; /* ids are vendor << 16 | device */
        NameList vendors;
        NameList classes; /* ids are class and subclass: 0x0302 */
} Wanted;

static void name_list_done(NameList *l) {
        for (size_t i = 0; i < l->n; i++)
                free(l->names[i].text);
        free(l->names);
}

static void wanted_done(Wanted *w) {
        name_list_done(&w->devices);
        name_list_done(&w->vendors);
        name_list_done(&w->classes);
}

static int name_compare(const void *a, const void *b) {
        uint32_t x = ((const Name *) a)->id, y = ((const Name *) b)->id;

        return (x > y) - (x < y);
}

static uint32_t make_id(uint16_t vendor, uint16_t device) {
        return (uint32_t) vendor << 16 | device;
}

/* Adds an id whose name is wanted, unless the list ends with the same id, as with VFs of one PF. */
static void add_wanted(NameList *l, uint32_t id) {
        if (l->n == 0 || l->names[l->n - 1].id != id)
                l->names[l->n++].id = id;
}

static void sort_wanted(NameList *l) {
        size_t n = l->n;

        qsort(l->names, n, sizeof(*l->names), name_compare);
        l->n = 0;
        for (size_t i = 0; i < n; i++)
                add_wanted(l, l->names[i].id);
}

static int list_wanted(const Inventory *inv, Wanted *w) {
        w->devices.names = calloc(2 * inv->n_devices + 1, sizeof(Name));
        w->vendors.names = calloc(inv->n_devices + 1, sizeof(Name));
        w->classes.names = calloc(inv->n_devices + 1, sizeof(Name));
        if (!w->devices.names || !w->vendors.names || !w->classes.names)
                return -ENOMEM;
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];

                if (dev->named)
                        continue;
                add_wanted(&w->devices, make_id(dev->vendor, dev->device));
                if (dev->vf_device)
                        add_wanted(&w->devices, make_id(dev->vendor, dev->vf_device));
                add_wanted(&w->vendors, dev->vendor);
                add_wanted(&w->classes, dev->class >> 8);
        }
        sort_wanted(&w->devices);
        sort_wanted(&w->vendors);
        sort_wanted(&w->classes);
        return 0;
}

static Name *find_name(const NameList *l, uint32_t id) {
        const Name key = { .id = id };

        return bsearch(&key, l->names, l->n, sizeof(*l->names), name_compare);
}

static const char *name_of(const NameList *l, uint32_t id) {
        const Name *found = find_name(l, id);

        return found ? found->text : NULL;
}

/* Parses the id at the beginning of a line such as "10de  NVIDIA Corporation". Returns false when the line does not
 * begin with an id of so many digits. */
static bool parse_id(const char *line, size_t digits, uint32_t *ret) {
        char *end;

        if (!isxdigit((unsigned char) line[0]) || !isxdigit((unsigned char) line[1]))
                return false;
        *ret = (uint32_t) strtoul(line, &end, 16);
        return end == line + digits && (*end == ' ' || *end == '\t');
}

/* Sets wanted->text to `vendor`, which may be "", and the name in `text`, the rest of the line after the id. Does
 * nothing if `wanted` is NULL or has a text already, because the first entry of an id counts. Modifies `text`. */
static int take_name(Name *wanted, const char *vendor, char *text) {
        char *name = text + strspn(text, " \t"), *end = name + strcspn(name, "\r");

        if (!wanted || wanted->text)
                return 0;
        if (end > name && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
        *end = '\0';
        if (!*name || !text_is_clean(name))
                return 0;
        return string_replace(&wanted->text, "%s%s%s", vendor, *vendor ? " " : "", name);
}

/* The vendor or class to which the following lines belong. */
typedef struct Heading {
        const NameList *entries; /* where ids of the lines are looked up; NULL: none is wanted */
        uint32_t id;             /* added to the id in a line */
        size_t digits;
        const char *vendor; /* "" for a class */
} Heading;

/* Takes a line such as "10de  NVIDIA Corporation" or "C 03  Display controller". */
static int take_heading(const Wanted *w, char *line, Heading *h) {
        Name *vendor;
        uint32_t id;
        int r;

        *h = (Heading) { 0 };
        if (line[0] == 'C' && line[1] == ' ' && parse_id(line + 2, 2, &id)) {
                *h = (Heading) { &w->classes, id << 8, 2, "" };
                return 0;
        }
        vendor = parse_id(line, 4, &id) ? find_name(&w->vendors, id) : NULL;
        r = take_name(vendor, "", line + 4);
        if (vendor && vendor->text)
                *h = (Heading) { &w->devices, id << 16, 4, vendor->text };
        return r;
}

static int take_entry(const Heading *h, char *line) {
        uint32_t id;

        return parse_id(line, h->digits, &id)
                       ? take_name(find_name(h->entries, h->id | id), h->vendor, line + h->digits)
                       : 0;
}

static int find_names(const Wanted *w, char *text) {
        Heading heading = { 0 };
        int r = 0;

        for (char *line = text, *next; *line; line = next) {
                char *newline = strchrnul(line, '\n');

                next = newline + (*newline == '\n');
                if (newline == line || *line == '#' || (*line == '\t' && (line[1] == '\t' || !heading.entries)))
                        continue;
                *newline = '\0';
                r = *line == '\t' ? take_entry(&heading, line + 1) : take_heading(w, line, &heading);
                if (r < 0)
                        return r;
        }
        return r;
}

int pciids_describe(const PciDevice *dev, uint16_t device, const char *vendor, const char *class, char **ret) {
        if (dev->vendor == 0 || (!vendor && !class))
                return string_copy(ret, NULL);
        return string_replace(ret, "%s%s%s [%04x:%04x]", vendor ?: "", vendor ? " " : "", class ?: "Device",
                              dev->vendor, device);
}

static int set_name(const Wanted *w, const PciDevice *dev, uint16_t device, char **ret) {
        const char *name = name_of(&w->devices, make_id(dev->vendor, device));

        return name ? string_copy(ret, name)
                    : pciids_describe(dev, device, name_of(&w->vendors, dev->vendor),
                                      name_of(&w->classes, dev->class >> 8), ret);
}

static int set_names(const Wanted *w, Inventory *inv) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                PciDevice *dev = &inv->devices[i];
                int r;

                if (dev->named)
                        continue;
                r = set_name(w, dev, dev->device, &dev->name);
                if (r < 0)
                        return r;
                r = dev->vf_device ? set_name(w, dev, dev->vf_device, &dev->vf_name) : 0;
                if (r < 0)
                        return r;
                dev->named = true;
        }
        return 0;
}

static int read_ids_file(const char *file, char **ret) {
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
        __attribute__((cleanup(wanted_done))) Wanted wanted = { 0 };
        _cleanup_free_ char *text = NULL;
        int r = list_wanted(inv, &wanted);

        if (r < 0 || wanted.devices.n == 0)
                return r;
        r = read_ids_file(file, &text);
        if (r < 0)
                return r;
        r = find_names(&wanted, text);
        return r < 0 ? r : set_names(&wanted, inv);
}
