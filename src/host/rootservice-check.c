/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checks of passthroughd-root before it does what a request asks: the configuration, sysfs and the ledger must
 * allow the request. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/domain-facts.h"
#include "host/nvidia.h"
#include "host/scan.h"
#include "ledger/ledger-file.h"
#include "ledger/ledger.h"
#include "plan/mlx4.h"
#include "rootservice-internal.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

typedef int (*TakeAllocation)(const Allocation *a, void *userdata);

typedef struct LedgerReader {
        TakeAllocation take;
        void *userdata;
        bool whole; /* a file that cannot be used makes the check fail, because it may be about any device */
} LedgerReader;

static int skip_unusable(const LedgerReader *l, const char *directory, const char *file, const char *why) {
        if (!l->whole)
                return 0;
        return log_denied("the ledger's %s/%s may claim the device, and cannot be used: %s. Repair it, or move it away "
                          "and restart the daemon.",
                          directory, file, why);
}

/* Calls take() for the allocation in a file. An unusable file is skipped, or denies the request if l->whole. The daemon
 * may remove the file meanwhile. */
static int read_record(const LedgerReader *l, int dir_fd, const char *directory, const char *file) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        _cleanup_free_ char *text = NULL, *message = NULL;
        size_t size;
        int r;

        if (*file == '.')
                return 0;
        r = read_file_at(dir_fd, file, LEDGER_FILE_MAX, &text, &size);
        if (r < 0)
                return r == -ENOENT && faccessat(dir_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0
                               ? 0
                               : skip_unusable(l, directory, file, strerror(-r));
        if (ledger_file_parse(text, size, &a, &message) != LEDGER_FILE_OK)
                return skip_unusable(l, directory, file, message ?: "out of memory");
        return l->take(a, l->userdata);
}

static int read_records(const LedgerReader *l, int state_fd, const char *directory) {
        _cleanup_close_ int fd = openat(state_fd, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_names_ char **names = NULL;
        struct stat st;
        size_t n = 0;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (st.st_mode & (S_IWGRP | S_IWOTH))
                return skip_unusable(l, directory, "", "other users can write to it");
        r = list_dir_at(fd, ".", LEDGER_ALLOCATIONS_MAX * 2, &names, &n);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = read_record(l, fd, directory, names[i]);
        return r;
}

/* Calls take() for each allocation and each quarantined device, until it returns a value other than 0, which is the
 * result. Returns a negative errno if the ledger cannot be read. If other users can write to the state directory, the
 * ledger counts as empty. */
static int read_ledger(const RootHost *h, const LedgerReader *l) {
        _cleanup_close_ int fd = open(h->state_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat st;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return log_error_errno(-errno, "Failed to open the state directory %s: %m", h->state_directory);
        if (st.st_mode & (S_IWGRP | S_IWOTH))
                return 0;
        r = read_records(l, fd, "allocations");
        return r != 0 ? r : read_records(l, fd, "quarantine");
}

static int refuse_twice(const char *device, const Allocation *a) {
        return log_denied("two files of the ledger claim %s, one of them that of '%s'. Move the wrong one away and "
                          "restart the daemon.",
                          device, a->name);
}

typedef struct RootView {
        Inventory *inventory;
        Policy *policy;
} RootView;

static void view_done(RootView *v) {
        (void) policy_free(v->policy);
        (void) inventory_free(v->inventory);
}

/* Reads the given devices, and the devices that their pools depend on. */
static int view_read(const RootHost *h, const PciAddress *devices, size_t n, RootView *ret) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        int r = sysfs_new(h->sysroot, &fs);

        if (r >= 0)
                r = scan_identities(fs, devices, n, &ret->inventory);
        if (r >= 0)
                r = policy_new(h->config, ret->inventory, &ret->policy);
        return r < 0 ? log_error_errno(r, "Failed to read the devices: %m") : 0;
}

/* Returns the pool of a function or slot. For an unknown slot, returns the pool of its GPU. Returns NULL if the device
 * does not exist or is in no pool. */
static const Pool *find_pool_of(const RootView *v, PciAddress device) {
        const PciDevice *dev =
                inventory_find(v->inventory, device) ?: inventory_find(v->inventory, pci_address_function(device));

        return dev ? policy_pool(v->policy, dev) : NULL;
}

typedef struct Cleaning {
        const Pool *pool;
        const Inventory *inventory;
        const PciAddress *devices;
        size_t n;
        bool *returning; /* by index in devices: the device is returning to the host */
} Cleaning;

/*
 * Returns true when the allocation has the device, the PF of this VF, a VF of this PF, the GPU of this slot, or a slot
 * of this GPU. dev: the device in the inventory; NULL if it is missing there. Lost devices do not count.
 */
static bool has_hardware(const Allocation *a, PciAddress device, const PciDevice *dev) {
        const PciAddress parent = dev && dev->type == PCI_TYPE_VF ? dev->physfn : pci_address_function(device);

        for (const AllocationDevice *d = a->devices; d < allocation_devices_end(a); d++)
                if (!d->lost && (pci_address_equal(d->address, device) || pci_address_equal(d->address, parent) ||
                                 (d->is_vf && pci_address_equal(d->physfn, device))))
                        return true;
        return false;
}

static int note_returning(const Allocation *a, void *userdata) {
        Cleaning *c = userdata;

        for (size_t i = 0; i < c->n; i++) {
                const PciAddress device = c->devices[i];
                const AllocationDevice *d = allocation_find_device(a, device);

                if (!has_hardware(a, device, inventory_find(c->inventory, device)))
                        continue;
                if (!d || !streq_ptr(d->pool, c->pool->name) ||
                    (a->state != ALLOCATION_RELEASING && d->phase != DEVICE_PHASE_DETACHING))
                        return log_denied("the ledger says that '%s' has %s, and does not say that the device is on "
                                          "its way back to pool '%s'.",
                                          a->name, PCI_ADDRESS_STR(device), c->pool->name);
                if (c->returning[i])
                        return refuse_twice(PCI_ADDRESS_STR(device), a);
                c->returning[i] = true;
        }
        return 0;
}

static int check_returning(const RootHost *h, const RootView *view, const Pool *pool, const PciAddress *devices,
                           size_t n) {
        _cleanup_free_ bool *returning = calloc(n, sizeof(*returning));
        Cleaning cleaning = {
                .pool = pool, .inventory = view->inventory, .devices = devices, .n = n, .returning = returning
        };
        int r = returning ? read_ledger(h, &(LedgerReader) { note_returning, &cleaning, true }) : -ENOMEM;

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                if (find_pool_of(view, devices[i]) != pool)
                        r = log_denied("%s is no device of pool '%s' of the configuration.",
                                       PCI_ADDRESS_STR(devices[i]), pool->name);
                else if (!returning[i])
                        r = log_denied("the ledger does not say that %s is on its way back to pool '%s'.",
                                       PCI_ADDRESS_STR(devices[i]), pool->name);
                if (r < 0)
                        return r;
        }
        return r;
}

