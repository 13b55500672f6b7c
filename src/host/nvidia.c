/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/nvidia.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/fileio.h"
#include "util/strings.h"

#define MODULES_MAX 1024U

/* Finds the line "Device Minor: \t 3" in the GPU's file "information". */
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

/* Counts the memory as online with each status that begins with "online". Also counts it as online while it goes
 * offline, and after it failed to go offline. */
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

/* Sets *ret to how many loaded modules depend on the module. 0 or a negative errno. */
static int count_dependent_modules(const Sysfs *fs, const char *module, size_t *ret) {
        _cleanup_names_ char **names = NULL;
        _cleanup_close_ int fd = -1;
        char path[64];

        (void) snprintf(path, sizeof(path), "sys/module/%s/holders", module);
        fd = sysfs_open(fs, path, O_RDONLY | O_DIRECTORY);
        return fd < 0 ? fd : list_dir_at(fd, ".", MODULES_MAX, &names, ret);
}

/* Returns true when only dependent modules have references to the module. Counts these modules before and after it
 * reads the reference count, because modules may be loaded or removed meanwhile. */
static bool module_is_unused(const Sysfs *fs, const char *module) {
        char path[64], text[32];
        size_t before, after;
        uint64_t references;

        (void) snprintf(path, sizeof(path), "sys/module/%s/refcnt", module);
        return count_dependent_modules(fs, module, &before) >= 0 && sysfs_read(fs, path, text, sizeof(text)) >= 0 &&
               parse_unsigned(text, INT32_MAX, &references) >= 0 && count_dependent_modules(fs, module, &after) >= 0 &&
               references == before && references == after;
}

static bool module_is_loaded(const Sysfs *fs, const char *module) {
        _cleanup_close_ int fd = -1;
        char path[64];

        (void) snprintf(path, sizeof(path), "sys/module/%s", module);
        fd = sysfs_open(fs, path, O_PATH | O_DIRECTORY);
        return fd != -ENOENT;
}

bool nvidia_is_closed(const Sysfs *fs) {
        static const char *const others[] = { "nvidia_uvm", "nvidia_modeset", "nvidia_drm" };

        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                if (module_is_loaded(fs, others[i]) && !module_is_unused(fs, others[i]))
                        return false;
        return module_is_unused(fs, "nvidia");
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

/* Returns kernel_names without the name "nvidiaN" at its start. NULL: no other name is left. */
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
