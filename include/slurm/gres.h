/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The pools of the node as generic resources (GRES) of Slurm. Pure. */

#include <json-c/json.h>

#include "util/cleanup.h"

/* The GRES that counts the devices of a pool is its name after this prefix. Slurm drops a GRES named gpu that has no
 * files. */
#define GRES_PREFIX "vm"

typedef struct Gres {
        const char *pool; /* borrowed from the description */
        char *type;       /* "h100" if all devices of the pool are GPUs of that model, or NULL */
        unsigned total;   /* devices, or slots of a service */
        unsigned healthy; /* those in service, allocated or not */
} Gres;

typedef struct GresList {
        Gres *items; /* in the order of the pools */
        size_t n;
} GresList;

/* The names of the allocations of jobs begin with the prefix; the number of the job follows. The tag tells them from
 * allocations of the same name that others made. */
#define GRES_ALLOCATION_PREFIX "slurm-"
#define GRES_ALLOCATION_TAG    "Slurm job"

/* description: what Describe returns, which outlives the list. Devices that another scheduler gives out are not
 * counted. 0 or -ENOMEM. The caller frees *ret with gres_list_done(). */
int gres_list_new(json_object *description, GresList *ret);
void gres_list_done(GresList *list);
#define _cleanup_gres_list_ _cleanup_(gres_list_done)

/* Counts the devices of this allocation as not in service: its job has ended, and it cannot be released. */
void gres_list_withhold(GresList *list, json_object *description, const char *allocation);

/* The Gres= of the node in slurm.conf, "vmgpu:h100:8,vmib-vf:64"; "" without pools. The caller frees; NULL when out of
 * memory. */
char *gres_list_format(const GresList *list);

/*
 * The same text as present, the Gres= that Slurm has for the node now, with the healthy number in the entries of the
 * pools. Other entries stay. Slurm drops an entry of 0: it is added again if types, the GresTypes= of slurm.conf, has
 * it. The caller frees; NULL when out of memory.
 */
char *gres_list_update(const GresList *list, const char *present, const char *types);
