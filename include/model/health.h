/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Health of devices that no host driver monitors: whether the device responds, its power state, and its count of fatal
 * errors. rasdaemon records all other errors. Reading health wakes the device and may block for ever, so the results
 * are kept beside the inventory. Pure; host/health.h reads the hardware.
 */

#include "model/inventory.h"

typedef struct HealthReading {
        int error; /* result of a read of config space: 0; -EIO: it is all ones; -ENXIO: another device answered; any
                      other error: unknown */
        bool cold; /* the device was in D3cold even after the read */
        bool power_error; /* the kernel cannot change the device's power state */
        bool counted;     /* fatal is valid */
        uint64_t fatal;   /* fatal errors that the kernel has counted since it started (AER) */
} HealthReading;

/* Why a device's health is checked. If several reasons apply, the later one in this list counts. */
typedef enum HealthTrigger {
        HEALTH_NOT_DUE,
        HEALTH_DUE_EVENT,
        HEALTH_DUE_RESCAN,
} HealthTrigger;

typedef struct Health {
        PciAddress address;
        uint64_t instance;        /* PciDevice.instance of the card; a replugged card has another */
        HealthTrigger due, asked; /* why the next check is due; why the latest check was started */
        bool counted;             /* fatal is valid */
        uint64_t fatal;           /* fatal errors, as of the last check that could read them */
        uint64_t fatal_before;    /* the baseline: that many fatal errors do not make the device unhealthy */
} Health;

typedef struct HealthList {
        Health *devices; /* ascending by address */
        size_t n;
} HealthList;

void health_list_done(HealthList *l);
/* Returns the entry of the device with the same instance, valid until the list grows; NULL: none. l may be NULL. */
Health *health_list_find(const HealthList *l, const PciDevice *dev);
/* Returns the entry of the device. Adds it if it is missing, and replaces that of an earlier card at the address. NULL:
 * out of memory. */
Health *health_list_add(HealthList *l, const PciDevice *dev);

/*
 * Evaluates a reading and stores it in h. Returns 1 when the device is unhealthy: *ret is a sentence with the cause,
 * which the caller frees. Returns 0 when it is healthy. Returns -ENODATA when the reading is inconclusive or memory
 * runs out; then h is unchanged. New fatal errors make the device unhealthy until a rescan finds that the count has not
 * grown, or until a check finds a lower count. A reading without a count leaves the last count.
 */
int health_evaluate(Health *h, const HealthReading *r, HealthTrigger why, char **ret);

/* Parses the total in the text of an aer_dev_* attribute. 0 or -EINVAL. */
int health_parse_errors(const char *text, uint64_t *ret);
