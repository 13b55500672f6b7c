/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "ledger/guestplace.h"

#include <errno.h>
#include <stdio.h>

#include "model/inventory.h"
#include "util/strings.h"

/* Parses one part of a path, n bytes long, as a PCI address. */
static bool parse_part(const char *part, size_t n, PciAddress *ret) {
        return pci_address_parse_part(part, n, ret) >= 0 && ret->instance == 0;
}

bool guest_path_is_valid(const char *path) {
        const char *at = strchr(path, '/');
        PciAddress a;

        if (!*path)
                return true;
        if (!at || strlen(path) >= GUEST_PATH_MAX || pci_path_host_length(path) != (size_t) (at - path))
                return false;
        while (at) {
                const char *part = at + 1;

                at = strchr(part, '/');
                if (!parse_part(part, at ? (size_t) (at - part) : strlen(part), &a))
                        return false;
        }
        return true;
}

bool guest_place_equal(const GuestPlace *a, const GuestPlace *b) {
        return a->known == b->known && pci_address_equal(a->address, b->address) && streq(a->path, b->path);
}

PciAddress guest_path_seen(const char *path) {
        const char *last = strrchr(path, '/');
        PciAddress a = { 0 };

        return last && parse_part(last + 1, strlen(last + 1), &a) ? a : (PciAddress) { 0 };
}

const char *guest_place_format(const GuestPlace *p, char buf[static GUEST_PLACE_TEXT_MAX]) {
        (void) snprintf(buf, GUEST_PLACE_TEXT_MAX, "%s%s%s", PCI_ADDRESS_STR(p->address), *p->path ? " " : "", p->path);
        return buf;
}

int guest_place_parse(const char *text, GuestPlace *ret) {
        const char *space = strchr(text, ' '), *path = space ? space + 1 : "";
        GuestPlace p = { .known = true };

        if (!parse_part(text, space ? (size_t) (space - text) : strlen(text), &p.address) ||
            !guest_path_is_valid(path) || (space && !*path))
                return -EINVAL;
        (void) stpcpy(p.path, path);
        *ret = p;
        return 0;
}
