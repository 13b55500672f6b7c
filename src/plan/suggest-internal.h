/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What suggest.c chooses and suggest-text.c writes. */

#include "config/policy.h"

typedef enum ChoiceKind {
        CHOICE_GPU,
        CHOICE_ACCELERATOR,
        CHOICE_NIC,
        _CHOICE_KIND_MAX,
} ChoiceKind;

/* A pool of the suggestion: devices of one model. */
typedef struct Choice {
        ChoiceKind kind;
        bool of_vfs; /* the pool has the VFs of these devices: of NICs always, of other devices if they have VFs */
        uint16_t vendor, device;
        uint16_t base_class; /* PCI class and subclass */
        PciType type;
        PciAddress *devices;
        size_t n;
        char pool[POOL_NAME_MAX + 1];
        bool by_id;                 /* Match= may use the ID of the devices or VFs; see id_is_enough() */
        unsigned virtual_functions; /* VirtualFunctions= of NICs; 0 for other devices */
} Choice;

/* Devices that the suggestion leaves out for the same reason. */
typedef struct Omission {
        char *why; /* the reason, as sentences */
        PciAddress *devices;
        size_t n;
} Omission;

typedef struct Suggestion {
        Choice *choices;
        size_t n_choices;
        Omission *omissions;
        size_t n_omissions;
        CpuSet housekeeping;
        const char *housekeeping_why; /* why these CPUs, or why none, as sentences */
} Suggestion;

/* Formats the configuration. policy, made of the suggested sections, tells which devices could not be allocated, and
 * comments say so. With policy NULL, the text has no comments at all. The caller frees; NULL when out of memory. */
char *suggestion_write(const Suggestion *s, const Inventory *inv, const Policy *policy);
/* Formats "HousekeepingCpus=...". NULL when the set is empty or out of memory. The caller frees. */
char *suggestion_cpus(const CpuSet *cpus);
