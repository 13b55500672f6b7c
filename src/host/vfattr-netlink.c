/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes the attributes of a VF by rtnetlink: finds the PF's network interfaces and queries each. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "netlink.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "vfattr-internal.h"

/* The most network interfaces of a PF: those of its ports, representors of its VFs, and IPoIB child interfaces. */
#define ENTRIES_MAX     4096U
#define NETDEV_PATH_MAX 320

static int read_text(const VfTarget *t, const char *netdev, const char *attribute,
                     char text[static SYSFS_ATTRIBUTE_MAX]) {
        char path[NETDEV_PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/%s/%s", PCI_PATH(t->pf, "net"), netdev, attribute);
        return sysfs_read(t->fs, path, text, SYSFS_ATTRIBUTE_MAX);
}

/* The port of a network interface. Before Linux 4.20 IPoIB had the port in dev_id only. */
static unsigned read_port(const VfTarget *t, const char *netdev) {
        char text[SYSFS_ATTRIBUTE_MAX];
        uint64_t port = 0, id = 0;

        if (read_text(t, netdev, "dev_port", text) >= 0)
                (void) parse_unsigned(text, UINT16_MAX, &port);
        if (read_text(t, netdev, "dev_id", text) >= 0)
                (void) parse_hex(text, UINT16_MAX, &id);
        return (unsigned) MAX(port, id);
}

/* With the eswitch in switchdev mode the PF's net directory also has the representors of the VFs. The phys_port_name of
 * a representor is such as pf0vf3, that of the PF's own interface p0. */
static bool is_representor(const VfTarget *t, const char *netdev) {
        char text[SYSFS_ATTRIBUTE_MAX];

        return read_text(t, netdev, "phys_port_name", text) >= 0 && strncmp(text, "pf", 2) == 0;
}

/* Adds dev to devs, which has one interface per port. Of several interfaces of one port the oldest is kept: an IPoIB
 * child interface is younger than its parent. */
static void add_netdev(PfView *v, const PfNetdev *dev) {
        PfNetdev *at = v->devs, *end = v->devs + v->n_devs;

        while (at < end && at->port < dev->port)
                at++;
        if (at < end && at->port == dev->port) {
                if (dev->ifindex < at->ifindex)
                        *at = *dev;
                return;
        }
        if (v->n_devs == PF_PORTS_MAX)
                return;
        memmove(at + 1, at, (size_t) (end - at) * sizeof(*at));
        *at = *dev;
        v->n_devs++;
}

static int find_netdevs(const VfTarget *t) {
        _cleanup_close_ int fd = sysfs_open(t->fs, PCI_PATH(t->pf, "net"), O_RDONLY | O_DIRECTORY);
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = fd < 0 ? fd : list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);

        for (size_t i = 0; i < n; i++) {
                char text[SYSFS_ATTRIBUTE_MAX];
                uint64_t ifindex;

                /* The interface may have disappeared since it was listed. */
                if (is_representor(t, names[i]) || read_text(t, names[i], "ifindex", text) < 0 ||
                    parse_unsigned(text, INT32_MAX, &ifindex) < 0)
                        continue;
                add_netdev(t->view,
                           &(PfNetdev) { .pf = t->pf, .ifindex = (int) ifindex, .port = read_port(t, names[i]) });
        }
        return r == -ENOENT ? 0 : r;
}

static void forget_netdevs(PfView *v) {
        for (unsigned i = 0; i < v->n_devs; i++) {
                free(v->vfs[i]);
                v->vfs[i] = NULL;
                v->n_vfs[i] = 0;
        }
        v->n_devs = 0;
}

void pf_view_forget(PfView *v) {
        forget_netdevs(v);
        *v = (PfView) { 0 };
}

/* Finds and queries the PF's interfaces. -ENODEV: an interface disappeared since it was listed, or the root is a
 * recording and the running kernel does not have the interface. */
static int ask_netdevs(const VfTarget *t) {
        _cleanup_(cleanup_nl_socket_free) struct nl_sock *sk = NULL;
        PfView *view = t->view;
        bool gone = false;
        int r;

        forget_netdevs(view);
        r = find_netdevs(t);
        if (r >= 0 && view->n_devs > 0)
                r = netlink_open(NETLINK_ROUTE, &sk);
        for (unsigned i = 0; (r >= 0 || gone) && i < view->n_devs; i++) {
                r = vf_rtnl_read(sk, &view->devs[i], &view->vfs[i], &view->n_vfs[i]);
                gone = gone || r == -ENODEV;
                if (r < 0 && r != -ENODEV)
                        return r;
        }
        return gone ? -ENODEV : r;
}

/* Queries the PF's interfaces for all VFs of the PF. If one disappears meanwhile, the PF's interfaces are listed and
 * queried once more. An interface that disappears again is ignored. */
static int ask(const VfTarget *t) {
        int r = ask_netdevs(t);

        if (r == -ENODEV)
                r = ask_netdevs(t);
        if (r == -ENODEV)
                r = 0;
        t->view->netdevs_asked = r >= 0;
        return r;
}

static VfAttributes attributes_of(const VfTarget *t, unsigned dev) {
        return t->vf < t->view->n_vfs[dev] ? t->view->vfs[dev][t->vf] : (VfAttributes) { 0 };
}

int vf_netlink_read(const VfTarget *t, VfAttributes *ret) {
        int r = t->view->netdevs_asked ? 0 : ask(t);

        for (unsigned i = 0; r >= 0 && i < t->view->n_devs; i++) {
                VfAttributes offered = attributes_of(t, i);

                vf_attributes_merge(&offered, ret);
                *ret = offered;
        }
        return r;
}

/* Writes the attributes of change that interface dev supports, and removes them from change. */
static int write_netdev(struct nl_sock *sk, const VfTarget *t, unsigned dev, VfAttributes *change) {
        VfAttributes now = attributes_of(t, dev), supported = *change;

        vf_attributes_keep(&supported, now.set);
        vf_attributes_keep(change, ~now.set);
        return supported.set == 0 ? 0 : vf_rtnl_write(sk, &t->view->devs[dev], t->vf, &now, &supported);
}

int vf_netlink_write(const VfTarget *t, const VfAttributes *change) {
        _cleanup_(cleanup_nl_socket_free) struct nl_sock *sk = NULL;
        VfAttributes left = *change;
        int r = netlink_open(NETLINK_ROUTE, &sk);

        for (unsigned i = 0; r >= 0 && i < t->view->n_devs && left.set != 0; i++)
                r = write_netdev(sk, t, i, &left);
        return r;
}
