/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps the inventory up to date: scans the node, reads devices again, and reacts to the differences. */

#include <errno.h>

#include "facts.h"
#include "host/critical.h"
#include "host/driverlist.h"
#include "host/numa.h"
#include "host/scan.h"
#include "model/mdev-slots.h"
#include "plan/device-state.h"
#include "util/digest.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

void log_policy(const Policy *policy) {
        for (size_t i = 0; i < policy->n_problems; i++)
                log_full(LOG_WARNING, 0, (&(LogFields) { .id = MESSAGE_CONFIG_LINE }), "%s", policy->problems[i]);
}

/* Records that an allocated device has disappeared or is back. The allocation keeps the device. */
static void record_presence(Manager *m, const Claim *claim, bool there) {
        const char *device = PCI_ADDRESS_STR(claim->address), *name = claim->allocation->name;

        if (there)
                note_event(m, HISTORY_BACK, claim->address, claim->allocation,
                           "%s, allocated to '%s', is on this node again.", device, name);
        else
                note_event(m, HISTORY_MISSING, claim->address, claim->allocation,
                           "%s is not on this node any more; '%s' keeps it until the allocation is released.", device,
                           name);
}

static void check_claims(Manager *m, const Inventory *old) {
        for (size_t i = 0; i < m->host.ledger->n_claims; i++) {
                const Claim *claim = &m->host.ledger->claims[i];
                bool there = inventory_find(m->host.inventory, claim->address);

                if (there != !!inventory_find(old, claim->address))
                        record_presence(m, claim, there);
        }
}

static bool has_vfs_job(const Manager *m, PciAddress pf) {
        for (size_t i = 0; i < m->jobs.n; i++)
                if (!m->jobs.list[i]->gone && streq(m->jobs.list[i]->kind->verb, MANAGER_VERB_VFS) &&
                    streq(m->jobs.list[i]->subject, PCI_ADDRESS_STR(pf)))
                        return true;
        return false;
}

/* Returns true when another program changed the number of VFs of a PF with VirtualFunctions=. Two changes have another
 * cause: the VFs disappear when the driver of the PF changes, and mlx4_core creates the VFs of its module options when
 * it is loaded. */
static bool was_changed(const Manager *m, const PciDevice *before, const PciDevice *now) {
        return before->n_virtfns != now->n_virtfns && now->driver && streq_ptr(before->driver, now->driver) &&
               !pci_device_is_mlx4_pf(now) && policy_vf_pool(m->host.policy, now) && !has_vfs_job(m, now->address) &&
               !orphans_have(&m->jobs.orphans, now->address);
}

static void contest(Manager *m, const PciDevice *before, const PciDevice *now) {
        bool known = device_status_get(&m->host.status, now->address, DEVICE_CONTESTED);
        size_t ours = known ? device_status_find(&m->host.status, now->address)->n_vfs : before->n_virtfns;
        const char *address = PCI_ADDRESS_STR(now->address);
        _cleanup_free_ char *message = NULL;

        if (now->n_virtfns == ours) {
                (void) device_status_set(&m->host.status, now->address, DEVICE_CONTESTED, NULL);
                note_event(m, HISTORY_UNCONTESTED, now->address, NULL, "%s has %zu VF%s again.", address, ours,
                           PLURAL(ours));
                return;
        }
        if (string_replace(&message, "Another program changed the number of its VFs from %zu to %zu.", ours,
                           now->n_virtfns) < 0 ||
            device_status_set_contested(&m->host.status, now->address, ours, message) < 0)
                return;
        note_event(m, HISTORY_CONTESTED, now->address, NULL,
                   "Another program changed the number of VFs of %s from %zu to %zu.", address, ours, now->n_virtfns);
}

/* Reports PFs whose number of VFs another program has changed. */
static void check_vfs(Manager *m, const Inventory *old) {
        for (size_t i = 0; m->announced && i < m->host.inventory->n_devices; i++) {
                const PciDevice *now = &m->host.inventory->devices[i];
                const PciDevice *before = inventory_find(old, now->address);

                if (now->type != PCI_TYPE_PF)
                        continue;
                if (!before || before->instance != now->instance)
                        (void) device_status_set(&m->host.status, now->address, DEVICE_CONTESTED, NULL);
                else if (was_changed(m, before, now))
                        contest(m, before, now);
        }
}

/* Notes as new the devices that `old` does not have. At startup all devices count as new without a note, and START_VFS
 * handles the VFs that it creates. */
