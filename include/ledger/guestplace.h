/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The place of a device in a running guest. libvirt assigns the address when the guest starts or gets the device, and
 * the guest has the device there until the one or the other ends. So the place is a fact, read from libvirt's document
 * of the running domain, and never computed: attach and detach change the computed layout of guest/guestpci.h, but not
 * the guest.
 *
 * Only the bus numbers in the path are derived: from busNr of the expander in that document, as the guest's firmware
 * counts them, depth first.
 */

#include "model/pciaddr.h"

#define GUEST_PATH_MAX       128U /* bytes, with the NUL */
#define GUEST_PLACE_TEXT_MAX (PCI_ADDRESS_STRING_MAX + GUEST_PATH_MAX)

typedef struct GuestPlace {
        bool known;
        PciAddress address; /* in the <hostdev>; its bus is the index of a libvirt controller */
        /* The path below sys/devices of the guest: "pci0000:fb/0000:fb:00.0/0000:fc:00.0". "": unknown, as below the
         * root bus. */
        char path[GUEST_PATH_MAX];
} GuestPlace;

/* A root bus, then addresses of bridges, then that of the device; "" too. */
bool guest_path_is_valid(const char *path);
bool guest_place_equal(const GuestPlace *a, const GuestPlace *b);
/* The address at which the guest sees the device; bus 0: unknown. */
PciAddress guest_path_seen(const char *path);

/* The text of a known place: the address, and a space and the path if that is known. */
const char *guest_place_format(const GuestPlace *p, char buf[static GUEST_PLACE_TEXT_MAX]);
/* 0 or -EINVAL. */
int guest_place_parse(const char *text, GuestPlace *ret);
