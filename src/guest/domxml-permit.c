/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Refuses a template that may give the guest a device of the host, or memory: both come from the allocation only. The
 * lists name the elements that a template may have. An element that a later libvirt adds is refused until it is listed.
 * A path may be in any element (guest/domain-paths.h). Block devices of disks and shared host networks are permitted,
 * because passthroughd does not allocate them.
 */

#include <ctype.h>
#include <errno.h>

#include "domxml-internal.h"
#include "guest/domain-paths.h"
#include "util/strings.h"

#define REMEDY "Remove it from the template and allocate the device."

/* Types of character devices (libvirt formatdomain, "Host interface"). Not 'dev', which is a device of the host. */
#define CHARDEVS "null vc pty file pipe stdio unix tcp udp nmdm spicevmc spiceport dbus qemu-vdagent"
/* Types of disks. Not 'nvme' and 'vhostvdpa', which are devices of the host. */
#define DISKS    "file block dir network volume vhostuser"

/* An element of <devices>. types: values that its attribute 'type' may have; NULL: any. */
typedef struct Permitted {
        const char *name, *types;
} Permitted;

static const Permitted devices[] = {
        { "emulator" },
        { "disk", DISKS },
        { "filesystem", "mount template file block ram bind volume" },
        { "controller" },
        { "lease" },
        { "interface", "network bridge user ethernet internal udp mcast server client direct vhostuser null" },
        { "input", "tablet mouse keyboard" },
        { "tpm" },
        { "graphics", "sdl vnc rdp desktop spice dbus" },
        { "sound" },
        { "audio", "none pulseaudio jack spice sdl file dbus pipewire" },
        { "video" },
        { "serial", CHARDEVS },
        { "parallel", CHARDEVS },
        { "console", CHARDEVS },
        { "channel", CHARDEVS },
        { "smartcard", CHARDEVS },
        { "redirdev", CHARDEVS },
        { "redirfilter" },
        { "hub" },
        { "watchdog" },
        { "memballoon" },
        { "rng" },
        { "nvram" },
        { "panic" },
        { "pstore" },
        { "shmem" },
        { "vsock" },
        { "iommu" },
        { "crypto" },
};

/*
 * An element in <devices> or <os> that can name a device of the host. attribute: where it can do so; NULL: in its text.
 * values: the values that are permitted there. parent: NULL: any parent.
 */
static const struct {
        const char *parent, *name, *attribute, *values;
} nested[] = {
        { NULL, "backingStore", "type", DISKS },
        { NULL, "mirror", "type", DISKS },
        { NULL, "dataStore", "type", DISKS },
        /* Modes of macvtap, without 'passthrough', which takes the whole VF; 'client' and 'server' are for a vhost-user
         * socket. */
        { "interface", "source", "mode", "vepa bridge private client server" },
        { "tpm", "backend", "type", "emulator external" },
        { "rng", "backend", "type", CHARDEVS },
        /* QEMU keeps the file open. An open file of /dev/vfio would keep other guests from its IOMMU group. */
        { "rng", "backend", NULL, "/dev/random /dev/urandom /dev/hwrng" },
        { "interface", "backend", "tap", "/dev/net/tun" },
        { "interface", "backend", "vhost", "/dev/vhost-net" },
        { NULL, "smartcard", "mode", "passthrough" }, /* other modes use a reader of the host */
        { "os", "nvram", "type", DISKS },
        { "video", "driver", "name", "qemu" }, /* 'vhostuser' opens the host's first render node */
        { NULL, "gl", "enable", "no" },        /* without rendernode= libvirt would use the host's first one */
        { NULL, "gl", "rendernode", "" },
        { NULL, "acceleration", "rendernode", "" },
};

static bool is_word_of(const char *words, const char *word) {
        size_t n = strlen(word);

        for (const char *at = words; n > 0 && (at = strstr(at, word)); at += n)
                if ((at == words || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' '))
                        return true;
        return false;
}

/* Finds the PCI address of a host device in an element's <source>. False: the address is missing or malformed. */
static bool find_host_address(const xmlNode *node, PciAddress *ret) {
        unsigned domain = 0, bus, slot, function = 0;
        const xmlNode *address = node_find(node_find(node, "source"), "address");

        if (!address || node_get_number(address, "domain", UINT32_MAX, &domain) == -EINVAL ||
            node_get_number(address, "bus", 255, &bus) < 0 || node_get_number(address, "slot", 31, &slot) < 0 ||
            node_get_number(address, "function", 7, &function) == -EINVAL)
                return false;
        *ret = (PciAddress) { domain, (uint8_t) bus, (uint8_t) slot, (uint8_t) function };
        return true;
}

/* Returns true when the <shmem> may be a region of an allocation: libvirt appends its name to /dev/shm/. */
static bool is_our_region(const xmlNode *node) {
        _cleanup_free_ char *name = node_is(node, "shmem") ? node_get(node, "name") : NULL;

        return name && (strchr(name, '/') || strncmp(name, REGION_FILE_PREFIX, strlen(REGION_FILE_PREFIX)) == 0);
}

