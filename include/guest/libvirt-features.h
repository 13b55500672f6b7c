/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the installed libvirt understands, by its own schemas and by what it found out about QEMU. A version is no
 * answer: distributions add and leave out. Pure; host/libvirt.h reads the files.
 */

#include <stdbool.h>

typedef struct LibvirtFeatures {
        bool known;        /* there are schemas; else nobody knows, and only what every libvirt has is used */
        bool maxphysaddr;  /* <cpu><maxphysaddr> */
        bool driver_model; /* <hostdev><driver model=>: the VFIO driver */
        bool iommufd;      /* <hostdev><driver iommufd=> */
        bool acpi_nodeset; /* <hostdev><acpi nodeset=> */
} LibvirtFeatures;

/* Adds what one schema (RELAX NG) has. One that cannot be read has nothing. */
void libvirt_features_add_schema(LibvirtFeatures *f, const char *text);

/*
 * Takes away what a QEMU lacks of which that is what libvirt noted (its qemuCaps document). False: it is of no account,
 * for it has no KVM, as those of other architectures have none.
 */
bool libvirt_features_limit(LibvirtFeatures *f, const char *text);
