/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes network interfaces. */
#include <string.h>

#include "netdev.h"

static Node *class_dir(Sim *sim) {
        Node *dir;

        if (node_make_at(sim->root, "sys/class/net", NODE_DIR, &dir) < 0)
                abort();
        return dir;
}

void netdevs_complete(Sim *sim, const Node *dev) {
        Node *net = node_child(dev, "net");

        for (size_t i = 0; net && i < net->n_children; i++)
                if (!node_child(class_dir(sim), net->children[i]->name))
                        node_link(class_dir(sim), net->children[i]->name, net->children[i]);
}

static unsigned long free_ifindex(Sim *sim) {
        Node *class = class_dir(sim);
        unsigned long highest = 1; /* the index of lo */

        for (size_t i = 0; i < class->n_children; i++) {
                const Node *dev = node_at(class, class->children[i]->name);
                unsigned long n = dev ? node_number(dev, "ifindex", 0) : 0;

                if (n > highest)
                        highest = n;
        }
        return highest + 1;
}

/* Finds the interface of the PF itself, such as p0 or p1. */
static Node *uplink_of(const Node *pf) {
        Node *net = node_child(pf, "net");

        for (size_t i = 0; net && i < net->n_children; i++) {
                _cleanup_free_ char *port = node_text(net->children[i], "phys_port_name");

                if (port && *port == 'p' && !strchr(port, 'v'))
                        return net->children[i];
        }
        return NULL;
}

static char *representor_name(const Node *uplink, unsigned vf, char **ret_port) {
        _cleanup_free_ char *port = node_text(uplink, "phys_port_name");

        *ret_port = xasprintf("pf%svf%u", port + 1, vf);
        return xasprintf("%s_%u", uplink->name, vf);
}

void representor_make(Sim *sim, Node *pf, unsigned vf) {
        Node *uplink = uplink_of(pf), *dev;

        if (!uplink)
                return;
        _cleanup_free_ char *port = NULL, *name = representor_name(uplink, vf, &port),
                            *id = node_text(uplink, "phys_switch_id");
        if (node_child(uplink->parent, name))
                return;
        dev = node_make(uplink->parent, name, NODE_DIR);
        node_write(dev, "ifindex", "%lu\n", free_ifindex(sim));
        node_write(dev, "type", "1\n");
        node_write(dev, "dev_port", "0\n");
        node_write(dev, "address", "02:00:5e:00:%02x:%02x\n", (unsigned) dev->serial >> 8 & 0xff,
                   (unsigned) dev->serial & 0xff);
        node_write(dev, "phys_port_name", "%s\n", port);
        node_write(dev, "phys_switch_id", "%s\n", id ?: "");
        _cleanup_free_ char *device =
                xasprintf("../../../%s", pf->name); /* the kernel's path, which is not the shortest */
        node_link_text(dev, "device", device);
        node_link(class_dir(sim), name, dev);
}

void representor_remove(Sim *sim, Node *pf, unsigned vf) {
        Node *uplink = uplink_of(pf);

        if (!uplink)
                return;
        _cleanup_free_ char *port = NULL, *name = representor_name(uplink, vf, &port);
        node_remove_child(class_dir(sim), name);
        node_remove_child(uplink->parent, name);
}
