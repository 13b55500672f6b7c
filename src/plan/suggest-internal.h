/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The suggestion that suggest.c makes and suggest-text.c writes. */

#include "config/policy.h"

typedef enum ChoiceKind {
        CHOICE_GPU,
        CHOICE_ACCELERATOR,
        CHOICE_NIC,
        _CHOICE_KIND_MAX,
} ChoiceKind;

/* Devices of one model in one pool. */
typedef struct Choice {
        ChoiceKind kind;
        bool of_vfs; /* the pool has VFs of these PFs: for all NICs, and for GPUs with VFs */
        uint16_t vendor, device;
        uint16_t base_class; /* class and subclass */
        PciType type;
        PciAddress *devices;
        size_t n;
        char pool[POOL_NAME_MAX + 1];
        bool by_id;                 /* the ID of the devices, or of their VFs, matches no other devices */
        unsigned virtual_functions; /* 0: another program creates them */
} Choice;

/* Devices of one vendor and class that are left out for one reason. */
typedef struct Omission {
        char *why; /* sentences */
        PciAddress *devices;
        size_t n;
} Omission;

typedef struct Suggestion {
        Choice *choices;
        size_t n_choices;
        Omission *omissions;
        size_t n_omissions;
        CpuSet housekeeping;
        const char *housekeeping_why; /* a sentence */
} Suggestion;

/* Writes the file. policy: the policy of the suggested sections, whose verdicts become comments; NULL: no comments.
 * Returns NULL when out of memory. */
char *suggestion_write(const Suggestion *s, const Inventory *inv, const Policy *policy);
/* Returns the line "HousekeepingCpus=...", or NULL when the set is empty or when out of memory. The caller frees. */
char *suggestion_cpus(const CpuSet *cpus);
