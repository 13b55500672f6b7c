/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which guests run, and which of them have which PCI functions. libvirt's QEMU driver keeps a status file of each
 * running domain, and the kernel says whether the process of that pid is the QEMU of that domain, by its arguments.
 * Both can be read at any time, whether libvirt runs or not, and nothing hangs.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* Below the root; absent until libvirt ran for the first time. */
#define GUESTS_DIR "run/libvirt/qemu"

typedef struct GuestDevice {
        PciAddress address;
        size_t guest; /* index in GuestList.guests */
} GuestDevice;

typedef struct Guest {
        char *domain;
        char *uuid;    /* NULL: not told */
        bool starting; /* it may not have got all its memory yet */
} Guest;

typedef struct GuestList {
        GuestDevice *devices;
        size_t n;
        Guest *guests;
        size_t n_guests;
} GuestList;

GuestList *guest_list_free(GuestList *l);
DEFINE_CLEANUP(GuestList *, guest_list_free)

/* All of them, or a negative errno: a file that cannot be understood may be of a guest that has any device. */
int guests_read(const Sysfs *fs, GuestList **ret);