int root_check_clean(const RootHost *h, const Pool *pool, const PciAddress *devices, size_t n) {
        _cleanup_(view_done) RootView view = { 0 };
        int r = root_check_command(pool);

        if (r < 0)
                return r;
        r = view_read(h, devices, n, &view);
        return r < 0 ? r : check_returning(h, &view, pool, devices, n);
}

typedef struct Plugging {
        const char *device; /* as domain_facts_hostdev() formats it */
        PlugAction action;
        bool found;
        PciAddress address; /* address of the device in the ledger */
        DeviceRole role;
} Plugging;

/* Called for each allocation of the ledger: looks for the device in it. An attach needs a device in the phase
 * "attaching", and no other entry may have the device. A detach accepts "detaching", and also "attaching", because the
 * undo of an attach detaches. Returns 0, or a negative errno, which is logged. */
static int find_plugged(const Allocation *a, void *userdata) {
        Plugging *p = userdata;

        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];

                if (d->lost || !streq(ALLOCATION_DEVICE_SOURCE(d), p->device))
                        continue;
                if (d->phase != DEVICE_PHASE_ATTACHING &&
                    (p->action != PLUG_DETACH || d->phase != DEVICE_PHASE_DETACHING)) {
                        if (p->action == PLUG_DETACH)
                                continue;
                        return log_denied("the ledger says that '%s' has %s, and does not say that the device is "
                                          "being attached.",
                                          a->name, p->device);
                }
                if (p->found && p->action == PLUG_ATTACH)
                        return refuse_twice(p->device, a);
                p->found = true;
                p->address = d->address;
                p->role = d->role;
        }
        return 0;
}

