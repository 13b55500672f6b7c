/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the daemon has found out about devices while it runs, beside the facts of the inventory: one entry for each
 * device with a finding, sorted by address. Not on disk: the findings are forgotten when the daemon ends. Pure.
 */

#include "model/refusal.h"

typedef enum DeviceFinding {
        DEVICE_FOREIGN,   /* a guest without an allocation of the device uses it */
        DEVICE_ASSIGNED,  /* a guest of Nova uses the device, whose pool has Scheduler=nova */
        DEVICE_STUCK,     /* the kernel has not returned from a job's access to the device */
        DEVICE_BUSY,      /* a job works on the device, which is in no allocation */
        DEVICE_UNHEALTHY, /* a health check failed. The allocation that has the device keeps it */
        DEVICE_LOST,      /* as DEVICE_UNHEALTHY: NVIDIA's driver has lost the GPU */
        DEVICE_UNLINKED,  /* as DEVICE_UNHEALTHY: Fabric Manager reports failed NVLinks of the GPU */
        DEVICE_LINKED,    /* as DEVICE_UNHEALTHY: an NVLink partition of the GPU is active without an allocation */
        DEVICE_CONTESTED, /* another program changed the number of VFs of the PF. Refuses no request */
        _DEVICE_FINDING_MAX,
} DeviceFinding;

typedef struct DeviceStatus {
        PciAddress address;
        char *findings[_DEVICE_FINDING_MAX]; /* each a sentence; NULL: not found */
        size_t n_vfs;                        /* DEVICE_CONTESTED: the number of VFs before the change */
} DeviceStatus;

typedef struct DeviceStatusTable {
        DeviceStatus *devices; /* ascending by address */
        size_t n;
} DeviceStatusTable;

void device_status_table_done(DeviceStatusTable *t);

/* Replaces the finding of the device; NULL message: removes it. 0, or -ENOMEM, which changes nothing. */
int device_status_set(DeviceStatusTable *t, PciAddress address, DeviceFinding finding, const char *message);
/* Sets DEVICE_CONTESTED. n_vfs: the number of VFs before the change. 0, or -ENOMEM, which changes nothing. */
int device_status_set_contested(DeviceStatusTable *t, PciAddress pf, size_t n_vfs, const char *message);

/* In all functions below t may be NULL: no findings. */
/* The entry of the device; NULL when it has no finding. Valid until the table changes. */
const DeviceStatus *device_status_find(const DeviceStatusTable *t, PciAddress address);
/* The sentence of the finding; NULL: not found. Valid until the table changes. */
const char *device_status_get(const DeviceStatusTable *t, PciAddress address, DeviceFinding finding);
/* Refuses with the sentence of the finding. VERDICT_NONE: not found. */
Verdict device_status_check(const DeviceStatusTable *t, PciAddress address, DeviceFinding finding, Refusal *ret);
/* VERDICT_NONE when no finding says that the device is unhealthy. */
Verdict device_status_check_unhealthy(const DeviceStatusTable *t, PciAddress address, Refusal *ret);
/* VERDICT_NONE when the device is neither stuck nor busy. */
Verdict device_status_check_blocked(const DeviceStatusTable *t, PciAddress address, Refusal *ret);
