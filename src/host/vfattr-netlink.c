/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes of a VF by rtnetlink: the interfaces of its PF, and what each of them is asked. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "netlink.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "vfattr-internal.h"

/* Interfaces of a PF: representors of its VFs and children of IPoIB besides those of its ports. */
#define ENTRIES_MAX     4096U
#define NETDEV_PATH_MAX 320

static int read_text(const VfTarget *t, const char *netdev, const char *attribute,
                     char text[static SYSFS_ATTRIBUTE_MAX]) {
        char path[NETDEV_PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/%s/%s", PCI_PATH(t->pf, "net"), netdev, attribute);
        return sysfs_read(t->fs, path, text, SYSFS_ATTRIBUTE_MAX);
}

/* Before Linux 4.20 IPoIB counted its ports in dev_id only. */
static unsigned read_port(const VfTarget *t, const char *netdev) {
        char text[SYSFS_ATTRIBUTE_MAX];
        uint64_t port = 0, id = 0;

        if (read_text(t, netdev, "dev_port", text) >= 0)
                (void) parse_unsigned(text, UINT16_MAX, &port);
        if (read_text(t, netdev, "dev_id", text) >= 0)
                (void) parse_hex(text, UINT16_MAX, &id);
        return (unsigned) MAX(port, id);
}

/* With the eswitch in switchdev mode the VFs' ends are below the PF too: pf0vf3; the port itself is p0. */
static bool is_representor(const VfTarget *t, const char *netdev) {
        char text[SYSFS_ATTRIBUTE_MAX];

        return read_text(t, netdev, "phys_port_name", text) >= 0 && strncmp(text, "pf", 2) == 0;
}

/* One for each port, in their order: the oldest, since a child of IPoIB comes after its parent. */
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
        char **names = NULL;
        size_t n = 0;
        int r = fd < 0 ? fd : list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);

        for (size_t i = 0; i < n; i++) {
                char text[SYSFS_ATTRIBUTE_MAX];
                uint64_t ifindex;

                /* It may have gone since. */
                if (is_representor(t, names[i]) || read_text(t, names[i], "ifindex", text) < 0 ||
                    parse_unsigned(text, INT32_MAX, &ifindex) < 0)
                        continue;
                add_netdev(t->view,
                           &(PfNetdev){ .pf = t->pf, .ifindex = (int) ifindex, .port = read_port(t, names[i]) });
        }
        (void) free_names(names, n);
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
        *v = (PfView){ 0 };
}

/* -ENODEV: one of them went away meanwhile, or is not of this kernel. */
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

/* What goes away offers nothing, and what came in its place counts: all VFs of the PF are told of by this. */
static int ask(const VfTarget *t) {
        int r = ask_netdevs(t);

        if (r == -ENODEV)
                r = ask_netdevs(t);
        if (r == -ENODEV)
                r = 0;
        t->view->netdevs_asked = r >= 0;
        return r;
}

static VfAttributes told_by(const VfTarget *t, unsigned dev) {
        return t->vf < t->view->n_vfs[dev] ? t->view->vfs[dev][t->vf] : (VfAttributes){ 0 };
}

int vf_netlink_read(const VfTarget *t, VfAttributes *ret) {
        int r = t->view->netdevs_asked ? 0 : ask(t);

        for (unsigned i = 0; r >= 0 && i < t->view->n_devs; i++) {
                VfAttributes offered = told_by(t, i);

                vf_attributes_merge(&offered, ret);
                *ret = offered;
        }
        return r;
}

/* Takes what this interface can set off change. */
static int write_netdev(struct nl_sock *sk, const VfTarget *t, unsigned dev, VfAttributes *change) {
        VfAttributes now = told_by(t, dev), mine = *change;

        vf_attributes_keep(&mine, now.set);
        vf_attributes_keep(change, ~now.set);
        return mine.set == 0 ? 0 : vf_rtnl_write(sk, &t->view->devs[dev], t->vf, &now, &mine);
}

int vf_netlink_write(const VfTarget *t, const VfAttributes *change) {
        _cleanup_(cleanup_nl_socket_free) struct nl_sock *sk = NULL;
        VfAttributes left = *change;
        int r = netlink_open(NETLINK_ROUTE, &sk);

        for (unsigned i = 0; r >= 0 && i < t->view->n_devs && left.set != 0; i++)
                r = write_netdev(sk, t, i, &left);
        return r;
}
