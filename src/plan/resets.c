/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "resets.h"

#include "model/mdev-slots.h"
#include "util/strings.h"

static bool has_method(const PciDevice *dev, const char *method) {
        size_t n = strlen(method);

        for (const char *at = dev->reset_methods; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
                if (strcspn(at, " ") == n && strncmp(at, method, n) == 0)
                        return true;
        return false;
}

static bool same_bus(const PciDevice *a, const PciDevice *b) {
        return a->address.domain == b->address.domain && a->address.bus == b->address.bus;
}

/* VFs are not counted: a PF with VFs is not allocated. */
static const PciDevice *find_on_same_bus(const Inventory *inv, const PciDevice *dev) {
        const PciDevice *at = dev;

        while (at > inv->devices && same_bus(at - 1, dev))
                at--;
        for (; at < inv->devices + inv->n_devices && same_bus(at, dev); at++)
                if (at != dev && at->type != PCI_TYPE_VF && !pci_device_is_slot(at))
                        return at;
        return NULL;
}

/* The kernel lists "bus" also for the first function that it found on a bus, and refuses the reset when there are
 * others (pci_parent_bus_reset()). ret_other: the other function that prevents it, or NULL. */
static bool bus_reset_works(const Inventory *inv, const PciDevice *dev, const PciDevice **ret_other) {
        *ret_other = find_on_same_bus(inv, dev);
        return !*ret_other;
}

static bool method_works(const Inventory *inv, const PciDevice *dev, ResetMethod m, const PciDevice **ret_other) {
        if (!has_method(dev, reset_method_to_string(m)))
                return false;
        return (m != RESET_METHOD_BUS && m != RESET_METHOD_CXL_BUS) || bus_reset_works(inv, dev, ret_other);
}

/* Methods that a newer kernel lists count as well. */
static bool any_works(const Inventory *inv, const PciDevice *dev, const PciDevice **ret_other) {
        static const char *const only_bus[] = { "bus", "cxl_bus", "bus cxl_bus", "cxl_bus bus" };

        if (!dev->reset_methods)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(only_bus); i++)
                if (streq(dev->reset_methods, only_bus[i]))
                        return bus_reset_works(inv, dev, ret_other);
        return true;
}

#define QUARANTINED "so each release will put it in quarantine."

bool device_can_be_reset(const Policy *policy, const PciDevice *dev, Refusal *ret) {
        const Pool *pool = policy_pool(policy, dev);
        const char *address = PCI_ADDRESS_STR(dev->address), *method, *remedy;
        const PciDevice *other = NULL;

        if (!pool || pool->vgpu_type || pci_device_is_slot(dev))
                return true;
        if (pool->reset_method == RESET_METHOD_DEFAULT &&
            (pool->allow_no_reset || any_works(policy->inventory, dev, &other)))
                return true;
        if (method_works(policy->inventory, dev, pool->reset_method, &other))
                return true;
        method = reset_method_to_string(pool->reset_method);
        remedy = pool->reset_method == RESET_METHOD_DEFAULT
                         ? "AllowNoReset=yes in its pool gives it to the next guest as the last one left it."
                         : "Correct ResetMethod= of its pool.";
        if (other)
                (void) refuse(ret, VERDICT_NONE, &dev->address, remedy,
                              "%s cannot be reset alone: a reset of its bus would reset %s too, " QUARANTINED, address,
                              PCI_ADDRESS_STR(other->address));
        else if (pool->reset_method == RESET_METHOD_DEFAULT)
                (void) refuse(ret, VERDICT_NONE, &dev->address, remedy, "%s has no reset method, " QUARANTINED,
                              address);
        else
                (void) refuse(ret, VERDICT_NONE, &dev->address, remedy,
                              "%s lacks the reset method '%s' of its pool, " QUARANTINED " It has: %s.", address,
                              method, dev->reset_methods ? QUOTABLE(dev->reset_methods) : "none");
        return false;
}
