/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The paths of D-Bus objects. */

#include <inttypes.h>
#include <stdio.h>

#include "server-internal.h"

int device_path(PciAddress address, char **ret) {
        return sd_bus_path_encode(BUS_DEVICE_PREFIX, PCI_ADDRESS_STR(address), ret);
}

int allocation_path(const char *name, char **ret) {
        return sd_bus_path_encode(BUS_ALLOCATION_PREFIX, name, ret);
}

int job_path(uint32_t id, char **ret) {
        char label[16];

        (void) snprintf(label, sizeof(label), "%" PRIu32, id);
        return sd_bus_path_encode(BUS_JOB_PREFIX, label, ret);
}

int pool_path(const char *name, char **ret) {
        return sd_bus_path_encode(BUS_POOL_PREFIX, name, ret);
}

int node_path(int id, char **ret) {
        char label[16];

        (void) snprintf(label, sizeof(label), "%d", id);
        return sd_bus_path_encode(BUS_NODE_PREFIX, label, ret);
}
