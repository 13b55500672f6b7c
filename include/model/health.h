/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How well devices are that no driver of the host looks after, as far as PCI tells: whether they answer, what errors
 * their ports counted, and how fast the link is. Reading that wakes a device and may take for ever, so it is kept
 * beside the inventory. Pure; host/health.h reads it.
 */

#include "model/inventory.h"

typedef struct HealthErrors {
        bool known; /* it has such counters (AER) */
        uint64_t fatal, nonfatal, correctable;
} HealthErrors;

/* max_: what both ends can do. All 0 where that is unknown. */
typedef struct HealthLink {
        unsigned speed, max_speed; /* MT/s, see model/pcilink.h */
        unsigned width, max_width; /* lanes */
} HealthLink;

typedef struct HealthReading {
        int error;        /* of its config space: 0; -EIO all ones; -ENXIO another device answers; else nobody knows */
        bool cold;        /* in D3cold even after that */
        bool power_error; /* the kernel does not get it out of the power state it is in */
        HealthErrors errors;
        HealthLink link;
} HealthReading;

/* Why a device is to be looked at; the later the more is forgiven. */
typedef enum HealthDue {
        HEALTH_NOT_DUE,
        HEALTH_DUE_EVENT,
        HEALTH_DUE_RESCAN,
} HealthDue;

typedef struct Health {
        PciAddress address;
        uint64_t instance; /* PciDevice.instance: a card that was plugged in later is another one */
        HealthDue due, asked;
        bool known; /* it was looked at */
        HealthReading last;
        uint64_t fatal_before; /* fatal errors that nobody holds against it */
        bool link_told;        /* that it is below what it can do */
} Health;

typedef struct HealthList {
        Health *devices; /* ascending by address */
        size_t n;
} HealthList;

void health_list_done(HealthList *l);
/* The one of this very device, or NULL. Good until the list grows. l may be NULL. */
Health *health_list_find(const HealthList *l, const PciDevice *dev);
/* Takes it in when it is new. NULL: out of memory. */
Health *health_list_add(HealthList *l, const PciDevice *dev);

/*
 * Takes note of what was read on a look that was due for that reason. 1: it is not well, and *ret (caller frees) says
 * why, a sentence. 0: it is well. -ENODATA: it cannot be told, nothing was noted. Fatal errors since the look before
 * are held against it until a rescan finds no more of them.
 */
int health_judge(Health *h, const HealthReading *r, HealthDue why, char **ret);

bool health_link_is_below(const HealthLink *l);
/* The total of an aer_dev_* file. -EINVAL. */
int health_parse_errors(const char *text, uint64_t *ret);
