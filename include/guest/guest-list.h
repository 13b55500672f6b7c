/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The running guests, as passthroughd-libvirt reports them: messages of util/wire.h, whose code is a GuestRecord. The
 * text of a record is lines. A request, GUEST_RECORD_LIST as well, asks it to send all domains again.
 */

#include "ledger/guestplace.h"
#include "model/libvirt.h"
#include "util/cleanup.h"

/* Bytes of a text: a device has at most 36 and GUEST_PLACE_TEXT_MAX. */
#define GUEST_RECORD_MAX  98304U
#define GUEST_DEVICES_MAX 512U
#define GUESTS_MAX        4096U
#define GUEST_UUID_SIZE   37U /* with its NUL */

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
        GUEST_RECORD_LIST, /* all running domains follow */
        /*
         * A domain runs: UUID STATE NAME DEVICE... STATE: "running", or "starting" while QEMU may not have allocated
         * all its memory. DEVICE: the address of a host PCI function, or the UUID of a mediated device, and its place
         * in the guest (ledger/guestplace.h) if the domain tells it.
         */
        GUEST_RECORD_DOMAIN,
        GUEST_RECORD_ENDED, /* UUID: the domain does not run any more */
        /* WORD..., features of libvirt: "maxphysaddr", "driver-model", "iommufd", "acpi-nodeset", "fwcfg"; the versions
         * (LibvirtFeatures): "libvirt NUMBER", "qemu NUMBER" */
        GUEST_RECORD_FEATURES,
        GUEST_RECORD_COMPLETE, /* all domains were sent since GUEST_RECORD_LIST; other domains do not run */
        GUEST_RECORD_FAILED,   /* REASON: libvirt cannot be asked, and passthroughd-libvirt ends */
} GuestRecord;

/*
 * Applies one record; its text is changed. Returns kind; -EBADMSG when it is malformed or exceeds a limit, or -ENOMEM,
 * and then l is unchanged.
 */
int guest_list_apply(GuestList *l, int kind, char *text);

/* Returns the guest that has the device, or NULL. */
const Guest *guest_list_find_device(const GuestList *l, const char *device);
const Guest *guest_list_find(const GuestList *l, const char *uuid);
/* Returns the place of the device in the guest; it is not known if the guest does not have the device. */
GuestPlace guest_find_place(const Guest *g, const char *device);
