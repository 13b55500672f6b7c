/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes of a VF by rtnetlink: the interfaces of its PF, and what each of them is asked. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "host/netlink.h"
#include "host/pcipath.h"
#include "host/vfattr-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

/* Interfaces of a PF: representors of its VFs and children of IPoIB besides those of its ports. */
#define ENTRIES_MAX     4096U
#define PORTS_MAX       8U
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
static void add_netdev(PfNetdev *devs, unsigned *n, const PfNetdev *dev) {
        unsigned at = 0;

        while (at < *n && devs[at].port < dev->port)
                at++;
        if (at < *n && devs[at].port == dev->port) {
                if (dev->ifindex < devs[at].ifindex)
                        devs[at] = *dev;
                return;
        }
        if (*n == PORTS_MAX)
                return;
        memmove(&devs[at + 1], &devs[at], (*n - at) * sizeof(*devs));
        devs[at] = *dev;
        *n += 1;
}

static int find_netdevs(const VfTarget *t, PfNetdev devs[static PORTS_MAX], unsigned *ret_n) {
        _cleanup_close_ int fd = sysfs_open(t->fs, PCI_PATH(t->pf, "net"), O_RDONLY | O_DIRECTORY);
        char **names = NULL;
        size_t n = 0;
        int r = fd < 0 ? fd : list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);

        *ret_n = 0;
        for (size_t i = 0; i < n; i++) {
                char text[SYSFS_ATTRIBUTE_MAX];
                uint64_t ifindex;

                /* It may have gone since. */
                if (is_representor(t, names[i]) || read_text(t, names[i], "ifindex", text) < 0 ||
                    parse_unsigned(text, INT32_MAX, &ifindex) < 0)
                        continue;
                add_netdev(devs, ret_n,
                           &(PfNetdev){ .pf = t->pf, .ifindex = (int) ifindex, .port = read_port(t, names[i]) });
        }
        (void) free_names(names, n);
        return r == -ENOENT ? 0 : r;
}

/* An interface that went away offers nothing. */
static int read_netdev(struct nl_sock *sk, const PfNetdev *dev, unsigned vf, VfAttributes *ret) {
        int r;

        *ret = (VfAttributes){ 0 };
        r = vf_rtnl_read(sk, dev, vf, ret);
        return r == -ENODEV ? 0 : r;
}

int vf_netlink_read(const VfTarget *t, VfAttributes *ret) {
        _cleanup_(cleanup_nl_socket_free) struct nl_sock *sk = NULL;
        PfNetdev devs[PORTS_MAX];
        unsigned n;
        int r = find_netdevs(t, devs, &n);

        if (r < 0 || n == 0)
                return r;
        r = netlink_open(NETLINK_ROUTE, &sk);
        for (unsigned i = 0; r >= 0 && i < n; i++) {
                VfAttributes offered;

                r = read_netdev(sk, &devs[i], t->vf, &offered);
                vf_attributes_merge(&offered, ret);
                *ret = offered;
        }
        return r;
}

/* Takes what this interface could set off change. */
static int write_netdev(struct nl_sock *sk, const PfNetdev *dev, unsigned vf, VfAttributes *change) {
        VfAttributes now, mine = *change;
        int r = read_netdev(sk, dev, vf, &now);

        if (r < 0)
                return r;
        vf_attributes_keep(&mine, now.set);
        vf_attributes_keep(change, ~now.set);
        return mine.set == 0 ? 0 : vf_rtnl_write(sk, dev, vf, &now, &mine);
}

int vf_netlink_write(const VfTarget *t, const VfAttributes *change) {
        _cleanup_(cleanup_nl_socket_free) struct nl_sock *sk = NULL;
        VfAttributes left = *change;
        PfNetdev devs[PORTS_MAX];
        unsigned n;
        int r = find_netdevs(t, devs, &n);

        if (r >= 0)
                r = netlink_open(NETLINK_ROUTE, &sk);
        for (unsigned i = 0; r >= 0 && i < n && left.set != 0; i++)
                r = write_netdev(sk, &devs[i], t->vf, &left);
        if (r < 0)
                return r;
        return left.set == 0 ? 0 : -ENODEV;
}