/* Refuses memory in the template: a guest gets memory of its allocation only. */
static Verdict check_memory(const xmlNode *node, Refusal *ret) {
        if (node_is(node, "memory"))
                return refuse_template(ret, node, NULL, "Remove it and ask for the memory in the allocation.",
                                       "The template has a memory device, whose memory is not in the allocation.");
        if (is_our_region(node))
                return refuse_template(ret, node, NULL, "Remove it and ask for the shared memory in the allocation.",
                                       "The template has a <shmem> with shared memory of allocations.");
        return VERDICT_NONE;
}

static Verdict refuse_host_device(const xmlNode *node, Refusal *ret) {
        PciAddress address;

        if (find_host_address(node, &address))
                return refuse_template(ret, node, &address, REMEDY, "The template passes %s itself, in <%s>.",
                                       PCI_ADDRESS_STR(address), QUOTABLE((const char *) node->name));
        return refuse_template(ret, node, NULL, REMEDY, "The template passes a host device itself, in <%s>.",
                               QUOTABLE((const char *) node->name));
}

/* Refuses an element whose attribute is none of the values. attribute: NULL: checks the text. values: NULL: any. A
 * missing attribute and an empty text are permitted. */
static Verdict check_value(const xmlNode *node, const char *attribute, const char *values, Refusal *ret) {
        _cleanup_free_ char *value = !values ? NULL : attribute ? node_get(node, attribute) : node_get_text(node);
        PciAddress address;

        if (!value || is_word_of(values, value) || (!attribute && !*value))
                return VERDICT_NONE;
        if (find_host_address(node, &address))
                return refuse_host_device(node, ret);
        if (!attribute)
                return refuse_template(ret, node, NULL, REMEDY,
                                       "The template has '%s' in <%s>, which may be a host device.", QUOTABLE(value),
                                       QUOTABLE((const char *) node->name));
        return refuse_template(ret, node, NULL, REMEDY, "The template has <%s %s='%s'>, which may be a host device.",
                               QUOTABLE((const char *) node->name), attribute, QUOTABLE(value));
}

static Verdict check_nested(const xmlNode *node, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; i < ELEMENTSOF(nested) && v == VERDICT_NONE; i++)
                if (node_is(node, nested[i].name) && (!nested[i].parent || node_is(node->parent, nested[i].parent)))
                        v = check_value(node, nested[i].attribute, nested[i].values, ret);
        /* In libvirt's documents only the source of a host device has an address. */
        if (v == VERDICT_NONE && node_is(node, "source") && node_find(node, "address"))
                v = refuse_host_device(node->parent, ret);
        for (xmlNode *n = xmlFirstElementChild((xmlNode *) node); n && v == VERDICT_NONE; n = xmlNextElementSibling(n))
                v = check_nested(n, ret);
        return v;
}

static Verdict check_device(const xmlNode *node, Refusal *ret) {
        Verdict v = check_memory(node, ret);

        if (v != VERDICT_NONE)
                return v;
        if (node_is(node, "hostdev"))
                return refuse_host_device(node, ret);
        for (size_t i = 0; i < ELEMENTSOF(devices); i++)
                if (node_is(node, devices[i].name)) {
                        v = check_value(node, "type", devices[i].types, ret);
                        return v != VERDICT_NONE ? v : check_nested(node, ret);
                }
        return refuse_template(ret, node, NULL, "Remove it.",
                               "The template has a <%s> in <devices>, which passthroughd does not know.",
                               QUOTABLE((const char *) node->name));
}

Verdict domain_check_permitted(const Domain *d, bool qemu_commandline, Refusal *ret) {
        const xmlNode *os = node_find(d->root, "os"), *found;
        _cleanup_free_ char *path = NULL;
        Verdict v = os ? check_nested(os, ret) : VERDICT_NONE;

        for (xmlNode *n = xmlFirstElementChild(d->devices); n && v == VERDICT_NONE; n = xmlNextElementSibling(n))
                v = check_device(n, ret);
        found = v == VERDICT_NONE ? domain_find_reserved_path(d->root, NULL, &path) : NULL;
        if (found)
                return refuse_template(ret, found, NULL, REMEDY,
                                       "The template has '%s' in <%s>, which " RESERVED_PATH_REASON ".", QUOTABLE(path),
                                       QUOTABLE((const char *) found->name));
        for (xmlNode *n = xmlFirstElementChild(d->root); n && v == VERDICT_NONE; n = xmlNextElementSibling(n))
                if (n->ns && !qemu_commandline)
                        v = refuse_template(ret, n, NULL,
                                            "Remove it, or permit it with --allow-qemu-commandline. passthroughd does "
                                            "not check what it gives the guest.",
                                            "The template has <qemu:%s>, which can give the guest any device.",
                                            QUOTABLE((const char *) n->name));
        return v;
}
