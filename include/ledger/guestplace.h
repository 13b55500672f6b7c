/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The place of a device in a running guest. libvirt assigns the address when the guest starts or when the device is
 * attached. The address stays until the guest ends or the device is detached. So the place is read from libvirt's
 * document of the running domain and never computed: an attach or detach changes the layout that guest/guestpci.h
 * computes, but not the running guest.
 *
 * Only the bus numbers in the path are computed: from busNr of the expander in that document, depth first, as the
 * guest's firmware assigns them.
 */

#include "model/pciaddr.h"

#define GUEST_PATH_MAX       128U /* bytes, with the final NUL */
#define GUEST_PLACE_TEXT_MAX (PCI_ADDRESS_STRING_MAX + GUEST_PATH_MAX)

typedef struct GuestPlace {
        bool known;
        PciAddress address; /* as in the <hostdev>, where the bus is the index of a libvirt controller, not the guest's
                               bus number */
        /* The path below /sys/devices in the guest: "pci0000:fb/0000:fb:00.0/0000:fc:00.0". "": unknown, for example on
         * pcie.0. */
        char path[GUEST_PATH_MAX];
} GuestPlace;

/*
 * Returns whether the path is the name of a root bus, followed by the addresses of bridges and the address of the
 * device. "" is valid: it stands for an unknown path.
 */
bool guest_path_is_valid(const char *path);
bool guest_place_equal(const GuestPlace *a, const GuestPlace *b);
/* Returns the device's PCI address in the guest, the last part of the path. All zero, so on bus 0, if the path is
 * unknown. */
PciAddress guest_path_seen(const char *path);

/* Formats a known place: the address, followed by a space and the path if the path is known. */
const char *guest_place_format(const GuestPlace *p, char buf[static GUEST_PLACE_TEXT_MAX]);
/* Parses the text of guest_place_format(). 0 or -EINVAL. */
int guest_place_parse(const char *text, GuestPlace *ret);
