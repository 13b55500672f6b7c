/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists of new devices, which manager_reconcile() handles in the next loop iteration. */

#include "manager.h"
#include "plan/device-state.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

void reconcile_done(Reconcile *r) {
        (void) free_names(r->queue, r->n_queue);
        free(r->round);
        free(r->unread);
        free(r->tried);
        free(r->arrived);
        sd_event_source_disable_unref(r->source);
        sd_event_source_disable_unref(r->lease_timer);
        sd_event_source_disable_unref(r->cleaning_timer);
}

void reconcile_want(Reconcile *r) {
        r->unmeasured = true;
        if (r->source)
                (void) sd_event_source_set_enabled(r->source, SD_EVENT_ONESHOT);
}

bool manager_is_new(const Manager *m, PciAddress address) {
        return !m->announced || pci_addresses_have(m->reconcile.round, m->reconcile.n_round, address);
}

void reconcile_queue(Reconcile *r, PciAddress address) {
        if (pci_address_append(&r->arrived, &r->n_arrived, address) < 0)
                log_warning("The new device %s is not set up, ignoring: Out of memory.", PCI_ADDRESS_STR(address));
}

bool manager_begin_round(Manager *m) {
        if (!m->announced || m->reconcile.n_arrived == 0)
                return false;
        free(m->reconcile.round);
        m->reconcile.round = TAKE_PTR(m->reconcile.arrived);
        m->reconcile.n_round = m->reconcile.n_arrived;
        m->reconcile.n_arrived = 0;
        m->reconcile.n_tried = 0;
        pci_addresses_sort(m->reconcile.round, &m->reconcile.n_round);
        m->reconcile.phase = START_CONNECTED;
        return true;
}

bool manager_is_arriving(const Manager *m, const Allocation *a) {
        for (size_t i = 0; i < m->reconcile.n_arrived; i++)
                if (allocation_find_device(a, m->reconcile.arrived[i]))
                        return true;
        for (size_t i = 0; m->reconcile.phase != START_DONE && i < a->n_devices; i++)
                if (manager_is_new(m, a->devices[i].address))
                        return true;
        return false;
}

/* Another program bound the device, or a crash came between the bind and the write that keeps the device awake. Devices
 * of Nova that are bound already are cleaned first. */
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
                        reconcile_queue(&m->reconcile, dev->address);
        }
}
