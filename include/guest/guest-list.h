/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The running guests, as passthroughd-libvirt reports them. It sends one record per packet: lines of text, the first of
 * which is the kind.
 *
 *   list                            All running domains follow.
 *   domain UUID STATE NAME DEVICE…  A domain runs. Each word is a line. STATE: "running", or "starting" while QEMU may
 *                                   not have allocated all its memory. DEVICE: the address of a host PCI function, or
 *                                   the UUID of a mediated device, and its place in the guest (ledger/guestplace.h)
 *                                   if the domain tells it.
 *   ended UUID                      The domain does not run any more.
 *   features WORD…                  The features of libvirt: "maxphysaddr", "driver-model", "iommufd", "acpi-nodeset",
 *                                   "fwcfg". The versions (LibvirtFeatures): "libvirt NUMBER", "qemu NUMBER".
 *   complete                        All domains were sent since "list". Other domains do not run.
 *   failed REASON                   libvirt cannot be asked, and passthroughd-libvirt ends.
 *
 * A request, "list" as well, asks it to send all domains again.
 */

#include "ledger/guestplace.h"
#include "model/libvirt.h"
#include "util/cleanup.h"

/* The most bytes of a record. A device has at most 36 bytes and GUEST_PLACE_TEXT_MAX. */
#define GUEST_RECORD_MAX  98304U
#define GUEST_DEVICES_MAX 512U
#define GUESTS_MAX        4096U
#define GUEST_UUID_SIZE   37U /* with its NUL */
#define GUEST_REQUEST     "list"

typedef struct Guest {
        char uuid[GUEST_UUID_SIZE];
        char *domain;
        bool starting;      /* the guest may not have allocated all its memory yet */
        bool listed;        /* a "domain" record has come since the last "list" */
        char **devices;     /* host devices, named as in guest/domain-facts.h */
        GuestPlace *places; /* the place of each device in the guest */
        size_t n_devices;
} Guest;

typedef struct GuestList {
        Guest *guests;
        size_t n;
        LibvirtFeatures features;
        char *reason; /* reason of the last "failed" record, printable; NULL: none */
} GuestList;

void guest_list_done(GuestList *l);

typedef enum GuestRecord {
        GUEST_RECORD_LIST,
        GUEST_RECORD_DOMAIN,
        GUEST_RECORD_ENDED,
        GUEST_RECORD_FEATURES,
        GUEST_RECORD_COMPLETE,
        GUEST_RECORD_FAILED,
} GuestRecord;

/*
 * Applies one record of size bytes. Returns its GuestRecord. -EBADMSG when it is malformed or exceeds a limit, or
 * -ENOMEM, both of which leave l unchanged.
 */
int guest_list_apply(GuestList *l, const char *record, size_t size);

/* Returns the guest that has the device, or NULL. */
const Guest *guest_list_find_device(const GuestList *l, const char *device);
const Guest *guest_list_find(const GuestList *l, const char *uuid);
/* Returns the place of the device in the guest; it is not known if the guest does not have the device. */
GuestPlace guest_find_place(const Guest *g, const char *device);
