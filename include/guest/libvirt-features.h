/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The features of the installed libvirt, from its schemas and from its cached QEMU capabilities. The version would not
 * tell: distributions backport and remove features. Pure; host/libvirt.h reads the files.
 */

#include <stdbool.h>

typedef struct LibvirtFeatures {
        bool known;        /* the schemas were found; otherwise only features of every libvirt are used */
        bool maxphysaddr;  /* <cpu><maxphysaddr> */
        bool driver_model; /* <hostdev><driver model=>: the VFIO driver */
        bool iommufd;      /* <hostdev><driver iommufd=> */
        bool acpi_nodeset; /* <hostdev><acpi nodeset=> */
} LibvirtFeatures;

/* Adds the features in one RELAX NG schema. A malformed schema adds none. */
void libvirt_features_add_schema(LibvirtFeatures *f, const char *text);

/*
 * Removes the features that a QEMU lacks. text: libvirt's qemuCaps document of that QEMU. Returns false, and removes
 * nothing, when that QEMU has no KVM, as QEMUs of other architectures.
 */
bool libvirt_features_limit(LibvirtFeatures *f, const char *text);
