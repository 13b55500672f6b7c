/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * NVLink module ids of GPUs. NVIDIA's driver tells them, and a GPU that is bound to its VFIO driver has none to ask, so
 * they are kept by the serial number of the card.
 */

#include <inttypes.h>
#include <stdio.h>

#include "facts.h"
#include "util/log.h"
#include "util/strings.h"

void manager_load_modules(Manager *m) {
        _cleanup_free_ char *text = store_load_modules(m->store);
        char *rest = text, *line;

        while (rest && m->n_modules < ELEMENTSOF(m->modules) && (line = strsep(&rest, "\n"))) {
                uint64_t serial;
                unsigned module;

                if (sscanf(line, "%" SCNx64 " %u", &serial, &module) == 2 && serial != 0 && module > 0 &&
                    module <= FABRIC_MODULE_MAX) {
                        m->modules[m->n_modules].serial = serial;
                        m->modules[m->n_modules++].module = module;
                }
        }
}

static void save(Manager *m) {
        _cleanup_free_ char *text = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < m->n_modules; i++)
                r = string_append(&text, "", "%" PRIx64 " %u\n", m->modules[i].serial, m->modules[i].module);
        if (r >= 0 && text)
                r = store_save_modules(m->store, text);
        if (r < 0)
                log_warning_errno(r, "Failed to save the module ids of GPUs, ignoring: %m");
}

/* The GPU belongs to a pool whose guests get NVLink partitions. */
static bool needs_module(const Manager *m, const PciDevice *dev) {
        return policy_has_fabric(m->host.policy, dev) && dev->type != PCI_TYPE_VF;
}

static unsigned find(const Manager *m, uint64_t serial) {
        for (size_t i = 0; i < m->n_modules; i++)
                if (m->modules[i].serial == serial)
                        return m->modules[i].module;
        return 0;
}

void manager_apply_modules(Manager *m, const Inventory *old) {
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                PciDevice *dev = &m->host.inventory->devices[i];
                const PciDevice *before = needs_module(m, dev) && old ? inventory_find(old, dev->address) : NULL;

                if (before && before->instance == dev->instance)
                        dev->module = before->module;
                if (dev->module > 0 || m->n_modules == 0 || !needs_module(m, dev))
                        continue;
                manager_read_serial(m, dev);
                dev->module = dev->serial != 0 ? find(m, dev->serial) : 0;
        }
}

/* Another card with this module id is not in the machine any more. */
static void forget(Manager *m, uint64_t serial, unsigned module) {
        for (size_t i = m->n_modules; i-- > 0;)
                if (m->modules[i].serial == serial || m->modules[i].module == module)
                        m->modules[i] = m->modules[--m->n_modules];
}

void manager_learn_module(Manager *m, PciAddress gpu, unsigned module) {
        const PciDevice *found = inventory_find(m->host.inventory, gpu);
        PciDevice *dev;

        if (!found || module > FABRIC_MODULE_MAX || found->module == module)
                return;
        dev = &m->host.inventory->devices[inventory_device_index(m->host.inventory, found)];
        dev->module = module;
        manager_read_serial(m, dev);
        if (dev->serial == 0) {
                log_notice("%s has no serial number, so its NVLink module id %u is forgotten at the next start.",
                           PCI_ADDRESS_STR(gpu), module);
                return;
        }
        if (find(m, dev->serial) == module)
                return;
        forget(m, dev->serial, module);
        m->modules[m->n_modules].serial = dev->serial;
        m->modules[m->n_modules++].module = module;
        save(m);
}