static void find_arrived(Manager *m, const Inventory *old) {
        if (!m->announced && m->settle.phase <= START_VFS)
                return;
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                const PciDevice *now = &m->host.inventory->devices[i], *before = inventory_find(old, now->address);

                if (!before || before->instance != now->instance)
                        note_arrived(m, now->address);
        }
}

/* Returns true when the device is on a VFIO driver and may still suspend there: another program bound it, or a crash
 * came between the bind and the write that keeps the device out of D3. Returns false for a device of Nova, which is
 * cleaned first. */
static bool may_suspend(const Pool *pool, const PciDevice *dev) {
        return dev->vfio && dev->runtime_pm && pool->scheduler != POOL_SCHEDULER_NOVA;
}

bool manager_wants_binding(const HostState *host, const PciDevice *dev) {
        HostView view = host_state_view(host);
        const Pool *pool = policy_pool(host->policy, dev);

        return pool && !pool->vgpu_type && (pool->bind == POOL_BIND_START || pool->scheduler == POOL_SCHEDULER_NOVA) &&
               ((!dev->vfio && !streq_ptr(dev->driver, host->config->vfio_driver)) || may_suspend(pool, dev)) &&
               dev->vgpu_type == 0 && device_state(&view, dev, NULL) == DEVICE_STATE_AVAILABLE;
}

int manager_list_unbound(const Manager *m, PciAddress **ret, size_t *ret_n) {
        int r = 0;

        for (size_t i = 0; m->announced && r >= 0 && i < m->host.inventory->n_devices; i++)
                if (manager_wants_binding(&m->host, &m->host.inventory->devices[i]))
                        r = pci_address_append(ret, ret_n, m->host.inventory->devices[i].address);
        return r;
}

void manager_bind_late(Manager *m, const PciAddress *unbound, size_t n) {
        for (size_t i = 0; m->announced && i < m->host.inventory->n_devices; i++) {
                const PciDevice *dev = &m->host.inventory->devices[i];

                if (manager_wants_binding(&m->host, dev) && !pci_addresses_have(unbound, n, dev->address))
                        note_arrived(m, dev->address);
        }
}

/* Makes inv the inventory, after marking the devices that the host needs. Takes ownership of inv. Returns 0 or a
 * negative errno. */
static int take_inventory(Manager *m, Inventory *inv) {
        _cleanup_(cleanup_inventory_free) Inventory *old = NULL;
        bool was_conflict = m->host.policy && m->host.policy->conflict.verdict != VERDICT_NONE;
        const Refusal *twice;
        int r = host_state_take_inventory(&m->host, m->fs, inv, &old);

        if (r < 0)
                return r;
        note_facts(m);
        for (size_t i = 0; i < inv->n_devices; i++)
                manager_name_gpu(m, &inv->devices[i]);
        manager_read_serials(m, old);
        manager_apply_modules(m, old);
        twice = &m->host.policy->conflict;
        if (!old)
                log_policy(m->host.policy);
        if (m->announced && twice->verdict != VERDICT_NONE && !was_conflict)
                log_warning("%s %s", twice->message, twice->remedy);
        if (!old)
                return 0;
        manager_write_options(m, false);
        check_claims(m, old);
        check_vfs(m, old);
        manager_forget_health(m);
        find_arrived(m, old);
        note_all_devices(m);
        return 0;
}

int manager_scan(Manager *m) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = NULL;
        _cleanup_free_ PciAddress *busy = NULL;
        size_t n_busy = 0;
        int r = manager_busy_devices(m, &busy, &n_busy);

        log_debug("Reading the whole node.");
        if (r >= 0)
                r = scan_inventory_except(m->fs, m->host.inventory, false, busy, n_busy, &inv);
        if (r >= 0)
                r = take_inventory(m, TAKE_PTR(inv));
        return r < 0 ? log_error_errno(r, "Failed to read the node: %m") : 0;
}

int manager_scan_devices(Manager *m, const PciAddress *devices, size_t n, bool locked) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = NULL;
        _cleanup_free_ PciAddress *busy = NULL;
        size_t n_busy = 0;
        int r = manager_busy_devices(m, &busy, &n_busy);

        for (size_t i = 0; r >= 0 && locked && i < n; i++)
                r = pci_address_append(&busy, &n_busy, devices[i]);
        if (r < 0)
                return r;
        r = scan_update(m->fs, m->host.inventory, devices, n, locked, busy, n_busy, &inv);
        if (r < 0)
                return r;
        return take_inventory(m, TAKE_PTR(inv));
}

