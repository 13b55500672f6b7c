/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/confidential.h"

/* What libvirt and its default QEMU can do in a domain document. */
typedef struct LibvirtFeatures {
        bool known;                       /* libvirt has reported them; false: use only what every libvirt can do */
        bool maxphysaddr;                 /* <cpu><maxphysaddr> */
        bool driver_model;                /* <hostdev><driver model=>: the VFIO driver */
        bool iommufd;                     /* <hostdev><driver iommufd=> */
        bool acpi_nodeset;                /* <hostdev><acpi nodeset=> */
        bool fwcfg;                       /* <sysinfo type='fwcfg'> */
        bool security[_CONFIDENTIAL_MAX]; /* by type: <launchSecurity type=>. libvirt reports "sev-snp" on each host
                                             with SEV. libvirt 11.6 to 11.9 reports "tdx" on each host */
        bool firmware[_CONFIDENTIAL_MAX]; /* by type: QEMU has a firmware for such guests that needs no flash */
        unsigned libvirt, qemu;           /* major * 1000000 + minor * 1000 + micro; 0 unknown */
} LibvirtFeatures;

/* Suffix of the name of a feature: "sev-snp-firmware" means that there is a firmware for SEV-SNP guests
 * (LibvirtFeatures.firmware). */
#define FIRMWARE_SUFFIX "-firmware"

/* Whether it is known which domains run. */
typedef struct LibvirtStatus {
        bool configured; /* Libvirt= is not empty */
        char *reason;    /* sentence: why it is unknown; NULL: it is known */
        uint64_t since;  /* since when it is unknown, in seconds since 1970; the reason may be newer */
        bool logged;     /* the reason was logged, but not yet that the domains are known again */
} LibvirtStatus;
