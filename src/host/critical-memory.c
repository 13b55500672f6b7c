/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Finds devices whose own memory the host uses. Sets PciDevice.online_memory of GPUs with coherent memory. Marks CXL
 * memory devices while their region is online or enabled, and devices whose memory the driver kmem has added to a NUMA
 * node. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "critical-internal.h"
#include "host/nvidia.h"
#include "util/fileio.h"
#include "util/strings.h"

#define CXL    "sys/bus/cxl/devices"
#define DAX    "sys/bus/dax/devices"
#define MEMORY "sys/devices/system/memory"
#define ONLINE "System RAM"
#define REGION "enabled region"

/* Reads a hexadecimal number, with or without 0x. Returns false if the file is absent, unreadable or invalid. */
static bool read_hex(const Critical *c, const char *dir, const char *file, uint64_t *ret) {
        _cleanup_free_ char *path = string_format("%s/%s", dir, file);
        char text[SYSFS_ATTRIBUTE_MAX];

        return path && sysfs_read(c->fs, path, text, sizeof(text)) >= 0 && parse_hex(text, UINT64_MAX, ret) >= 0;
}

/* Returns how many bytes of memory of a NUMA node are online; 0 if that cannot be read. */
static uint64_t read_node_memory(const Critical *c, int node) {
        char path[64], text[SYSFS_ATTRIBUTE_MAX];
        unsigned long long kib;
        const char *at;

        (void) snprintf(path, sizeof(path), "sys/devices/system/node/node%d/meminfo", node);
        if (sysfs_read(c->fs, path, text, sizeof(text)) < 0)
                return 0;
        at = strstr(text, "MemTotal:");
        return at && sscanf(at, "MemTotal: %llu", &kib) == 1 ? kib * 1024 : 0;
}

static void read_gpus(const Critical *c) {
        for (size_t i = 0; i < c->inv->n_devices; i++) {
                PciDevice *dev = &c->inv->devices[i];
                bool own = dev->has_memory_node && streq_ptr(dev->driver, NVIDIA_DRIVER);

                dev->online_memory = own ? read_node_memory(c, dev->memory_node) : 0;
        }
}

/* The memory blocks in sysfs. A block exists while its memory is plugged in. */
typedef struct Blocks {
        char **names; /* names of the entries of sys/devices/system/memory, some of which are no blocks */
        size_t n;
        bool too_many; /* the directory has too many entries to list */
} Blocks;

static int list_blocks(const Critical *c, Blocks *ret) {
        _cleanup_close_ int fd = sysfs_open(c->fs, MEMORY, O_RDONLY | O_DIRECTORY);
        int r = fd < 0 ? fd : list_dir_at(fd, ".", CRITICAL_ENTRIES_MAX, &ret->names, &ret->n);

        ret->too_many = r == -E2BIG;
        return r >= 0 || r == -E2BIG ? 0 : critical_unreadable(c, MEMORY, r);
}

/* Returns whether a memory block in this range is online, or may be: "going-offline" may still fail, and the blocks may
 * be too many to look at. */
static bool is_online(const Critical *c, const Blocks *blocks, uint64_t start, uint64_t size) {
        uint64_t block, number;

        if (size == 0 || start + size < start || !read_hex(c, MEMORY, "block_size_bytes", &block) || block == 0)
                return false;
        if (blocks->too_many)
                return true;
        for (size_t i = 0; i < blocks->n; i++) {
                char path[64], state[SYSFS_ATTRIBUTE_MAX];

                if (strncmp(blocks->names[i], "memory", strlen("memory")) != 0 ||
                    parse_unsigned(blocks->names[i] + strlen("memory"), UINT64_MAX, &number) < 0 ||
                    number < start / block || number > (start + size - 1) / block)
                        continue;
                (void) snprintf(path, sizeof(path), MEMORY "/memory%llu/state", (unsigned long long) number);
                if (sysfs_read(c->fs, path, state, sizeof(state)) >= 0 && !streq(state, "offline"))
                        return true;
        }
        return false;
}

