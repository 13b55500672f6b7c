/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The running guests, as passthroughd-libvirt reports them: messages of util/wire.h, whose code is a GuestRecord. Each
 * word in capitals in the comments of GuestRecord is one line of the message. The daemon sends passthroughd-libvirt a
 * message with the code GUEST_RECORD_LIST to ask for all domains again.
 */

#include "ledger/guestplace.h"
#include "model/libvirt.h"
#include "util/cleanup.h"

/* The most bytes of a record. A device takes up to 36 bytes, and its place up to GUEST_PLACE_TEXT_MAX. */
#define GUEST_RECORD_MAX  98304U
#define GUEST_DEVICES_MAX 512U
#define GUESTS_MAX        4096U
#define GUEST_UUID_SIZE   37U /* with the NUL */

typedef struct Guest {
        char uuid[GUEST_UUID_SIZE];
        char *domain;
        bool starting;      /* QEMU may not have allocated all of the guest's memory */
        bool listed;        /* a GUEST_RECORD_DOMAIN came after the last GUEST_RECORD_LIST */
        char **devices;     /* names of its host devices, as in guest/domain-facts.h */
        GuestPlace *places; /* by index in devices: the place in the guest */
        size_t n_devices;
} Guest;

typedef struct GuestList {
        Guest *guests;
        size_t n;
        LibvirtFeatures features;
        char *reason; /* why libvirt cannot be asked, from the last GUEST_RECORD_FAILED, printable; NULL: none came */
} GuestList;

void guest_list_done(GuestList *l);

typedef enum GuestRecord {
        GUEST_RECORD_LIST, /* a GUEST_RECORD_DOMAIN for each running domain follows */
        /*
         * A domain runs: UUID STATE NAME DEVICE... STATE: "running", or "starting" while QEMU may not have allocated
         * all its memory. DEVICE: the address of a host PCI function, or the UUID of a mediated device, and its place
         * in the guest (ledger/guestplace.h) if the domain tells it.
         */
        GUEST_RECORD_DOMAIN,
        GUEST_RECORD_ENDED, /* UUID: the domain has ended */
        /* WORD..., each one of: a feature of libvirt ("maxphysaddr", "driver-model", "iommufd", "acpi-nodeset",
         * "fwcfg"); a kind of confidential guest that libvirt can run, such as "sev-snp"; such a kind followed by
         * FIRMWARE_SUFFIX, if there is a firmware for it; a version as in LibvirtFeatures: "libvirt N" or "qemu N" */
        GUEST_RECORD_FEATURES,
        GUEST_RECORD_COMPLETE, /* since GUEST_RECORD_LIST each running domain was sent: any other domain does not run */
        GUEST_RECORD_FAILED,   /* REASON: why libvirt cannot be asked. passthroughd-libvirt ends */
} GuestRecord;

/* Enters a record in the list. Changes text. Returns kind; -ENOMEM; or -EBADMSG for a malformed record, or for a record
 * that exceeds a limit. After an error, `l` is unchanged. */
int guest_list_apply(GuestList *l, int kind, char *text);

/* Returns the guest that has the device; NULL: none. */
const Guest *guest_list_find_device(const GuestList *l, const char *device);
const Guest *guest_list_find(const GuestList *l, const char *uuid);
/* Returns the place of the device in the guest; an unknown place if the guest does not have the device. */
GuestPlace guest_find_place(const Guest *g, const char *device);
