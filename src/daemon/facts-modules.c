/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The NVLink module ids and confidential modes of GPUs. Only NVIDIA's driver tells them. For the time when a GPU is on
 * its VFIO driver, they are stored by the serial number of its card. While a GPU has no driver, another program may
 * change its mode, so a rescan forgets the modes of GPUs that NVIDIA's driver does not have. */

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
                unsigned module, mode = 0; /* version 0.3 wrote no mode */

                if (sscanf(line, "%" SCNx64 " %u %u", &serial, &module, &mode) >= 2 && serial != 0 &&
                    module <= FABRIC_MODULE_MAX && mode < _CONFIDENTIAL_MODE_MAX && module + mode > 0)
                        m->modules[m->n_modules++] = (ModuleEntry) { serial, module, (ConfidentialMode) mode };
        }
}

static void save(Manager *m) {
        _cleanup_free_ char *text = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < m->n_modules; i++)
                r = string_append(&text, "", "%" PRIx64 " %u %u\n", m->modules[i].serial, m->modules[i].module,
                                  m->modules[i].mode);
        if (r >= 0 && text)
                r = store_save_modules(m->store, text);
        if (r < 0)
                log_warning_errno(r, "Failed to save the module ids of GPUs, ignoring: %m");
}

static bool is_asked(const Manager *m, const PciDevice *dev) {
        const Pool *pool = policy_pool(m->host.policy, dev);

        return pool && pool_asks_library(pool) && dev->type != PCI_TYPE_VF;
}

/* Returns the index of the entry with this serial number; m->n_modules: none. */
static size_t find(const Manager *m, uint64_t serial) {
        size_t i = 0;

        while (i < m->n_modules && m->modules[i].serial != serial)
                i++;
        return i;
}

static void set(PciDevice *dev, unsigned module, ConfidentialMode mode) {
        dev->module = module;
        dev->mode = mode;
}

void manager_apply_modules(Manager *m, const Inventory *old) {
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                PciDevice *dev = &m->host.inventory->devices[i];
                const PciDevice *before = is_asked(m, dev) && old ? inventory_find(old, dev->address) : NULL;
                size_t at;

                if (before && before->instance == dev->instance)
                        set(dev, before->module, before->mode);
                if (dev->module > 0 || dev->mode != CONFIDENTIAL_MODE_UNKNOWN || m->n_modules == 0 || !is_asked(m, dev))
                        continue;
                manager_read_serial(m, dev);
                at = find(m, dev->serial);
                if (at < m->n_modules)
                        set(dev, m->modules[at].module, m->modules[at].mode);
        }
}

/* Removes the entry of the card, and that of another card with the same module id, which is not in the machine any
 * more. */
static void forget(Manager *m, uint64_t serial, unsigned module) {
        for (size_t i = m->n_modules; i-- > 0;)
                if (m->modules[i].serial == serial || (module > 0 && m->modules[i].module == module))
                        m->modules[i] = m->modules[--m->n_modules];
}

void manager_learn_gpu(Manager *m, PciAddress gpu, unsigned module, ConfidentialMode mode) {
        const PciDevice *found = inventory_find(m->host.inventory, gpu);
        PciDevice *dev;
        size_t at;

        if (!found)
                return;
        module = module ?: found->module;
        mode = mode ?: found->mode;
        if (module > FABRIC_MODULE_MAX || mode >= _CONFIDENTIAL_MODE_MAX ||
            (found->module == module && found->mode == mode))
                return;
        dev = &m->host.inventory->devices[inventory_device_index(m->host.inventory, found)];
        set(dev, module, mode);
        manager_read_serial(m, dev);
        if (dev->serial == 0) {
                log_notice("%s has no serial number, so what NVIDIA's library tells of it is forgotten at the next "
                           "start.",
                           PCI_ADDRESS_STR(gpu));
                return;
        }
        at = find(m, dev->serial);
        if (at < m->n_modules && m->modules[at].module == module && m->modules[at].mode == mode)
                return;
        forget(m, dev->serial, module);
        if (m->n_modules >= ELEMENTSOF(m->modules))
                return;
        m->modules[m->n_modules++] = (ModuleEntry) { dev->serial, module, mode };
        save(m);
}

void manager_forget_modes(Manager *m) {
        bool changed = false;

        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                PciDevice *dev = &m->host.inventory->devices[i];
                size_t at;

                if (dev->mode == CONFIDENTIAL_MODE_UNKNOWN || streq_ptr(dev->driver, NVIDIA_DRIVER))
                        continue;
                dev->mode = CONFIDENTIAL_MODE_UNKNOWN;
                manager_read_serial(m, dev);
                at = find(m, dev->serial);
                if (at < m->n_modules)
                        m->modules[at].mode = CONFIDENTIAL_MODE_UNKNOWN;
                note_device(m, dev->address);
                changed = true;
        }
        if (changed)
                save(m);
}
