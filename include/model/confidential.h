/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Confidential guests, whose memory the CPU encrypts: AMD's SEV and SEV-SNP, Intel's TDX. */

#include <stdbool.h>
#include <stdint.h>

typedef enum Confidential {
        CONFIDENTIAL_NONE,
        CONFIDENTIAL_SEV, /* also SEV-ES. A request cannot ask for it, only a template can */
        CONFIDENTIAL_SNP,
        CONFIDENTIAL_TDX,
        _CONFIDENTIAL_MAX,
        _CONFIDENTIAL_INVALID = -22,
} Confidential;
const char *confidential_to_string(Confidential c);
Confidential confidential_from_string(const char *s);
/* Returns true for SNP and TDX: private memory of the guest is KVM's guest_memfd, which no other program can map. */
static inline bool confidential_is_private(Confidential c) {
        return c == CONFIDENTIAL_SNP || c == CONFIDENTIAL_TDX;
}
/* Returns the type= of libvirt's <launchSecurity>; NULL for CONFIDENTIAL_NONE. */
const char *confidential_libvirt_name(Confidential c);
/* Returns the name that users know: "SEV-SNP". */
const char *confidential_title(Confidential c);

/*
 * The confidential mode of a GPU or NVSwitch of NVIDIA. It is kept in the device, and a change takes effect with a
 * reset (set_cc_mode() and set_ppcie_mode() of gpu-admin-tools, github.com/NVIDIA/gpu-admin-tools).
 */
typedef enum ConfidentialMode {
        CONFIDENTIAL_MODE_UNKNOWN, /* NVIDIA's driver has not reported the mode of the GPU */
        CONFIDENTIAL_MODE_OFF,
        CONFIDENTIAL_MODE_ON,
        CONFIDENTIAL_MODE_DEVTOOLS,       /* as on, but with profilers, so that data is not protected */
        CONFIDENTIAL_MODE_PROTECTED_PCIE, /* all GPUs and NVSwitches of a Hopper board belong to one guest */
        _CONFIDENTIAL_MODE_MAX,
        _CONFIDENTIAL_MODE_INVALID = -22,
} ConfidentialMode;
const char *confidential_mode_to_string(ConfidentialMode m);
ConfidentialMode confidential_mode_from_string(const char *s);

/* The value of a yes-or-no parameter of a kernel module. */
typedef enum ModuleParameter {
        MODULE_PARAMETER_ABSENT, /* the module is not loaded, or has no such parameter */
        MODULE_PARAMETER_NO,
        MODULE_PARAMETER_YES,
} ModuleParameter;

/* What this host provides for confidential guests. */
typedef struct ConfidentialHost {
        ModuleParameter parameters[_CONFIDENTIAL_MAX]; /* by type: whether kvm_amd or kvm_intel runs such guests */
        unsigned slots[_CONFIDENTIAL_MAX]; /* by type: the most guests at a time, misc.capacity of cgroups; 0 unknown */
        uint64_t
                dma_entries; /* the most mappings of a VFIO container, dma_entry_limit of vfio_iommu_type1; 0 unknown */
        bool passthrough;    /* cmdline_iommu_passthrough() of the kernel command line */
} ConfidentialHost;
