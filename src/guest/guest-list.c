/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "guest/guest-list.h"

#include <errno.h>

#include "model/pciaddr.h"
#include "util/fileio.h"
#include "util/strings.h"

static void guest_done(Guest *g) {
        free(g->domain);
        (void) free_names(g->devices, g->n_devices);
        free(g->places);
        *g = (Guest) { 0 };
}

void guest_list_done(GuestList *l) {
        for (size_t i = 0; i < l->n; i++)
                guest_done(&l->guests[i]);
        free(l->guests);
        free(l->reason);
        *l = (GuestList) { 0 };
}

const Guest *guest_list_find(const GuestList *l, const char *uuid) {
        for (size_t i = 0; i < l->n; i++)
                if (streq(l->guests[i].uuid, uuid))
                        return &l->guests[i];
        return NULL;
}

const Guest *guest_list_find_device(const GuestList *l, const char *device) {
        for (size_t i = 0; i < l->n; i++)
                for (size_t j = 0; j < l->guests[i].n_devices; j++)
                        if (streq(l->guests[i].devices[j], device))
                                return &l->guests[i];
        return NULL;
}

GuestPlace guest_find_place(const Guest *g, const char *device) {
        for (size_t i = 0; i < g->n_devices; i++)
                if (streq(g->devices[i], device))
                        return g->places[i];
        return (GuestPlace) { 0 };
}

static void remove_guest(GuestList *l, size_t i) {
        guest_done(&l->guests[i]);
        l->guests[i] = l->guests[--l->n];
}

static bool is_uuid(const char *s) {
        return s && text_is_uuid(s);
}

static int begin_list(GuestList *l, char *rest) {
        for (size_t i = 0; i < l->n; i++)
                l->guests[i].listed = false;
        return GUEST_RECORD_LIST;
}

static int read_device(char *device, Guest *g) {
        const char *name = strsep(&device, " ");
        GuestPlace place = { 0 };
        PciAddress a;

        if (g->n_devices >= GUEST_DEVICES_MAX || (!is_uuid(name) && pci_address_parse(name, &a) < 0) ||
            (device && guest_place_parse(device, &place) < 0))
                return -EBADMSG;
        if (ARRAY_RESERVE(g->places, g->n_devices) < 0 || ARRAY_RESERVE(g->devices, g->n_devices) < 0 ||
            !(g->devices[g->n_devices] = strdup(is_uuid(name) ? name : PCI_ADDRESS_STR(a))))
                return -ENOMEM;
        g->places[g->n_devices++] = place;
        return 0;
}

static int read_guest(char *rest, Guest *ret) {
        const char *uuid = strsep(&rest, "\n"), *state = rest ? strsep(&rest, "\n") : NULL;
        const char *name = rest ? strsep(&rest, "\n") : NULL;

        if (!is_uuid(uuid) || !name || !*name || (!streq(state, "running") && !streq(state, "starting")))
                return -EBADMSG;
        memcpy(ret->uuid, uuid, GUEST_UUID_SIZE);
        ret->starting = streq(state, "starting");
        ret->listed = true;
        while (rest) {
                int r = read_device(strsep(&rest, "\n"), ret);

                if (r < 0)
                        return r;
        }
        return string_copy(&ret->domain, name);
}

static int set_guest(GuestList *l, char *rest) {
        _cleanup_(guest_done) Guest guest = { 0 };
        int r = read_guest(rest, &guest);
        const Guest *known;

        if (r < 0)
                return r;
        if (ARRAY_RESERVE(l->guests, l->n) < 0)
                return -ENOMEM;
        known = guest_list_find(l, guest.uuid);
        if (!known && l->n >= GUESTS_MAX)
                return -EBADMSG;
        if (known)
                remove_guest(l, (size_t) (known - l->guests));
        l->guests[l->n++] = guest;
        guest = (Guest) { 0 };
        return GUEST_RECORD_DOMAIN;
}

static int end_guest(GuestList *l, char *rest) {
        const Guest *known;

        if (!is_uuid(rest))
                return -EBADMSG;
        known = guest_list_find(l, rest);
        if (known)
                remove_guest(l, (size_t) (known - l->guests));
        return GUEST_RECORD_ENDED;
}

/* Reads the version of a program from a word, "libvirt 11003000". Returns false if the word is no version of that
 * program. */
static bool read_version(const char *word, const char *program, unsigned *ret) {
        size_t n = strlen(program);
        uint64_t version;

        if (strncmp(word, program, n) != 0 || word[n] != ' ' || parse_unsigned(word + n + 1, UINT32_MAX, &version) < 0)
                return false;
        *ret = (unsigned) version;
        return true;
}

/* Takes the word "sev-snp" (libvirt can run such guests) or "sev-snp-firmware" (there is a firmware for them), and
 * those of the other kinds of confidential guests. Returns false for any other word. */
static bool read_security(const char *word, LibvirtFeatures *f) {
        for (Confidential c = CONFIDENTIAL_NONE + 1; c < _CONFIDENTIAL_MAX; c++) {
                const char *name = confidential_libvirt_name(c);
                bool *has = streq(word, name) ? &f->security[c] : &f->firmware[c];

                if (strncmp(word, name, strlen(name)) != 0 ||
                    (word[strlen(name)] && !streq(word + strlen(name), FIRMWARE_SUFFIX)))
                        continue;
                *has = true;
                return true;
        }
        return false;
}

static int set_features(GuestList *l, char *rest) {
        LibvirtFeatures f = { .known = true };
        const char *word;

        while (rest && (word = strsep(&rest, "\n"))) {
                if (streq(word, "maxphysaddr"))
                        f.maxphysaddr = true;
                else if (streq(word, "driver-model"))
                        f.driver_model = true;
                else if (streq(word, "iommufd"))
                        f.iommufd = true;
                else if (streq(word, "acpi-nodeset"))
                        f.acpi_nodeset = true;
                else if (streq(word, "fwcfg"))
                        f.fwcfg = true;
                else if (!read_security(word, &f) && !read_version(word, "libvirt", &f.libvirt) &&
                         !read_version(word, "qemu", &f.qemu))
                        return -EBADMSG;
        }
        l->features = f;
        return GUEST_RECORD_FEATURES;
}

static int end_list(GuestList *l, char *rest) {
        for (size_t i = l->n; i-- > 0;)
                if (!l->guests[i].listed)
                        remove_guest(l, i);
        return GUEST_RECORD_COMPLETE;
}

static int set_reason(GuestList *l, char *rest) {
        if (!rest || string_replace(&l->reason, "%s", QUOTABLE(rest)) < 0)
                return rest ? -ENOMEM : -EBADMSG;
        return GUEST_RECORD_FAILED;
}

int guest_list_apply(GuestList *l, int kind, char *text) {
        static int (*const apply[])(GuestList *l, char *rest) = {
                [GUEST_RECORD_LIST] = begin_list,   [GUEST_RECORD_DOMAIN] = set_guest,
                [GUEST_RECORD_ENDED] = end_guest,   [GUEST_RECORD_FEATURES] = set_features,
                [GUEST_RECORD_COMPLETE] = end_list, [GUEST_RECORD_FAILED] = set_reason,
        };

        return kind >= 0 && kind < (int) ELEMENTSOF(apply) ? apply[kind](l, *text ? text : NULL) : -EBADMSG;
}
