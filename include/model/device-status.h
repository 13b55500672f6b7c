/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the running daemon has found out about devices, beside the inventory: an entry for each device with a finding,
 * by address. Forgotten when the daemon ends. Pure. */

#include "model/refusal.h"

typedef enum DeviceFinding {
        DEVICE_FOREIGN,   /* a guest uses the device, which is in a pool but in no allocation */
        DEVICE_ASSIGNED,  /* a guest of Nova uses the device, whose pool has Scheduler=nova */
        DEVICE_STUCK,     /* a job's access to the device has not returned from the kernel */
        DEVICE_BUSY,      /* a job works on the device, which is in no allocation */
        DEVICE_UNHEALTHY, /* a health check of the device failed. An allocation that has the device keeps it */
        DEVICE_LOST,      /* as DEVICE_UNHEALTHY: NVIDIA's driver has lost the GPU */
        DEVICE_UNLINKED,  /* as DEVICE_UNHEALTHY: Fabric Manager reports failed NVLinks of the GPU */
        DEVICE_LINKED,    /* as DEVICE_UNHEALTHY: an NVLink partition of the GPU is active without an allocation */
        DEVICE_CONTESTED, /* another program changed the number of VFs of the PF. Refuses no request */
        _DEVICE_FINDING_MAX,
} DeviceFinding;

typedef struct DeviceStatus {
        PciAddress address;
        char *findings[_DEVICE_FINDING_MAX]; /* a sentence for each finding; NULL: the device does not have it */
        size_t n_vfs;                        /* of DEVICE_CONTESTED: number of VFs before the change */
} DeviceStatus;

typedef struct DeviceStatusTable {
        DeviceStatus *devices; /* ascending by address */
        size_t n;
} DeviceStatusTable;

void device_status_table_done(DeviceStatusTable *t);

/* Sets the finding of the device to message; NULL removes it. 0, or -ENOMEM, which changes nothing. */
int device_status_set(DeviceStatusTable *t, PciAddress address, DeviceFinding finding, const char *message);
/* Sets DEVICE_CONTESTED. n_vfs: the number of VFs before the change. 0, or -ENOMEM, which changes nothing. */
int device_status_set_contested(DeviceStatusTable *t, PciAddress pf, size_t n_vfs, const char *message);

/* In the following functions a NULL table has no findings. */
/* Returns the entry of the device, valid until the table changes. NULL: no finding. */
const DeviceStatus *device_status_find(const DeviceStatusTable *t, PciAddress address);
/* Returns the sentence of the finding, valid until the table changes. NULL: the device does not have the finding. */
const char *device_status_get(const DeviceStatusTable *t, PciAddress address, DeviceFinding finding);
/* Refuses with the sentence of the finding, or returns VERDICT_NONE if the device does not have it. */
Verdict device_status_check(const DeviceStatusTable *t, PciAddress address, DeviceFinding finding, Refusal *ret);
/* Refuses when a finding says that the device is unhealthy; otherwise VERDICT_NONE. */
Verdict device_status_check_unhealthy(const DeviceStatusTable *t, PciAddress address, Refusal *ret);
/* Refuses when the device is stuck or busy; otherwise VERDICT_NONE. */
Verdict device_status_check_blocked(const DeviceStatusTable *t, PciAddress address, Refusal *ret);