int root_check_plug(const RootHost *h, PlugAction action, const char *hostdev) {
        char device[UUID_STRING_MAX];
        Plugging plugging = { .device = device, .action = action };
        _cleanup_(view_done) RootView view = { 0 };
        int r;

        if (action == PLUG_DESCRIBE)
                return 0;
        if (domain_facts_hostdev(hostdev, device) < 0)
                return log_denied("the request's text is not the <hostdev> of exactly one device.");
        r = read_ledger(h, &(LedgerReader) { find_plugged, &plugging, action == PLUG_ATTACH });
        if (r < 0)
                return r;
        if (!plugging.found)
                return log_denied("the ledger does not say that %s is being attached or detached.", device);
        /* A device that has left its pool, or is gone, must still be taken from its guest. */
        if (action == PLUG_DETACH)
                return r;
        r = view_read(h, &plugging.address, 1, &view);
        if (r < 0)
                return r;
        if (plugging.role == DEVICE_ROLE_COMPANION ? !inventory_find(view.inventory, plugging.address)
                                                   : !find_pool_of(&view, plugging.address))
                return log_denied("%s is in no pool of the configuration.", device);
        return 0;
}

/* Returns 1 when the line, n bytes long, has the options for some pool, 0 when not, or -ENOMEM. */
static int is_wanted(const Config *c, const char *line, size_t n) {
        for (size_t i = 0; i < c->n_pools; i++) {
                _cleanup_free_ char *wanted = NULL;

                if (c->pools[i].virtual_functions == 0)
                        continue;
                if (mlx4_format_options(&c->pools[i], &wanted) < 0)
                        return -ENOMEM;
                if (strlen(wanted) == n && memcmp(wanted, line, n) == 0)
                        return true;
        }
        return false;
}

int root_check_options(const Config *c, const char *text) {
        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n");
                int r = *line == '#' ? true : is_wanted(c, line, n);

                if (r < 0)
                        return r;
                if (r == 0)
                        return log_denied("no pool of the configuration wants these options of mlx4_core.");
                line += n + (line[n] == '\n');
        }
        return 0;
}

typedef struct Claims {
        const PartitionsPayload *partitions;
        uint64_t found; /* bit i: an allocation has partition i of the request */
} Claims;

static int note_claims(const Allocation *a, void *userdata) {
        Claims *c = userdata;

        for (size_t i = 0; i < c->partitions->n; i++)
                if (a->partition >= 0 && (unsigned) a->partition == c->partitions->ids[i])
                        c->found |= UINT64_C(1) << i;
        return 0;
}

int root_check_partitions(const RootHost *h, const PartitionsPayload *p) {
        Claims claims = { .partitions = p };
        int r = p->active != 0 ? read_ledger(h, &(LedgerReader) { note_claims, &claims, false }) : 0;

        if (r != 0)
                return r;
        for (size_t i = 0; i < p->n; i++) {
                if (!fabric_table_find(&h->config->fabric, p->ids[i]))
                        r = log_denied("the configuration has no NVLink partition %u.", p->ids[i]);
                else if ((p->active & ~claims.found) >> i & 1)
                        r = log_denied("the ledger has no allocation with NVLink partition %u.", p->ids[i]);
                if (r != 0)
                        return r;
        }
        return r;
}

static int check_gpu(const RootHost *h, const RootView *view, RootAction action, PciAddress gpu) {
        const PciDevice *dev = inventory_find(view->inventory, gpu);
        const Pool *pool = find_pool_of(view, gpu);

        if (!dev || !pool)
                return log_denied("%s is in no pool of the configuration.", PCI_ADDRESS_STR(gpu));
        if (action == ROOT_MODULE)
                return pool_asks_library(pool) ? 0
                                               : log_denied("%s is in no pool with Fabric=yes or ConfidentialMode=.",
                                                            PCI_ADDRESS_STR(gpu));
        if (!streq_ptr(dev->driver, NVIDIA_DRIVER))
                return log_denied("%s is not bound to NVIDIA's driver.", PCI_ADDRESS_STR(gpu));
        return action == ROOT_PERSISTENCE ? 0 : check_returning(h, view, pool, &gpu, 1);
}

int root_check_gpus(const RootHost *h, RootAction action, const PciAddress *gpus, size_t n, int32_t *results) {
        _cleanup_(view_done) RootView view = { 0 };
        bool any = false;
        int r = view_read(h, gpus, n, &view);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                results[i] = check_gpu(h, &view, action, gpus[i]);
                any = any || results[i] == 0;
        }
        return any ? 0 : results[0];
}
