/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Lists the running guests and the PCI functions assigned to them. The QEMU driver of libvirt keeps a status file for
 * each running domain. The arguments of the process with the pid in that file show whether the process is the QEMU of
 * that domain. Reading both works without libvirt and does not block.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* Directory of the status files, below the root. It does not exist before the first start of libvirt. */
#define GUESTS_DIR "run/libvirt/qemu"

typedef struct GuestDevice {
        PciAddress address;
        size_t guest; /* index in GuestList.guests */
} GuestDevice;

typedef struct Guest {
        char *domain;
        char *uuid;    /* NULL when the status file has none */
        bool starting; /* the guest may not have allocated all its memory yet */
} Guest;

typedef struct GuestList {
        GuestDevice *devices;
        size_t n;
        Guest *guests;
        size_t n_guests;
} GuestList;

GuestList *guest_list_free(GuestList *l);
DEFINE_CLEANUP(GuestList *, guest_list_free)

/* Lists all running guests. Returns 0 or a negative errno. A status file that cannot be parsed is an error, because its
 * guest may use any device. */
int guests_read(const Sysfs *fs, GuestList **ret);
