/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/mdev-slots.h"

#include <errno.h>
#include <stdio.h>

#define UUID_TAIL     28 /* offset of the address in a UUID with dashes */
#define UUID_INSTANCE 26 /* offset of the number of the slot */

bool pci_device_has_slots(const PciDevice *dev) {
        return dev->mdev_types && dev->type != PCI_TYPE_VF && dev->total_vfs == 0;
}

void mdev_uuid_format(const char *id, PciAddress address, char ret[static UUID_STRING_MAX]) {
        char text[UUID_STRING_MAX], instance[3] = "";

        if (address.instance > 0)
                (void) snprintf(instance, sizeof(instance), "%02x", address.instance & 0xffU);
        (void) snprintf(text, sizeof(text), "%.*s%s%04x%02x%02x", address.instance > 0 ? UUID_INSTANCE : UUID_TAIL, id,
                        instance, address.domain & 0xffffU, address.bus & 0xffU,
                        ((unsigned) address.slot << 3 | address.function) & 0xffU);
        (void) stpcpy(ret, text);
}

/* Returns the number of the slot that a UUID names; 0: it was not made for this GPU. */
static size_t slot_of(const char *uuid, PciAddress gpu) {
        char digits[3] = { uuid[UUID_INSTANCE], uuid[UUID_INSTANCE + 1] }, ours[UUID_STRING_MAX];
        uint64_t instance;

        if (parse_hex(digits, MDEV_SLOTS, &instance) < 0 || instance == 0)
                return 0;
        gpu.instance = (uint8_t) instance;
        mdev_uuid_format(uuid, gpu, ours);
        return streq(ours, uuid) ? instance : 0;
}

static int add_slot(Inventory *inv, size_t gpu, uint8_t instance) {
        PciAddress address = inv->devices[gpu].address;
        const PciDevice *from;
        PciDevice *slot;

        address.instance = instance;
        slot = inventory_add_device(inv, address);
        if (!slot)
                return -ENOMEM;
        from = &inv->devices[gpu]; /* get the GPU again: adding may move the array */
        slot->type = PCI_TYPE_VF;
        slot->physfn = from->address;
        slot->vendor = from->vendor;
        slot->device = from->device;
        slot->subsystem_vendor = from->subsystem_vendor;
        slot->subsystem_device = from->subsystem_device;
        slot->class = from->class;
        slot->instance = from->instance;
        slot->numa_node = from->numa_node;
        slot->acs = PCI_ACS_CLEAN;
        memcpy(slot->bar_size, from->bar_size, sizeof(slot->bar_size));
        return string_copy(&slot->path, from->path);
}

int inventory_add_slots(Inventory *inv) {
        size_t n = inv->n_devices;
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                bool has = false;

                if (!pci_device_has_slots(&inv->devices[i]))
                        continue;
                for (size_t j = 0; j < n && !has; j++)
                        has = pci_device_is_slot(&inv->devices[j]) &&
                              pci_address_equal(inv->devices[j].physfn, inv->devices[i].address);
                for (uint8_t k = 1; r == 0 && !has && k <= MDEV_SLOTS; k++)
                        r = add_slot(inv, i, k);
        }
        return r;
}

/* Returns the GPU's slot with this number if it has no mediated device, else NULL. */
static PciDevice *find_free(const Inventory *inv, PciAddress gpu, size_t instance) {
        const PciDevice *slot;

        gpu.instance = (uint8_t) instance;
        slot = inventory_find(inv, gpu);
        return slot && slot->vgpu_type == 0 ? &inv->devices[inventory_device_index(inv, slot)] : NULL;
}

/* Puts mediated devices of the GPU into slots: if `named` is true, those whose UUID names a slot; otherwise the
 * others. */
static void put_mdevs(const Inventory *inv, const PciDevice *gpu, bool named) {
        const char *line = gpu->mdevs;
        char uuid[UUID_STRING_MAX];
        unsigned type;

        for (; line && sscanf(line, "%36s %u", uuid, &type) == 2; line = strchr(line, '\n') + 1) {
                size_t wanted = slot_of(uuid, gpu->address);
                PciDevice *slot = wanted > 0 ? find_free(inv, gpu->address, wanted) : NULL;

                if ((wanted > 0) != named)
                        continue;
                for (size_t k = MDEV_SLOTS; !named && !slot && k > 0; k--)
                        slot = find_free(inv, gpu->address, k);
                if (!slot)
                        continue;
                slot->vgpu_type = type;
                (void) stpcpy(slot->mdev, uuid);
        }
}

int inventory_fill_slots(Inventory *inv, const PciDevice *gpu) {
        PciAddress address = gpu->address;

        for (address.instance = 1; address.instance <= MDEV_SLOTS; address.instance++) {
                const PciDevice *found = inventory_find(inv, address);
                PciDevice *slot = found ? &inv->devices[inventory_device_index(inv, found)] : NULL;

                if (!slot)
                        continue;
                slot->vf_index = address.instance - 1;
                slot->vgpu_type = 0;
                *slot->mdev = '\0';
                slot->mdev_parent = true;
                if (string_copy(&slot->driver, gpu->driver) < 0 || string_copy(&slot->vgpu_types, gpu->mdev_types) < 0)
                        return -ENOMEM;
        }
        put_mdevs(inv, gpu, true);
        put_mdevs(inv, gpu, false);
        return 0;
}