/* Makes the policy again after facts have changed. Returns 1 or a negative errno. */
static int renew_policy(Manager *m) {
        int r = host_state_remake_policy(&m->host);

        if (r < 0)
                return r;
        manager_write_options(m, false);
        note_all_devices(m);
        return 1;
}

/* Reads a device again. Returns 1 when its driver, override, power management, reset methods or vGPUs have changed, or
 * when an InfiniBand PF has become able or unable to set GUIDs; 0 when none of these has changed, or the device is not
 * in the inventory; -ESTALE when the device must be scanned; or -ENOMEM. */
static int refresh_device(Manager *m, PciAddress address, bool locked) {
        const PciDevice *found = inventory_find(m->host.inventory, address);
        _cleanup_free_ char *driver = NULL, *override = NULL, *reset_methods = NULL, *vgpu_types = NULL,
                            *mdev_types = NULL, *mdevs = NULL;
        bool differs = false, remake;
        PciDevice *dev, before;
        int r;

        if (!found)
                return 0;
        dev = &m->host.inventory->devices[inventory_device_index(m->host.inventory, found)];
        if (string_copy(&driver, dev->driver) < 0 || string_copy(&override, dev->driver_override) < 0 ||
            string_copy(&reset_methods, dev->reset_methods) < 0 || string_copy(&vgpu_types, dev->vgpu_types) < 0 ||
            string_copy(&mdev_types, dev->mdev_types) < 0 || string_copy(&mdevs, dev->mdevs) < 0)
                return -ENOMEM;
        before = *dev;
        before.vgpu_types = vgpu_types;
        before.mdev_types = mdev_types;
        before.mdevs = mdevs;
        /* A process that hangs at a stuck device may hold the device lock for ever. */
        locked = locked || device_status_get(&m->host.status, address, DEVICE_STUCK);
        r = scan_refresh(m->fs, dev, locked || ((vgpu_types || mdev_types) && manager_is_busy(m, address)));
        if (r < 0)
                return r == -ENOMEM ? r : -ESTALE;
        if (pci_device_has_slots(dev) && inventory_fill_slots(m->host.inventory, dev) < 0)
                return -ENOMEM;
        manager_name_gpu(m, dev);
        remake = before.sets_guids != dev->sets_guids && pci_device_needs_guids(dev);
        if (!streq_ptr(driver, dev->driver) || !streq_ptr(override, dev->driver_override) ||
            before.has_override != dev->has_override || before.runtime_pm != dev->runtime_pm ||
            before.d3cold != dev->d3cold || !streq_ptr(reset_methods, dev->reset_methods) ||
            !pci_device_same_vgpu(&before, dev)) {
                note_facts(m);
                differs = true;
                /* The types decide how many slots a pool offers. The read before this one found no types, for example
                 * because the GPU was busy. */
                remake = remake || (mdev_types && !*mdev_types);
        }
        if (remake)
                return renew_policy(m);
        if (differs)
                policy_recheck(m->host.policy, dev);
        return differs;
}

int manager_refresh(Manager *m, const PciAddress *devices, size_t n, bool locked) {
        int differs = 0;

        for (size_t i = 0; differs >= 0 && i < n; i++) {
                PciAddress function = pci_address_function(devices[i]);
                int r;

                /* Reading a GPU also reads all its slots of mediated devices, so read it once. */
                if (i > 0 && pci_address_equal(function, pci_address_function(devices[i - 1])))
                        continue;
                r = refresh_device(m, function, locked);
                differs = r < 0 ? r : differs | r;
        }
        if (differs == -ESTALE)
                return manager_scan(m) < 0 ? -ENOMEM : 1;
        return differs;
}

/* Appends all VFs of the PF of `vf`; or if `vf` is a slot for mediated devices, all slots of its GPU. Creating a vGPU
 * changes which types the others can create. */
static int append_family(const Inventory *inv, const PciDevice *vf, PciAddress **devices, size_t *n) {
        const PciDevice *pf = inventory_find(inv, vf->physfn);
        int r = 0;

        for (size_t i = 0; pf && r == 0 && i < pf->n_vfs; i++)
                r = pci_address_append(devices, n, pf->vfs[i]);
        return r;
}

