/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Records the files in sys/, proc/, run/udev/ and lib/modules/ that a scan or replay/check.c reads. Never reads a file
 * that can block (sriov_numvfs) or that wakes a device. */

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pci/header.h>
#include <sys/stat.h>

#include "host/driverlist.h"
#include "model/inventory.h"
#include "snapshot.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "util/tree.h"

#define DEVICES       "sys/bus/pci/devices"
#define CPUS          "sys/devices/system/cpu"
#define NODES         "sys/devices/system/node"
#define BLOCK_DEVICES "sys/class/block"
#define ENTRIES_MAX   65536U
#define CONFIG_PCI    256U
#define EXTENDED_MAX  64U /* the most extended capabilities that are searched */
#define DSN_OFFSET    4U

/* Replaces the serial number in config space: the Device Serial Number capability. */
static void replace_serial(const Recorder *r, unsigned char *config, size_t size) {
        size_t at = CONFIG_PCI;

        for (unsigned i = 0; i < EXTENDED_MAX && at >= CONFIG_PCI && at + 12 <= size; i++) {
                unsigned id = config[at] | (unsigned) config[at + 1] << 8;

                if (id == PCI_EXT_CAP_ID_DSN)
                        identities_replace_bytes(&r->identities, config + at + DSN_OFFSET, 8);
                at = (config[at + 2] >> 4 | (size_t) config[at + 3] << 4) & ~(size_t) 3;
        }
}

/* Returns true when the slot of the function has other functions. path: the function's directory. */
static bool shares_slot(const Recorder *r, const char *path) {
        const char *name = strrchr(path, '/');
        unsigned n = 0;
        PciAddress address;

        if (!name || pci_address_parse(name + 1, &address) < 0)
                return false;
        for (address.function = 0; address.function < 8; address.function++)
                n += record_exists(r, DEVICES, PCI_ADDRESS_STR(address));
        return n > 1;
}

/* Returns true if a scan reads the config space of the function: bridges and possible bridges (by class), functions
 * that share a slot, GPUs and other accelerators, and NICs. Never VFs, and never functions in D3cold, which the read
 * would wake. */
static bool wants_config(const Recorder *r, const Entry *entry) {
        int fd = entry->dir_fd;
        char buf[SYSFS_ATTRIBUTE_MAX];
        uint64_t class = 0;

        if (faccessat(fd, "physfn", F_OK, AT_SYMLINK_NOFOLLOW) >= 0)
                return false;
        if (sysfs_read_at(r->fs, fd, "power_state", buf, sizeof(buf)) > 0 && streq(buf, "D3cold"))
                return false;
        if (sysfs_read_at(r->fs, fd, "class", buf, sizeof(buf)) > 0)
                (void) parse_hex(buf, 0xffffff, &class);
        return (class >> 16 == 0x06 && (class >> 8 & 0xff) >= 0x04) ||
               pci_device_is_accelerator(&(PciDevice) { .class = (uint32_t) class }) ||
               pci_device_is_nic(&(PciDevice) { .class = (uint32_t) class }) ||
               faccessat(fd, "secondary_bus_number", F_OK, AT_SYMLINK_NOFOLLOW) >= 0 || shares_slot(r, entry->dir);
}