/* Marks the memory device of a decoder. The decoder is below an endpoint, whose link uport leads to the device. */
static int mark_target(const Critical *c, const char *decoder, const char *region, const char *what) {
        _cleanup_free_ char *path = string_format(CXL "/%s/../uport", decoder);
        _cleanup_free_ char *use = string_format("%s <- %s", region, what);

        return path && use ? critical_mark_user(c, path, use) : -ENOMEM;
}

/* Returns whether a driver is bound to the region. The host may then use the region's memory as a block or DAX device,
 * which sysfs does not show below the PCI function. */
static bool is_enabled(const Critical *c, const char *dir) {
        _cleanup_free_ char *path = string_format("%s/driver", dir);
        char driver[SYSFS_ATTRIBUTE_MAX];

        return path && sysfs_link_name(c->fs, path, driver, sizeof(driver)) >= 0;
}

/* Marks all memory devices of a region. The region's attributes targetN have the names of the decoders. */
static int mark_region(const Critical *c, const Blocks *blocks, const char *region) {
        _cleanup_free_ char *dir = string_format(CXL "/%s", region);
        uint64_t start, size;
        bool online;
        int r = 0;

        if (!dir)
                return -ENOMEM;
        online = read_hex(c, dir, "resource", &start) && read_hex(c, dir, "size", &size) &&
                 is_online(c, blocks, start, size);
        if (!online && !is_enabled(c, dir))
                return 0;
        for (unsigned i = 0; r >= 0; i++) {
                _cleanup_free_ char *path = string_format("%s/target%u", dir, i);
                char decoder[SYSFS_ATTRIBUTE_MAX];

                if (!path)
                        return -ENOMEM;
                if (sysfs_read(c->fs, path, decoder, sizeof(decoder)) < 0)
                        break;
                if (*decoder && !strchr(decoder, '/'))
                        r = mark_target(c, decoder, region, online ? ONLINE : REGION);
        }
        return r;
}

static int mark_regions(const Critical *c) {
        _cleanup_names_ char **names = NULL;
        Blocks blocks = { 0 };
        bool listed = false;
        size_t n;
        int r = critical_list(c, CXL, &names, &n);

        for (size_t i = 0; i < n && r >= 0; i++) {
                if (strncmp(names[i], "region", strlen("region")) != 0)
                        continue;
                r = listed ? 0 : list_blocks(c, &blocks);
                listed = true;
                if (r >= 0)
                        r = mark_region(c, &blocks, names[i]);
        }
        (void) free_names(blocks.names, blocks.n);
        return r;
}

/* Marks the PCI function of a DAX device whose memory the driver kmem has added to a NUMA node, unless the node has no
 * memory online. */
static int mark_dax(const Critical *c, const char *name) {
        _cleanup_free_ char *link = string_format(DAX "/%s", name), *driver = string_format(DAX "/%s/driver", name);
        _cleanup_free_ char *path = string_format(DAX "/%s/target_node", name);
        char text[SYSFS_ATTRIBUTE_MAX];
        uint64_t node;

        if (!link || !driver || !path)
                return -ENOMEM;
        if (sysfs_link_name(c->fs, driver, text, sizeof(text)) < 0 || !streq(text, "kmem") ||
            sysfs_read(c->fs, path, text, sizeof(text)) < 0 || parse_unsigned(text, INT16_MAX, &node) < 0 ||
            read_node_memory(c, (int) node) == 0)
                return 0;
        return critical_mark_user(c, link, ONLINE);
}

int critical_mark_memory(const Critical *c) {
        Critical memory = *c;
        int r;

        read_gpus(c);
        memory.remedy =
                "End the use of the memory first, as with daxctl-offline-memory(1), then cxl-disable-region(1).";
        r = mark_regions(&memory);
        memory.remedy = "Take the memory offline first: daxctl-offline-memory(1), then daxctl reconfigure-device "
                        "--mode=devdax DEVICE.";
        return r < 0 ? r : critical_each(&memory, DAX, mark_dax);
}
