/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The presence of devices: registration, IOMMU groups, remove and rescan. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "driver.h"
#include "netdev.h"
#include "park.h"
#include "sriov.h"
#include "uevent.h"

/* The devices of a walk. They are referenced, because a change of one device may drop another. */
typedef struct DeviceList {
        Node **devices;
        size_t n;
} DeviceList;

bool address_is_valid(const char *name) {
        static const char hex[] = "0123456789abcdef";
        size_t domain = strspn(name, hex);
        const char *rest = name + domain;

        return domain >= 4 && domain <= 8 && strlen(rest) == 8 && rest[0] == ':' && strspn(rest + 1, hex) == 2 &&
               rest[3] == ':' && strspn(rest + 4, hex) == 2 && rest[6] == '.' && rest[7] >= '0' && rest[7] <= '7';
}

/* Returns whether the node is a host bridge or a device. mlx4 has directories with such names below other nodes. */
static bool is_bus(const Node *node) {
        return node && (address_is_valid(node->name) || strncmp(node->name, "pci", 3) == 0);
}

bool node_is_device(const Node *node) {
        const Node *top = node;

        if (!node || node->type != NODE_DIR || !address_is_valid(node->name) || !is_bus(node->parent))
                return false;
        while (top->parent && top->parent->parent && top->parent->parent->parent)
                top = top->parent;
        return top->parent && strcmp(top->name, "devices") == 0 && strcmp(top->parent->name, "sys") == 0;
}

Node *device_find(const Sim *sim, const char *address) {
        return address_is_valid(address) ? node_atf(sim->root, "sys/bus/pci/devices/%s", address) : NULL;
}

char *device_override(const Node *dev) {
        char *text = node_text(dev, "driver_override");

        if (text && (*text == '\0' || strcmp(text, "(null)") == 0)) {
                free(text);
                return NULL;
        }
        return text;
}

static void collect(Node *node, DeviceList *list) {
        if (node_is_device(node)) {
                list->devices = xrealloc(list->devices, list->n + 1, sizeof(Node *));
                list->devices[list->n++] = node_ref(node);
        }
        for (size_t i = 0; i < node->n_children; i++)
                collect(node->children[i], list);
}

static void device_list_done(DeviceList *list) {
        for (size_t i = 0; i < list->n; i++)
                node_unref(list->devices[i], 1);
        free(list->devices);
        *list = (DeviceList) {};
}
#define _cleanup_devices_ __attribute__((cleanup(device_list_done)))

static Node *directory(const Sim *sim, const char *path) {
        Node *dir;

        if (node_make_at(sim->root, path, NODE_DIR, &dir) < 0)
                abort();
        return dir;
}

/* groups */

int group_of(const Node *dev) {
        const char *name = node_link_name(dev, "iommu_group");

        return name && isdigit((unsigned char) *name) ? atoi(name) : -ENOENT;
}

int group_lowest_free(const Sim *sim) {
        int n = 0;

        while (node_atf(sim->root, "sys/kernel/iommu_groups/%d", n))
                n++;
        return n;
}

static void group_join(Sim *sim, Node *dev, int number) {
        _cleanup_free_ char *path = xasprintf("sys/kernel/iommu_groups/%d/devices", number);
        Node *members = directory(sim, path);

        node_default(members->parent, "type", "DMA\n");
        node_default(members->parent, "reserved_regions", "0x00000000fee00000 0x00000000feefffff msi\n");
        node_link(members, dev->name, dev);
        node_link(dev, "iommu_group", members->parent);
}

/* Removes the device from its group. A removed device keeps its own link, to find the group again when it returns. */
static void group_leave(Sim *sim, Node *dev) {
        Node *members = node_atf(sim->root, "sys/kernel/iommu_groups/%d/devices", group_of(dev));

        if (!members)
                return;
        node_remove_child(members, dev->name);
        if (members->n_children == 0)
                node_remove(members->parent);
}

/* Returns the former group number if no new group has it: numbers are recycled. */
static int group_again(const Sim *sim, const Node *dev, uint64_t removed_at, uint64_t rescan_at) {
        int number = group_of(dev);
        const Node *group = node_atf(sim->root, "sys/kernel/iommu_groups/%d", number);

        if (!group || group->serial <= removed_at || group->serial > rescan_at)
                return number;
        return group_lowest_free(sim);
}

/* power */

void device_allow_suspend(Node *dev, bool allow) {
        Node *power = node_child(dev, "power");

        if (power && node_child(power, "control"))
                node_write(power, "control", "%s\n", allow ? "auto" : "on");
        if (!allow)
                device_resume(dev);
}

int device_suspend(const Sim *sim, const char *address) {
        Node *dev = device_find(sim, address), *config = dev ? node_child(dev, "config") : NULL;
        const Driver *d = dev ? driver_of(sim, dev) : NULL;
        const Node *power = dev ? node_child(dev, "power") : NULL;
        _cleanup_free_ char *control = power ? node_text(power, "control") : NULL;

        if (!d || !d->vfio)
                return -ENODEV;
        if (!control || strcmp(control, "auto") != 0 || node_child(dev, "physfn"))
                return 0;
        if (node_number(dev, "d3cold_allowed", 0) == 0) {
                node_write(dev, "power_state", "D3hot\n");
                return 0;
        }
        node_write(dev, "power_state", "D3cold\n");
        if (config)
                memset(config->data, 0xff, config->size);
        return 0;
}

void device_resume(Node *dev) {
        _cleanup_free_ char *state = node_text(dev, "power_state");

        if (state && strcmp(state, "D3hot") == 0)
                node_write(dev, "power_state", "D0\n");
}

/* registration */

