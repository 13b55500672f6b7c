/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/confidential.h"

/* The features of libvirt and its default QEMU that a domain document may use. */
typedef struct LibvirtFeatures {
        bool known;                       /* libvirt was asked; otherwise only features of every libvirt are used */
        bool maxphysaddr;                 /* <cpu><maxphysaddr> */
        bool driver_model;                /* <hostdev><driver model=>: the VFIO driver */
        bool iommufd;                     /* <hostdev><driver iommufd=> */
        bool acpi_nodeset;                /* <hostdev><acpi nodeset=> */
        bool fwcfg;                       /* <sysinfo type='fwcfg'> */
        bool security[_CONFIDENTIAL_MAX]; /* <launchSecurity type=>, by type. libvirt reports "sev-snp" on each host
                                             with SEV, and libvirt 11.6 to 11.9 "tdx" on each host */
        bool firmware[_CONFIDENTIAL_MAX]; /* QEMU has a firmware for such guests that needs no flash, by type */
        unsigned libvirt, qemu;           /* versions: major * 1000000 + minor * 1000 + micro; 0 unknown */
} LibvirtFeatures;

/* Behind the name of a kind of confidential guest: there is a firmware for it. */
#define FIRMWARE_SUFFIX "-firmware"

/* Whether libvirt reports which domains run. */
typedef struct LibvirtStatus {
        bool configured; /* Libvirt= is not empty */
        char *reason;    /* why the running domains are unknown, a sentence; NULL: they are known */
        uint64_t since;  /* the time since which reason holds, in seconds since 1970 */
        bool logged; /* the log has a warning about reason, and not yet the message that the domains are known again */
} LibvirtStatus;
