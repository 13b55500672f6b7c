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
        /* the host */
        ConfidentialHost host;
        LibvirtFeatures libvirt;
        bool xen, x86;
        unsigned others; /* further guests that take a slot of host.slots[type] */
        /* the guest */
        uint64_t memory, page_size;
        unsigned vcpus;
        size_t n_cells;
        bool shares_memory; /* it has shared memory (ivshmem) */
        bool has_vgpu;
        IommufdFacts iommufd; /* with the number of its devices */
        /* Its accelerators and NVSwitches. */
        unsigned modes;    /* bits of the ConfidentialMode of their pools, off for those that cannot have it */
        unsigned n_gpus;   /* those with another mode than off */
        bool has_hopper;   /* one of them is of NVIDIA's Hopper generation */
        bool assumes_mode; /* NVIDIA's driver has not told the mode of one of them */
        bool lacks_gpu;    /* the node has a GPU of NVIDIA that the guest lacks */
        bool lacks_switch; /* the node has an NVSwitch that the guest lacks */
} ConfidentialFacts;
#define CONFIDENTIAL_MODE_BIT(mode) (1U << (mode))

/* a: in no ledger yet, or in it. type: that of the allocation, or of a template. */
ConfidentialFacts confidential_facts(const Inventory *inv, const Config *config, const Allocation *a,
                                     Confidential type);

/* Refuses what does not work. Also of a guest that is not confidential, with a GPU that is. */
Verdict confidential_check(const ConfidentialFacts *f, Refusal *ret);

/* Sentences about what the guest lacks or must not trust: static strings. Returns their number. */
#define CONFIDENTIAL_NOTES_MAX 9U
size_t confidential_notes(const ConfidentialFacts *f, const char *ret[static CONFIDENTIAL_NOTES_MAX]);

/* A GPU or NVSwitch that has a ConfidentialMode. */
bool confidential_has_mode(const PciDevice *dev);
