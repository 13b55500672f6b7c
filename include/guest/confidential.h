/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a confidential guest may have, as a table of rules with their sources, and what its owner must know. libvirt
 * refuses little of this: most of it fails when QEMU starts, or leaves data unprotected. Pure.
 */

#include "config/policy.h"
#include "guest/iommufd.h"
#include "ledger/allocation.h"

typedef struct ConfidentialFacts {
        Confidential type;
        /* Facts about the host. */
        ConfidentialHost host;
        LibvirtFeatures libvirt;
        bool xen, x86;
        unsigned others; /* allocations for other guests of this type; each takes one of host.slots[type] */
        /* Facts about the guest. */
        uint64_t memory, page_size;
        unsigned vcpus;
        size_t n_cells;
        bool shares_memory; /* it has shared memory (ivshmem) */
        bool has_vgpu;
        IommufdFacts iommufd; /* of this guest; confidential_facts() leaves it zero for CONFIDENTIAL_NONE */
        /* Its accelerators and NVSwitches. */
        unsigned modes;  /* bits of the ConfidentialMode of their pools; off for a device that cannot have that mode */
        unsigned n_gpus; /* number of GPUs among them whose mode is not off */
        bool has_hopper; /* one of these GPUs is of NVIDIA's Hopper generation */
        bool assumes_mode; /* the mode of one of these GPUs is only that of its pool: NVIDIA's driver has not told its
                              mode */
        bool lacks_gpu;    /* the node has a GPU of NVIDIA that this guest lacks; false if n_gpus is 0 or `type` is
                              CONFIDENTIAL_NONE */
        bool lacks_switch; /* the node has an NVSwitch that this guest lacks; false in the same cases */
} ConfidentialFacts;
#define CONFIDENTIAL_MODE_BIT(mode) (1U << (mode))

/*
 * Collects the facts about an allocation, in the ledger or not. Leaves ConfidentialFacts.others to the caller. type:
 * Allocation.confidential, or that of a template.
 */
ConfidentialFacts confidential_facts(const Inventory *inv, const Config *config, const Allocation *a,
                                     Confidential type);

/* Refuses what cannot work, also a GPU in a confidential mode for a guest that is not confidential. VERDICT_NONE or a
 * refusal. */
Verdict confidential_check(const ConfidentialFacts *f, Refusal *ret);

/* Sets *ret to static sentences: what the guest lacks, and what it must not trust. Returns their number. */
#define CONFIDENTIAL_NOTES_MAX 9U
size_t confidential_notes(const ConfidentialFacts *f, const char *ret[static CONFIDENTIAL_NOTES_MAX]);

/* Returns true for an accelerator or NVSwitch that is no VF. Only those of NVIDIA can have a ConfidentialMode. */
bool confidential_has_mode(const PciDevice *dev);
