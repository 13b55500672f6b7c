/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of parked nodes, and the files that drivers add and remove. */
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "park.h"
#include "uevent.h"

void park(Sim *sim, Node *node, Node *device, const char *driver) {
        sim->parked = xrealloc(sim->parked, sim->n_parked + 1, sizeof(Parked));
        sim->parked[sim->n_parked++] = (Parked) {
                .node = node,
                .parent = node_ref(node->parent),
                .device = device ? node_ref(device) : NULL,
                .driver = device ? xstrdup(driver) : NULL,
                .serial = node_last_serial(),
        };
        node_detach(node);
}

/* Removes the entry from the list. back: attaches the node again, or drops it when its place is taken or gone. */
static void parked_end(Sim *sim, size_t i, bool back) {
        Parked p = sim->parked[i];

        memmove(sim->parked + i, sim->parked + i + 1, (--sim->n_parked - i) * sizeof(Parked));
        if (back && !p.parent->dropped && !node_child(p.parent, p.node->name)) {
                node_attach(p.parent, p.node);
                node_renew(p.node);
        } else
                node_remove(p.node);
        node_unref(p.parent, 1);
        if (p.device)
                node_unref(p.device, 1);
        free(p.driver);
}

void unpark(Sim *sim, size_t i) {
        parked_end(sim, i, true);
}

void device_forget(Sim *sim, Node *dev) {
        for (size_t i = sim->n_parked; i-- > 0;)
                if (!dev || sim->parked[i].device == dev)
                        parked_end(sim, i, false);
}

/* Parks links such as sys/class/net/eth0 that lead into the removed node. */
static void park_class_links(Sim *sim, const Node *gone, Node *dev, const char *driver) {
        Node *classes = node_at(sim->root, "sys/class");

        for (size_t i = 0; classes && i < classes->n_children; i++) {
                Node *class = classes->children[i];

                for (size_t j = class->n_children; j-- > 0;)
                        if (node_is_in(node_at(class, class->children[j]->name), gone))
                                park(sim, class->children[j], dev, driver);
        }
}

void device_park_driver(Sim *sim, Node *dev, const char *driver) {
        static const char *const made[] = {
                "net",   "infiniband", "infiniband_verbs", "infiniband_mad", "nvme", "drm", "sound", "block",
                "hwmon", "ptp",        "graphics"
        };

        for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
                Node *child = node_child(dev, made[i]);

                if (!child)
                        continue;
                park_class_links(sim, child, dev, driver);
                park(sim, child, dev, driver);
        }
}

void device_unpark_driver(Sim *sim, Node *dev, const char *driver) {
        for (size_t i = sim->n_parked; i-- > 0;)
                if (sim->parked[i].device == dev && strcmp(sim->parked[i].driver, driver) == 0)
                        unpark(sim, i);
}

/* vfio */

static Node *made_at(Sim *sim, const char *path, NodeType type) {
        Node *node;

        if (node_make_at(sim->root, path, type, &node) < 0)
                abort();
        if (type == NODE_FILE && !node->data)
                node_set(node, "", 0);
        return node;
}

static void group_add(Sim *sim, int group) {
        _cleanup_free_ char *path = xasprintf("dev/vfio/%d", group);

        if (node_at(sim->root, path))
                return;
        made_at(sim, path, NODE_FILE);
        uevent_vfio_group(sim, "add", group);
}

void device_vfio_add(Sim *sim, Node *dev) {
        Node *class = made_at(sim, "sys/class/vfio-dev", NODE_DIR), *dir = node_make(dev, "vfio-dev", NODE_DIR);

        if (group_of(dev) >= 0)
                group_add(sim, group_of(dev));
        if (dir->n_children == 0) {
                char name[32];
                unsigned n = 0;

                do
                        (void) snprintf(name, sizeof(name), "vfio%u", n++);
                while (node_child(class, name));
                node_make(dir, name, NODE_DIR);
        }
        node_link(class, dir->children[0]->name, dir->children[0]);
        uevent_child(sim, "add", "vfio-dev", dir->children[0]);
}

static bool group_has_vfio(Sim *sim, int group) {
        Node *members = node_atf(sim->root, "sys/kernel/iommu_groups/%d/devices", group);

        for (size_t i = 0; members && i < members->n_children; i++)
                if (node_atf(members, "%s/vfio-dev", members->children[i]->name))
                        return true;
        return false;
}

void device_vfio_remove(Sim *sim, Node *dev) {
        Node *dir = node_child(dev, "vfio-dev"), *group = node_atf(sim->root, "dev/vfio/%d", group_of(dev));

        for (size_t i = 0; dir && i < dir->n_children; i++) {
                node_remove(node_child(node_at(sim->root, "sys/class/vfio-dev"), dir->children[i]->name));
                uevent_child(sim, "remove", "vfio-dev", dir->children[i]);
        }
        node_remove(dir);
        if (!group || group_has_vfio(sim, group_of(dev)))
                return;
        node_remove(group);
        uevent_vfio_group(sim, "remove", group_of(dev));
}