void device_register(Sim *sim, Node *dev, int group) {
        _cleanup_free_ char *reset_method = node_text(dev, "reset_method");

        if (!node_child(dev, "physfn")) { /* a VF is removed with its PF */
                node_default(dev, "remove", "");
                node_default(dev, "rescan", "");
        }
        if (reset_method && *reset_method)
                node_default(dev, "reset", "");
        if (node_child(dev, "sriov_totalvfs")) {
                node_default(dev, "sriov_numvfs", "0\n");
                node_default(dev, "sriov_drivers_autoprobe", "1\n");
        }
        node_link(dev, "subsystem", node_at(sim->root, "sys/bus/pci"));
        node_link(node_at(sim->root, "sys/bus/pci/devices"), dev->name, dev);
        if (group >= 0)
                group_join(sim, dev, group);
        uevent_device(sim, "add", dev);
}

void device_unregister(Sim *sim, Node *dev) {
        driver_detach(sim, dev);
        group_leave(sim, dev);
        node_remove(node_child(node_at(sim->root, "sys/bus/pci/devices"), dev->name));
        uevent_device(sim, "remove", dev);
}

static void complete_device(Sim *sim, Node *dev) {
        const char *driver = node_link_name(dev, "driver");
        unsigned vfs = 0;

        if (sim->no_iommu)
                node_remove_child(dev, "iommu_group");
        for (size_t i = 0; i < dev->n_children; i++)
                vfs += strncmp(dev->children[i]->name, "virtfn", 6) == 0;
        if (node_child(dev, "sriov_totalvfs") && !node_child(dev, "sriov_numvfs"))
                node_write(dev, "sriov_numvfs", "%u\n", vfs);
        netdevs_complete(sim, dev);
        sriov_complete(sim, dev);
        device_register(sim, dev, group_of(dev));
        if (driver) {
                Driver *d = driver_get(sim, driver);

                driver_learn(d, dev);
                driver_link(sim, d, dev);
        }
}

static void complete_drivers(Sim *sim) {
        Node *dir = directory(sim, "sys/bus/pci/drivers");
        bool vfio = false;

        for (size_t i = 0; i < dir->n_children; i++)
                driver_get(sim, dir->children[i]->name);
        for (size_t i = 0; i < sim->n_drivers; i++) {
                driver_get(sim, sim->drivers[i]->name);
                vfio = vfio || sim->drivers[i]->vfio;
        }
        if (!vfio)
                return;
        directory(sim, "sys/class/vfio-dev");
        node_default(directory(sim, "dev/vfio"), "vfio", "");
}

/* Returns whether a recording has the function itself, and not only nodes below it. */
static bool is_function(const Sim *sim, const Node *dev) {
        return node_child(dev, "vendor") || device_find(sim, dev->name);
}

void devices_complete(Sim *sim) {
        Node *bus = directory(sim, "sys/bus/pci");
        _cleanup_devices_ DeviceList list = {};

        directory(sim, "sys/bus/pci/devices");
        node_default(bus, "drivers_probe", "");
        node_default(bus, "drivers_autoprobe", "1\n");
        node_default(bus, "rescan", "");
        if (sim->no_iommu)
                node_remove(node_at(sim->root, "sys/kernel/iommu_groups"));
        else
                directory(sim, "sys/kernel/iommu_groups");
        complete_drivers(sim);
        collect(directory(sim, "sys/devices"), &list);
        for (size_t i = 0; i < list.n; i++)
                if (is_function(sim, list.devices[i]))
                        complete_device(sim, list.devices[i]);
        sriov_create_declared(sim);
}

/* remove and rescan */

void device_remove(Sim *sim, Node *dev) {
        _cleanup_devices_ DeviceList list = {};

        collect(dev, &list);
        for (size_t i = list.n; i-- > 0;) {
                Node *below = list.devices[i];

                if (below->dropped)
                        continue;
                sriov_destroy(sim, below);
                device_unregister(sim, below);
        }
        if (dev->dropped)
                return;
        if (node_child(dev, "physfn")) { /* a rescan does not find VFs */
                device_forget(sim, dev);
                node_remove(dev);
        } else
                park(sim, dev, NULL, NULL);
}

static void device_return(Sim *sim, Node *dev, uint64_t removed_at, uint64_t rescan_at) {
        if (node_child(dev, "driver_override"))
                node_write(dev, "driver_override", "(null)\n");
        if (node_child(dev, "enable"))
                node_write(dev, "enable", "0\n");
        if (node_child(dev, "sriov_drivers_autoprobe"))
                node_write(dev, "sriov_drivers_autoprobe", "1\n");
        device_register(sim, dev, group_again(sim, dev, removed_at, rescan_at));
        driver_probe(sim, dev); /* regardless of the bus's drivers_autoprobe */
}

static bool rescan_one(Sim *sim, const Node *below, uint64_t rescan_at) {
        for (size_t i = 0; i < sim->n_parked; i++) {
                Parked *p = sim->parked + i;
                uint64_t removed_at = p->serial;
                _cleanup_devices_ DeviceList list = {};

                if (p->device || !node_is_in(p->parent, sim->root) || (below && !node_is_in(p->parent, below)))
                        continue;
                Node *node = p->node;
                unpark(sim, i);
                collect(node, &list);
                for (size_t j = 0; j < list.n; j++)
                        device_return(sim, list.devices[j], removed_at, rescan_at);
                return true;
        }
        return false;
}

void devices_rescan(Sim *sim, const Node *below) {
        uint64_t rescan_at = node_last_serial();

        while (rescan_one(sim, below, rescan_at)) /* after a bridge, the devices below it return */
                ;
}