int manager_refresh_groups(Manager *m, const Allocation *a) {
        _cleanup_free_ PciAddress *devices = NULL;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, a->devices[i].address);
                const IommuGroup *g = dev ? inventory_find_group(m->host.inventory, dev->iommu_group) : NULL;

                if (dev && a->devices[i].vgpu_type > 0)
                        r = append_family(m->host.inventory, dev, &devices, &n);
                /* If a slot is missing, read its GPU, because the driver may have registered its types in the
                 * meantime. */
                if (!dev && a->devices[i].address.instance > 0)
                        r = pci_address_append(&devices, &n, pci_address_function(a->devices[i].address));
                if (dev && !g)
                        r = pci_address_append(&devices, &n, dev->address);
                for (size_t j = 0; g && r == 0 && j < g->n_members; j++)
                        r = pci_address_append(&devices, &n, m->host.inventory->devices[g->members[j]].address);
        }
        pci_addresses_sort(devices, &n);
        return r < 0 ? r : manager_refresh(m, devices, n, false);
}

/* Returns true when the device has vGPU types, or when its driver may have registered types after the last read. */
static bool may_have_vgpus(const Manager *m, const PciDevice *dev) {
        const Pool *pool = policy_pool(m->host.policy, dev);

        return dev->vgpu_types || (pool && pool->vgpu_type);
}

static int refresh_vgpus(Manager *m) {
        _cleanup_free_ PciAddress *vfs = NULL;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < m->host.inventory->n_devices; i++)
                if (may_have_vgpus(m, &m->host.inventory->devices[i]))
                        r = pci_address_append(&vfs, &n, m->host.inventory->devices[i].address);
        return r < 0 ? r : manager_refresh(m, vfs, n, false);
}

int manager_refresh_guids(Manager *m) {
        _cleanup_free_ PciAddress *pfs = NULL;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < m->host.inventory->n_devices; i++) {
                const PciDevice *pf = &m->host.inventory->devices[i];

                if (pf->n_vfs > 0 && pci_device_needs_guids(pf) && !pf->sets_guids)
                        r = pci_address_append(&pfs, &n, pf->address);
        }
        /* locked is true, because a job may hold the device lock of a PF. */
        return r < 0 ? r : manager_refresh(m, pfs, n, true);
}

int manager_refresh_refused(Manager *m) {
        int vgpus = refresh_vgpus(m), guids = vgpus < 0 ? vgpus : manager_refresh_guids(m);

        return guids < 0 ? guids : vgpus | guids;
}

/* Computes a digest of which devices the host needs. */
static uint64_t critical_digest(const Inventory *inv) {
        uint64_t digest = digest_string(DIGEST_START, inv->critical_error);

        for (size_t i = 0; i < inv->n_devices; i++) {
                digest = digest_string(digest, inv->devices[i].critical);
                digest = digest_string(digest, inv->devices[i].console);
                digest = digest_number(digest, (int64_t) inv->devices[i].online_memory);
        }
        return digest;
}

/* Computes a digest of the CPUs and the memory on which the promises to allocations depend. */
static uint64_t capacity_digest(const Inventory *inv) {
        uint64_t digest = DIGEST_START;

        for (size_t i = 0; i < inv->n_cpus; i++)
                digest = digest_number(digest, inv->cpus[i].id);
        for (size_t i = 0; i < inv->n_nodes; i++) {
                const NumaNode *node = &inv->nodes[i];

                digest = digest_number(digest, (int64_t) node->memory);
                for (size_t j = 0; j < node->n_pages; j++)
                        digest = digest_number(digest, (int64_t) node->pages[j].total);
        }
        return digest;
}

int manager_refresh_nodes(Manager *m) {
        uint64_t before = capacity_digest(m->host.inventory);
        int r = numa_refresh(m->fs, m->host.inventory);

        if (r == -ESTALE)
                return manager_scan(m) < 0 ? -ENOMEM : 1;
        if (r == 0 && capacity_digest(m->host.inventory) != before)
                note_facts(m);
        return r;
}

int manager_refresh_drivers(Manager *m) {
        _cleanup_free_ PciAddress *unbound = NULL;
        size_t n = 0;
        int r = manager_list_unbound(m, &unbound, &n);

        if (r < 0)
                return r;
        r = driver_list_refresh(m->fs, m->host.inventory);
        if (r <= 0)
                return r;
        note_facts(m);
        r = renew_policy(m);
        manager_bind_late(m, unbound, n);
        return r;
}

int manager_refresh_host(Manager *m) {
        uint64_t before = critical_digest(m->host.inventory);
        int r = critical_mark(m->fs, m->host.config, m->host.inventory);

        return r < 0 || critical_digest(m->host.inventory) == before ? r : renew_policy(m);
}