static int record_config(Recorder *r, const Entry *entry) {
        _cleanup_close_ int fd = -1;
        unsigned char config[TREE_CONFIG_MAX];
        ssize_t n;

        if (!wants_config(r, entry))
                return 0;
        fd = openat(entry->dir_fd, entry->name, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        n = fd < 0 ? -1 : pread(fd, config, sizeof(config), 0);
        if (n < 0)
                return errno == ENOENT ? 0 : record_unreadable(r, entry->path, -errno);
        replace_serial(r, config, (size_t) n);
        return record_bytes(r, entry->path, (const char *) config, (size_t) n);
}

/* Records a file without its content. drivers_probe, which is write-only, tells by its presence that the recorded list
 * of drivers is complete. */
static int record_presence(Recorder *r, const Entry *entry) {
        return faccessat(entry->dir_fd, entry->name, F_OK, 0) < 0 ? 0 : record_bytes(r, entry->path, "", 0);
}

/* Records an entry with the name of a block device: the kernel names the entry of a mounted file system like its block
 * device. Drops other entries. */
static int record_mounted(Recorder *r, const Entry *entry) {
        return record_exists(r, BLOCK_DEVICES, entry->name) ? record_entry(r, entry) : 0;
}

/* Returns whether the name of the device mapper device at dir_fd contains a WWID. The names of a multipath disk and its
 * partitions do, unless the admin chose the names. Returns true if there is no uuid file, as in old recordings: any
 * name may contain a WWID then. */
static bool is_wwid(const Recorder *r, int dir_fd, const char *name) {
        char uuid[SYSFS_ATTRIBUTE_MAX];
        const char *type;

        if (sysfs_read_at(r->fs, dir_fd, "uuid", uuid, sizeof(uuid)) < 0)
                return true;
        type = strstr(uuid, "mpath-");
        return type && strncmp(name, type + strlen("mpath-"), strlen(type + strlen("mpath-"))) == 0;
}

static int record_volume(Recorder *r, const Entry *entry) {
        _cleanup_free_ char *clean = NULL;
        char name[SYSFS_ATTRIBUTE_MAX];
        int e = sysfs_read_at(r->fs, entry->dir_fd, entry->name, name, sizeof(name) - 1);

        if (e < 0)
                return record_descriptor(r, e, entry->path);
        clean = !r->identities.keep && is_wwid(r, entry->dir_fd, name) ? identities_hash(&r->identities, name)
                                                                       : identities_scrub_volume(&r->identities, name);
        if (!clean || string_append(&clean, "", "\n") < 0)
                return -ENOMEM;
        return record_bytes(r, entry->path, clean, strlen(clean));
}

/*
 * Records the uuid file for is_wwid(). If identities are replaced, the recorded file is empty, because the recorded
 * name contains no WWID any more.
 */
static int record_uuid(Recorder *r, const Entry *entry) {
        return r->identities.keep ? record_entry(r, entry) : record_presence(r, entry);
}

/* Returns whether the kernel chose this name in the path of an export. An admin chose any other. */
static bool is_kernel_name(const char *name) {
        static const char *const names[] = { "sys",        "kernel",  "config",    "nvmet",       "subsystems",
                                             "namespaces", "target",  "core",      "device_path", "enable",
                                             "passthru",   "proc",    "spl",       "kstat",       "zfs",
                                             "udev_path",  "cluster", "heartbeat", "dev",         "usb_gadget",
                                             "functions",  "file" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (streq(names[i], name))
                        return true;
        return false;
}

/* Records an export or a ZFS pool, whose path has names that an admin chose. Replaces identifiers in them. */
static int record_named(Recorder *r, const Entry *entry) {
        _cleanup_free_ char *copy = strdup(entry->path), *path = NULL;
        char *rest = copy, *name;
        FILE *f = copy ? open_memstream(&path, &(size_t) { 0 }) : NULL;
        int e;

        if (!f)
                return -ENOMEM;
        while ((name = strsep(&rest, "/"))) {
                if (r->identities.keep || is_kernel_name(name))
                        (void) fputs(name, f);
                else
                        identities_write(&r->identities, name, true, f);
                if (rest)
                        (void) fputc('/', f);
        }
        if (fclose(f) != 0)
                return -ENOMEM;
        r->clean_paths = true;
        e = record_entry(r, &(Entry) { entry->dir_fd, entry->dir, entry->name, path });
        r->clean_paths = false;
        return e;
}

/* Records the directory of an imported ZFS pool. The files beside such directories are statistics. */
static int record_pool(Recorder *r, const Entry *entry) {
        struct stat st;

        return fstatat(entry->dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)
                       ? record_named(r, entry)
                       : 0;
}

static int look_for_member(char *line, void *userdata) {
        bool *is_member = userdata;

        *is_member = *is_member || streq(line, UDEV_ZFS_MEMBER);
        return 0;
}

/* If ZFS is loaded, records udev's data about a member of a ZFS pool; its label is the name of the pool. For any other
 * block device records an empty file, because its label is no name of a pool. Without ZFS records nothing. */
static int record_member(Recorder *r, const Entry *entry) {
        bool is_member = false;
        int fd;

        if (!record_exists(r, "proc/spl/kstat", "zfs"))
                return 0;
        fd = openat(entry->dir_fd, entry->name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || read_lines_fd(fd, look_for_member, &is_member) < 0 || is_member)
                return record_entry(r, entry);
        return record_bytes(r, entry->path, "", 0);
}

/* Records an entry of sys/block if the machine has no sys/class/block: a scan then reads sys/block instead. */
static int record_disk(Recorder *r, const Entry *entry) {
        return record_exists(r, "sys/class", "block") ? 0 : record_entry(r, entry);
}

/* Records a memory block only if the machine has CXL: there are thousands, and only those of CXL memory matter. */
static int record_block(Recorder *r, const Entry *entry) {
        return record_exists(r, "sys/bus/cxl", "devices") ? record_entry(r, entry) : 0;
}

/* Records a file of NVIDIA's driver, unless the power state of the GPU is known and is not D0: to answer, the driver
 * would wake the GPU. entry->dir ends with the address of the GPU. */
static int record_gpu(Recorder *r, const Entry *entry) {
        char path[128], buf[SYSFS_ATTRIBUTE_MAX];

        (void) snprintf(path, sizeof(path), DEVICES "/%.32s/power_state", strrchr(entry->dir, '/') + 1);
        if (sysfs_read(r->fs, path, buf, sizeof(buf)) > 0 && !streq(buf, "D0"))
                return 0;
        return record_entry(r, entry);
}

/* Records whether a CPU is online, but only if the list of online CPUs is missing: the read waits while the CPU changes
 * its state. */
static int record_cpu_state(Recorder *r, const Entry *entry) {
        return record_exists(r, CPUS, "online") ? 0 : record_entry(r, entry);
}

/* Records the mounts of process 1; of this process if this user may not read those. */
static int record_mounts(Recorder *r, const Entry *entry) {
        int fd = sysfs_open(r->fs, entry->path, O_RDONLY | O_NOCTTY | O_NONBLOCK), own_fd = -1;

        if (fd == -EACCES || fd == -EPERM)
                own_fd = sysfs_open(r->fs, "proc/self/mountinfo", O_RDONLY | O_NOCTTY | O_NONBLOCK);
        r->own_mounts = own_fd >= 0;
        return record_descriptor(r, own_fd < 0 ? fd : own_fd, entry->path);
}

/* Records modules.alias of the running kernel, from which the daemon reads the names of the VFIO variant drivers. */
static int record_aliases(Recorder *r, const Entry *entry) {
        char path[MODULES_ALIAS_MAX];

        return driver_list_modules_alias(r->fs, path) >= 0 && streq(path, entry->path) ? record_entry(r, entry) : 0;
}

/* The recorded parts. A component of a pattern is a name, a pattern of fnmatch() that contains '*', or a list of both
 * in braces; a component without '*' is taken literally. "." is the directory itself. Below sys/, links in the path of
 * an entry's directory are resolved, and the entry is recorded under the resolved path. Directories are recorded
 * without their contents, and links without their targets. */
static const struct Part {
        const char *pattern;
        int (*record)(Recorder *r, const Entry *entry); /* NULL: record_entry() */
} parts[] = {
        { "proc" },
        { "sys/{bus,devices}" },

        { "sys/bus/pci/drivers/*" },
        { "sys/bus/pci/drivers_probe", record_presence },
        { "sys/kernel/iommu_groups/*/{name,reserved_regions,type}" },
        { "sys/hypervisor/type" },
        { "sys/devices/system/xen_cpu/xen_cpu[0-9]*" },
        { DEVICES "/{.,*}" },
        /* Includes attributes that only the simulator reads, when it creates VFs. */
        { DEVICES "/*/{.,accel,boot_vga,class,current_link_speed,current_link_width,d3cold_allowed,device,driver,"
                  "driver_override,drm,infiniband,iommu_group,max_link_speed,max_link_width,net,numa_node,nvme,physfn,"
                  "power_state,reset_method,resource,revision,secondary_bus_number,sriov,"
                  "sriov_drivers_autoprobe,sriov_offset,sriov_stride,sriov_totalvfs,sriov_vf_device,subsystem_device,"
                  "subsystem_vendor,vendor,vfio-dev,virtfn*}" },
        { DEVICES "/*/power/control" },
        { DEVICES "/*/config", record_config },
        { DEVICES "/*/{accel,drm,infiniband,net,nvme,vfio-dev}/*" },
        { DEVICES "/*/vfio-dev/*/dev" },
        { DEVICES "/*/nvidia/{creatable_vgpu_types,current_vgpu_type}" },
        { DEVICES "/*/mdev_supported_types/*/{available_instances,name}" },
        { DEVICES "/*/*-*-*-*-*/mdev_type" },
        { DEVICES "/*/infiniband/*/{node_guid,sys_image_guid}" },
        { DEVICES "/*/net/*/{address,master}" },
        { DEVICES "/*/net/*/master/uevent" },

        { "sys/class/{block,net}/*" },
        { "sys/block/*", record_disk },
        { "sys/class/{block,net}/*/{.,lower_*}" },
        { BLOCK_DEVICES "/*/slaves/*" },
        { BLOCK_DEVICES "/*/dm/name", record_volume },
        { BLOCK_DEVICES "/*/dm/uuid", record_uuid },
        { BLOCK_DEVICES "/*/loop/backing_file" },
        { BLOCK_DEVICES "/*/bcache/." },
        { BLOCK_DEVICES "/zram*/backing_dev" },
        { BLOCK_DEVICES "/*/dev" },
        { "sys/class/nvme/*" },
        { "sys/class/rnbd-server/ctl" },
        { "sys/class/rnbd-server/ctl/devices/*/block_dev" },
        { "sys/kernel/config/nvmet/subsystems/*/namespaces/*/{device_path,enable}", record_named },
        { "sys/kernel/config/nvmet/subsystems/*/passthru/{device_path,enable}", record_named },
        { "sys/kernel/config/target/core/*/*/{enable,udev_path}", record_named },
        { "sys/kernel/config/cluster/*/heartbeat/*/dev", record_named },
        { "sys/kernel/config/usb_gadget/*/functions/mass_storage.*/lun.*/file", record_named },
        { "proc/spl/kstat/zfs/*", record_pool },
        { "run/udev/data/b*", record_member },
        { "sys/devices/virtual/nvme-subsystem/*/nvme*" }, /* links to the controllers */
        { "sys/devices/virtual/nvme-subsystem/*/nvme*/." },
        { "sys/dev/block/*" },
        { "sys/class/graphics/fb*" },
        { "sys/class/graphics/fb*/." },
        { "sys/class/vtconsole/*" },
        { "sys/class/vtconsole/*/name" },
        { "sys/fs/bcache/*/cache*" },
        { "sys/fs/bcachefs/*/dev-*/block" },
        { "sys/fs/btrfs/*/devices/*" },
        { "sys/fs/{erofs,ext4,f2fs,nilfs2,xfs}/*", record_mounted },
        { "proc/fs/{jbd2,ntfs3}/*", record_mounted },

        { CPUS "/{offline,online,cpu[0-9]*}" },
        { CPUS "/cpu[0-9]*/online", record_cpu_state },
        { CPUS "/cpu[0-9]*/topology/{core_cpus_list,die_cpus_list,physical_package_id,thread_siblings_list}" },
        { CPUS "/cpu[0-9]*/cache/index3/shared_cpu_list" },
        { "sys/devices/{cpu_atom,cpu_lowpower}/cpus" },
        { NODES "/{.,online,node[0-9]*}" },
        { NODES "/node[0-9]*/{cpulist,distance,meminfo}" },
        { NODES "/node[0-9]*/hugepages/*/{nr_hugepages,free_hugepages}" },
        { "sys/bus/cxl/devices/{decoder*,region*}" },
        { "sys/bus/cxl/devices/endpoint*/{.,uport}" },
        { "sys/bus/cxl/devices/decoder*/." },
        { "sys/bus/cxl/devices/region*/{driver,resource,size,target[0-9]*}" },
        { "sys/bus/cxl/devices/mem*/." },
        { "sys/bus/dax/devices/*" },
        { "sys/bus/dax/devices/*/{driver,target_node}" },
        { "sys/devices/system/memory/block_size_bytes" },
        { "sys/devices/system/memory/memory[0-9]*/state", record_block },
        { "sys/kernel/mm/hugepages/*/{nr_hugepages,free_hugepages}" },
        { "sys/module/vfio/parameters/enable_unsafe_noiommu_mode" },
        { "sys/module/vfio_pci/parameters/disable_idle_d3" },
        { "sys/module/vfio_iommu_type1/parameters/{allow_unsafe_interrupts,dma_entry_limit}" },
        { "sys/module/kvm_amd/parameters/{sev,sev_snp}" },
        { "sys/module/kvm_intel/parameters/tdx" },
        { "sys/fs/cgroup/misc.capacity" },
        { "proc/{cmdline,cpuinfo,meminfo,swaps}" },
        { "proc/driver/nvidia/gpus/*/information", record_gpu },
        { "proc/driver/nvidia/gpus/*/numa_status", record_gpu },
        { "proc/net/{route,ipv6_route}" },
        { "proc/sys/kernel/{arch,osrelease}" },
        { "proc/xen/capabilities" },
        { "proc/1/mountinfo", record_mounts },
        { "lib/modules/*/modules.alias", record_aliases },
};

static int walk(Recorder *r, const struct Part *part, const char *dir, const char *pattern);

/* Visits an entry that a pattern matched so far. rest: the pattern below the entry; NULL: record the entry itself. */
static int visit(Recorder *r, const struct Part *part, const Entry *entry, const char *rest) {
        _cleanup_free_ char *real = NULL;
        int e;

        if (!rest)
                return part->record ? part->record(r, entry) : record_entry(r, entry);
        if (strncmp(entry->path, "sys/", strlen("sys/")) != 0)
                return walk(r, part, entry->path, rest);
        e = sysfs_realpath(r->fs, entry->path, &real);
        if (e < 0)
                return e == -ENOMEM ? e : 0; /* the entry is missing, or was removed meanwhile */
        return walk(r, part, real, rest);
}

static int visit_name(Recorder *r, const struct Part *part, int fd, const char *dir, const char *name,
                      const char *rest) {
        _cleanup_free_ char *path =
                streq(name, ".") ? strdup(dir) : string_format("%s%s%s", dir, *dir ? "/" : "", name);

        return path ? visit(r, part, &(Entry) { fd, dir, name, path }, rest) : -ENOMEM;
}

/* Visits the entries of a directory whose names match the pattern. */
static int visit_matching(Recorder *r, const struct Part *part, int fd, const char *dir, const char *pattern,
                          const char *rest) {
        _cleanup_names_ char **names = NULL;
        size_t n;
        int e = list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);

        if (e < 0)
                return record_descriptor(r, e, dir);
        for (size_t i = 0; i < n && e >= 0; i++)
                if (fnmatch(pattern, names[i], 0) == 0)
                        e = visit_name(r, part, fd, dir, names[i], rest);
        return e;
}

static int walk(Recorder *r, const struct Part *part, const char *dir, const char *pattern) {
        size_t length = strcspn(pattern, "/");
        const char *rest = pattern[length] ? pattern + length + 1 : NULL;
        bool braces = *pattern == '{', list = strcspn(pattern, "*") < length;
        _cleanup_free_ char *component = strndup(pattern + braces, length - 2 * braces);
        _cleanup_close_ int fd = sysfs_open(r->fs, dir, (list ? O_RDONLY : O_PATH) | O_DIRECTORY);
        char *words = component, *word;
        int e = 0;

        if (!component)
                return -ENOMEM;
        if (fd < 0)
                return record_descriptor(r, fd, dir);
        while (e >= 0 && (word = strsep(&words, ",")))
                e = strchr(word, '*') ? visit_matching(r, part, fd, dir, word, rest)
                                      : visit_name(r, part, fd, dir, word, rest);
        return e;
}

int record_parts(Recorder *r) {
        int e = 0;

        for (size_t i = 0; i < ELEMENTSOF(parts) && e >= 0; i++)
                e = walk(r, &parts[i], "", parts[i].pattern);
        return e;
}
