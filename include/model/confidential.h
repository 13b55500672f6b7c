/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Confidential guests, whose memory the CPU encrypts: AMD's SEV and SEV-SNP, Intel's TDX. */

#include <stdbool.h>
#include <stdint.h>

typedef enum Confidential {
        CONFIDENTIAL_NONE,
        CONFIDENTIAL_SEV, /* and SEV-ES. Only a template asks for it */
        CONFIDENTIAL_SNP,
        CONFIDENTIAL_TDX,
        _CONFIDENTIAL_MAX,
        _CONFIDENTIAL_INVALID = -22,
} Confidential;
const char *confidential_to_string(Confidential c);
Confidential confidential_from_string(const char *s);
/* Its private memory is guest_memfd of KVM, which no other program can map: SNP and TDX. */
static inline bool confidential_is_private(Confidential c) {
        return c == CONFIDENTIAL_SNP || c == CONFIDENTIAL_TDX;
}
/* <launchSecurity type=> of libvirt; NULL: none. */
const char *confidential_libvirt_name(Confidential c);
/* The name that users know: "SEV-SNP". */
const char *confidential_title(Confidential c);

/*
 * The confidential mode of a GPU or NVSwitch of NVIDIA. It is kept in the device, and a change takes effect with a
 * reset (set_cc_mode() and set_ppcie_mode() of gpu-admin-tools, github.com/NVIDIA/gpu-admin-tools).
 */
typedef enum ConfidentialMode {
        CONFIDENTIAL_MODE_UNKNOWN, /* of a GPU: NVIDIA's driver has not told it */
        CONFIDENTIAL_MODE_OFF,
        CONFIDENTIAL_MODE_ON,
        CONFIDENTIAL_MODE_DEVTOOLS,       /* as on, but profilers work, so data is not protected */
        CONFIDENTIAL_MODE_PROTECTED_PCIE, /* all GPUs and NVSwitches of a Hopper board belong to one guest */
        _CONFIDENTIAL_MODE_MAX,
        _CONFIDENTIAL_MODE_INVALID = -22,
} ConfidentialMode;
const char *confidential_mode_to_string(ConfidentialMode m);
ConfidentialMode confidential_mode_from_string(const char *s);

/* A parameter of a kernel module. */
typedef enum ModuleParameter {
        MODULE_PARAMETER_ABSENT, /* the module is not loaded, or lacks it */
        MODULE_PARAMETER_NO,
        MODULE_PARAMETER_YES,
} ModuleParameter;

/* What this host can do for confidential guests. */
typedef struct ConfidentialHost {
        ModuleParameter parameters[_CONFIDENTIAL_MAX]; /* of kvm_amd and kvm_intel, by type */
        unsigned slots[_CONFIDENTIAL_MAX]; /* guests at a time, by type: misc.capacity of cgroups; 0 unknown */
        uint64_t dma_entries; /* mappings that a container of VFIO may have: dma_entry_limit of vfio_iommu_type1; 0
                                 unknown */
        bool passthrough;     /* the kernel command line has iommu=pt or the like */
} ConfidentialHost;
