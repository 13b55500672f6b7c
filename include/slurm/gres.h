/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The pools of the node as generic resources (GRES) of Slurm. Pure. */

#include <json-c/json.h>

#include "util/cleanup.h"

/* Prefix of a GRES name; the name of the pool follows. The prefix is needed because Slurm drops a GRES named gpu that
 * has no files. */
#define GRES_PREFIX "vm"

typedef struct Gres {
        const char *pool; /* borrowed from the description */
        char *type;       /* model in lower case, "h100", if all devices of the pool are GPUs or accelerators of one
                             model; otherwise NULL */
        unsigned total;   /* devices of the pool, or slots of the service; 0 if another scheduler manages the pool */
        unsigned healthy; /* devices in service, whether allocated or not, or slots of the service */
} Gres;

typedef struct GresList {
        Gres *items; /* in the order of the pools */
        size_t n;
} GresList;

/* Prefix of the names of allocations for jobs; the number of the job follows. If an allocation has such a name but was
 * not made for a job, its tag is not GRES_ALLOCATION_TAG. */
#define GRES_ALLOCATION_PREFIX "slurm-"
#define GRES_ALLOCATION_TAG    "Slurm job"

/* Makes the list from a description, the reply of Describe, which must outlive the list. Devices that another scheduler
 * manages are not counted. 0 or -ENOMEM. The caller frees *ret with gres_list_done(). */
int gres_list_new(json_object *description, GresList *ret);
void gres_list_done(GresList *list);
#define _cleanup_gres_list_ _cleanup_(gres_list_done)

/* Subtracts the devices of an allocation from the healthy ones. Called for an allocation that cannot be released
 * although its job has ended. */
void gres_list_withhold(GresList *list, json_object *description, const char *allocation);

/* Formats the list, with the total numbers, as a Gres= of slurm.conf: "vmgpu:h100:8,vmib-vf:64"; "" without pools. The
 * caller frees; NULL when out of memory. */
char *gres_list_format(const GresList *list);

/*
 * Returns a copy of `present`, the Gres= that Slurm has for the node now, with the healthy numbers in the entries of
 * the pools. Other entries stay. An entry with the number 0 is left out, as Slurm drops it too; so the entry of a pool
 * that `present` lacks is added if the pool has healthy devices and `types`, the GresTypes= of slurm.conf, names it.
 * The caller frees; NULL when out of memory.
 */
char *gres_list_update(const GresList *list, const char *present, const char *types);
