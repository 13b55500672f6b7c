/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that are not in the inventory, found by jobs and watches: minors of GPUs, health, attributes of VFs, guests. */

#include "facts.h"
#include "util/strings.h"

GpuMinor *manager_find_gpu(const Manager *m, PciAddress gpu) {
        for (size_t i = 0; i < m->watches.n_gpus; i++)
                if (pci_address_equal(m->watches.gpus[i].address, gpu))
                        return &m->watches.gpus[i];
        return NULL;
}

uint32_t manager_gpu_minor(const Manager *m, const PciDevice *gpu) {
        const GpuMinor *g = manager_find_gpu(m, gpu->address);

        return g && g->instance == gpu->instance ? g->minor : NVIDIA_MINOR_UNKNOWN;
}

void manager_note_gpus(const Manager *m, StepList *steps) {
        for (size_t i = 0; i < steps->n; i++) {
                Step *s = &steps->steps[i];
                const PciDevice *dev = s->kind == STEP_UNBIND && s->unbind.checks_idle
                                               ? inventory_find(m->host.inventory, s->device)
                                               : NULL;

                /* gpu_node 0 means unknown, and an unknown minor gives 0: NVIDIA_MINOR_UNKNOWN + 1 is 0. */
                if (dev)
                        s->unbind.gpu_node = manager_gpu_minor(m, dev) + 1;
        }
}

void manager_forget_gpu(Manager *m, PciAddress gpu) {
        GpuMinor *g = manager_find_gpu(m, gpu);

        if (g)
                *g = m->watches.gpus[--m->watches.n_gpus];
}

void manager_doubt_gpu(Manager *m, PciAddress gpu, bool suspect) {
        GpuMinor *g = manager_find_gpu(m, gpu);

        if (!g)
                return;
        g->asked = false;
        g->suspect |= suspect;
}

void manager_name_gpu(const Manager *m, PciDevice *dev) {
        const GpuMinor *g = manager_find_gpu(m, dev->address);

        if (!streq_ptr(dev->driver, NVIDIA_DRIVER))
                return;
        /* If memory runs out, the device keeps its old names until the next scan. */
        (void) nvidia_set_name(dev, manager_gpu_minor(m, dev));
        dev->has_memory_node = g && g->instance == dev->instance && g->memory_node >= 0;
        dev->memory_node = g ? g->memory_node : -1;
}

void manager_found_persistent(Manager *m, const Job *job, const Step *step) {
        Allocation *a = ledger_find(m->host.ledger, job->subject);

        for (size_t i = 0; a && i < a->n_devices; i++)
                if (pci_address_equal(a->devices[i].address, step->device))
                        a->devices[i].prior_persistence = true;
}

void manager_set_unhealthy(Manager *m, PciAddress device, DeviceFinding finding, const char *why) {
        const char *known = device_status_get(&m->host.status, device, finding);
        const Allocation *a = ledger_holder(m->host.ledger, device);

        if (streq_ptr(why, known) || device_status_set(&m->host.status, device, finding, why) < 0)
                return;
        if (why)
                note_event(m, HISTORY_UNHEALTHY, device, a, "%s", why);
        else if (device_status_check_unhealthy(&m->host.status, device, NULL) == VERDICT_NONE)
                note_event(m, HISTORY_HEALTHY, device, a, "%s is healthy again.", PCI_ADDRESS_STR(device));
        note_device(m, device);
}

void manager_found_health(Manager *m, const Job *job, const Step *step, const HealthReading *reading) {
        const PciDevice *dev = inventory_find(m->host.inventory, step->device);
        Allocation *a = ledger_find(m->host.ledger, job->subject);
        Health *h = dev && reading->error < 0 ? health_list_add(&m->host.health, dev) : NULL;
        _cleanup_free_ char *why = NULL;

        if (h && health_evaluate(h, reading, HEALTH_DUE_EVENT, &why) > 0)
                manager_set_unhealthy(m, step->device, DEVICE_UNHEALTHY, why);
        for (size_t i = 0; a && reading->error == 0 && i < a->n_devices; i++)
                if (pci_address_equal(a->devices[i].address, step->device)) {
                        a->devices[i].has_fatal =
                                reading->counted && reading->fatal <= UINT32_MAX && !a->devices[i].is_vf;
                        a->devices[i].fatal = (unsigned) reading->fatal;
                }
}

void manager_forget_health(Manager *m) {
        for (size_t i = m->host.status.n; i-- > 0;) {
                PciAddress address = m->host.status.devices[i].address;
                const PciDevice *dev = inventory_find(m->host.inventory, address);

                if (!dev || !health_list_find(&m->host.health, dev))
                        (void) device_status_set(&m->host.status, address, DEVICE_UNHEALTHY, NULL);
        }
}

void manager_forget_attributes(Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++)
                (void) vf_report_set(&m->host.vfs, a->devices[i].address, NULL);
        m->watches.attributes.due = m->watches.attributes.due || m->watches.attributes.probe;
}

const Guest *manager_find_guest(const GuestList *guests, const Allocation *a) {
        const Guest *guest = NULL;

        for (size_t i = 0; !guest && i < a->n_devices; i++)
                guest = guest_list_find_device(guests, ALLOCATION_DEVICE_SOURCE(&a->devices[i]));
        /* If no guest has a device of the allocation, or the allocation has none, find the guest by its UUID, which is
         * the id of the allocation. */
        return guest ?: guest_list_find(guests, a->id);
}

bool manager_knows_guests(const Manager *m) {
        return m->watches.guests && !guest_client_unknown(m->watches.guests);
}

bool manager_may_miss_guests(const Manager *m) {
        return m->host.config->libvirt && !manager_knows_guests(m) &&
               !(m->watches.guests && guest_client_is_idle(m->watches.guests));
}

const char *manager_find_uuid(const Manager *m, const Allocation *a) {
        const Guest *guest = m->watches.guests ? manager_find_guest(guest_client_list(m->watches.guests), a) : NULL;

        return guest ? guest->uuid : a->id;
}

void manager_mark_running(Manager *m, Allocation *a, const Guest *guest) {
        /* If no guest is known, the guest may have ended, and its memory may be free again. */
        ledger_set_running(m->host.ledger, a, guest && !guest->starting);
}

void manager_mark_all_running(Manager *m) {
        const GuestList *guests = manager_knows_guests(m) ? guest_client_list(m->watches.guests) : NULL;

        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                manager_mark_running(m, a, guests ? manager_find_guest(guests, a) : NULL);
        }
}
