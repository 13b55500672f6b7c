/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/nvidia.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/strings.h"

/* The file information has a line such as "Device Minor: \t 3". */
uint32_t nvidia_read_minor(const Sysfs *fs, PciAddress gpu) {
        char path[128], text[SYSFS_ATTRIBUTE_MAX];
        const char *at = NULL;
        unsigned minor;

        (void) snprintf(path, sizeof(path), "proc/driver/nvidia/gpus/%s/information", PCI_ADDRESS_STR(gpu));
        if (sysfs_read(fs, path, text, sizeof(text)) >= 0)
                at = strstr(text, NVIDIA_MINOR_KEY);
        return at && sscanf(at + strlen(NVIDIA_MINOR_KEY), "%u", &minor) == 1 && minor <= NVIDIA_MINOR_LAST
                       ? minor
                       : NVIDIA_MINOR_UNKNOWN;
}

/* The file numa_status has lines such as "Node:      2" and "Status:    online". */
bool nvidia_read_memory(const Sysfs *fs, PciAddress gpu, int *ret, bool *ret_online) {
        char path[128], text[SYSFS_ATTRIBUTE_MAX], status[32] = "";
        int node;

        (void) snprintf(path, sizeof(path), "proc/driver/nvidia/gpus/%s/numa_status", PCI_ADDRESS_STR(gpu));
        if (sysfs_read(fs, path, text, sizeof(text)) < 0 || sscanf(text, "Node: %d Status: %31s", &node, status) < 1 ||
            node < 0)
                return false;
        *ret = node;
        *ret_online = strncmp(status, "online", strlen("online")) == 0 || streq(status, "offline_failed") ||
                      streq(status, "offline_in_progress");
        return true;
}

static void lock_path(PciAddress gpu, char path[static 128]) {
        (void) snprintf(path, 128, "proc/driver/nvidia/gpus/%s/unbindLock", PCI_ADDRESS_STR(gpu));
}

int nvidia_lock_unbind(const Sysfs *fs, PciAddress gpu) {
        char path[128];
        int r;

        lock_path(gpu, path);
        r = sysfs_set(fs, path, "1");
        if (r == -ENOENT)
                return 0;
        return r == -EIO ? -EBUSY : r < 0 ? r : 1;
}

int nvidia_unlock_unbind(const Sysfs *fs, PciAddress gpu) {
        char path[128];
        int r;

        lock_path(gpu, path);
        r = sysfs_set(fs, path, "0");
        return r == -ENOENT ? 0 : r;
}

void nvidia_read_memories(const Sysfs *fs, Inventory *inv) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                PciDevice *dev = &inv->devices[i];
                bool online;

                dev->has_memory_node = streq_ptr(dev->driver, NVIDIA_DRIVER) &&
                                       nvidia_read_memory(fs, dev->address, &dev->memory_node, &online);
        }
}

/* The names without a first "nvidia0". */
static const char *other_names(const char *names) {
        unsigned minor;
        int n = 0;

        if (!names || sscanf(names, "nvidia%u%n", &minor, &n) != 1 || (names[n] != ' ' && names[n] != '\0'))
                return names;
        return names[n] == ' ' ? names + n + 1 : NULL;
}

int nvidia_set_name(PciDevice *gpu, uint32_t minor) {
        const char *others = other_names(gpu->kernel_names);

        if (minor != NVIDIA_MINOR_UNKNOWN)
                return string_replace(&gpu->kernel_names, "nvidia%u%s%s", minor, others ? " " : "", others ?: "");
        return others == gpu->kernel_names ? 0 : string_copy(&gpu->kernel_names, others);
}

int nvidia_read_names(const Sysfs *fs, Inventory *inv) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < inv->n_devices; i++)
                if (streq_ptr(inv->devices[i].driver, NVIDIA_DRIVER))
                        r = nvidia_set_name(&inv->devices[i], nvidia_read_minor(fs, inv->devices[i].address));
        return r;
}
