/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads and writes the attributes of a VF by rtnetlink: finds the PF's network interfaces, and for each of them sends
 * the kernel a request that reads (RTM_GETLINK) or writes (RTM_SETLINK) attributes.
 *
 * The messages are built with libnl. rtnl_link_vf of libnl-route 3.7 (lib/route/link/sriov.c) is not used: it drops
 * rates of 0 and the GUIDs of a reply, writes a VLAN's protocol in the wrong byte order, puts both GUIDs into one
 * IFLA_VF_INFO, from which the kernel takes only the node GUID (see put_info()), and replaces the kernel's errno by its
 * own error.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "netlink.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"
#include "vfattr-internal.h"

_Static_assert((int) VF_LINK_AUTO == IFLA_VF_LINK_STATE_AUTO && (int) VF_LINK_UP == IFLA_VF_LINK_STATE_ENABLE &&
                       (int) VF_LINK_DOWN == IFLA_VF_LINK_STATE_DISABLE,
               "VfLink must have the kernel's numbers");

static const uint16_t protocols[_VF_PROTOCOL_MAX] = {
        [VF_PROTOCOL_8021Q] = ETH_P_8021Q,
        [VF_PROTOCOL_8021AD] = ETH_P_8021AD,
};

static struct nla_policy vf_policy[IFLA_VF_MAX + 1] = {
        [IFLA_VF_MAC] = { .minlen = sizeof(struct ifla_vf_mac) },
        [IFLA_VF_VLAN] = { .minlen = sizeof(struct ifla_vf_vlan) },
        [IFLA_VF_VLAN_LIST] = { .type = NLA_NESTED },
        [IFLA_VF_SPOOFCHK] = { .minlen = sizeof(struct ifla_vf_spoofchk) },
        [IFLA_VF_RATE] = { .minlen = sizeof(struct ifla_vf_rate) },
        [IFLA_VF_LINK_STATE] = { .minlen = sizeof(struct ifla_vf_link_state) },
        [IFLA_VF_TRUST] = { .minlen = sizeof(struct ifla_vf_trust) },
        [IFLA_VF_IB_NODE_GUID] = { .minlen = sizeof(struct ifla_vf_guid) },
        [IFLA_VF_IB_PORT_GUID] = { .minlen = sizeof(struct ifla_vf_guid) },
};
static struct nla_policy vlan_policy[IFLA_VF_VLAN_INFO_MAX + 1] = {
        [IFLA_VF_VLAN_INFO] = { .minlen = sizeof(struct ifla_vf_vlan_info) },
};

/* A query for the VFs of an interface. */
typedef struct VfQuery {
        const PfNetdev *dev;
        VfAttributes *vfs; /* by VF index: what the kernel has reported so far */
        size_t n;
} VfQuery;

/* Reads trust or spoof check. The kernel reports -1 for a setting that the driver does not support. */
static void get_flag(struct nlattr *nla, VfAttribute a, VfAttributes *v) {
        struct ifla_vf_trust flag; /* ifla_vf_spoofchk has the same layout */

        if (nla && nla_memcpy(&flag, nla, sizeof(flag)) == sizeof(flag) && flag.setting != UINT32_MAX)
                vf_attributes_put(v, a, flag.setting != 0);
}

static int get_vlan(struct nlattr **tb, VfAttributes *v) {
        struct nlattr *list[IFLA_VF_VLAN_INFO_MAX + 1] = { NULL };
        const struct ifla_vf_vlan_info *info;

        if (tb[IFLA_VF_VLAN]) {
                const struct ifla_vf_vlan *vlan = nla_data(tb[IFLA_VF_VLAN]);

                vf_attributes_put(v, VF_VLAN, vlan->vlan);
                vf_attributes_put(v, VF_QOS, vlan->qos);
        }
        if (!tb[IFLA_VF_VLAN_LIST])
                return 0;
        if (nla_parse_nested(list, IFLA_VF_VLAN_INFO_MAX, tb[IFLA_VF_VLAN_LIST], vlan_policy) < 0)
                return -EPROTO;
        info = list[IFLA_VF_VLAN_INFO] ? nla_data(list[IFLA_VF_VLAN_INFO]) : NULL;
        for (VfProtocol p = 0; info && p < _VF_PROTOCOL_MAX; p++)
                if (ntohs(info->vlan_proto) == protocols[p])
                        vf_attributes_put(v, VF_PROTOCOL, p);
        return 0;
}

static void get_link_state(struct nlattr *nla, VfAttributes *v) {
        const struct ifla_vf_link_state *link = nla ? nla_data(nla) : NULL;

        if (link && link->link_state < _VF_LINK_MAX)
                vf_attributes_put(v, VF_LINK, link->link_state);
}

static int get_ethernet(struct nlattr **tb, VfAttributes *v) {
        const struct ifla_vf_mac *mac = nla_data(tb[IFLA_VF_MAC]);
        uint64_t address = 0;

        for (unsigned i = 0; i < ETH_ALEN; i++)
                address = address << 8 | mac->mac[i];
        vf_attributes_put(v, VF_MAC, address);
        get_flag(tb[IFLA_VF_TRUST], VF_TRUST, v);
        get_flag(tb[IFLA_VF_SPOOFCHK], VF_SPOOF_CHECK, v);
        if (tb[IFLA_VF_RATE]) {
                const struct ifla_vf_rate *rate = nla_data(tb[IFLA_VF_RATE]);

                vf_attributes_put(v, VF_MIN_RATE, rate->min_tx_rate);
                vf_attributes_put(v, VF_MAX_RATE, rate->max_tx_rate);
        }
        get_link_state(tb[IFLA_VF_LINK_STATE], v);
        return get_vlan(tb, v);
}

/* The GUID is a number in host byte order whose highest byte is the first octet, as in "ip link set vf node_guid". */
static void get_guid(struct nlattr *nla, VfAttribute a, VfAttributes *v) {
        struct ifla_vf_guid guid;

        /* Copy the GUID: it has 8 bytes, but netlink aligns attributes to 4. */
        if (nla && nla_memcpy(&guid, nla, sizeof(guid)) == sizeof(guid))
                vf_attributes_put(v, a, guid.guid);
}

/* Returns the entry of the VF with index `vf`. The entry of a VF that the kernel does not report has no attributes.
 * NULL: out of memory. */
static VfAttributes *add_vf(VfQuery *q, uint32_t vf) {
        while (q->n <= vf) {
                if (ARRAY_RESERVE(q->vfs, q->n) < 0)
                        return NULL;
                q->vfs[q->n++] = (VfAttributes) { 0 };
        }
        return &q->vfs[vf];
}

static int get_info(struct nlattr *info, unsigned type, VfQuery *q) {
        struct nlattr *tb[IFLA_VF_MAX + 1];
        const struct ifla_vf_mac *mac;
        VfAttributes *vf;

        if (nla_parse_nested(tb, IFLA_VF_MAX, info, vf_policy) < 0 || !tb[IFLA_VF_MAC])
                return -EPROTO;
        mac = nla_data(tb[IFLA_VF_MAC]);
        if (mac->vf > UINT16_MAX) /* a PF has at most 65535 VFs (TotalVFs) */
                return -EPROTO;
        vf = add_vf(q, mac->vf);
        if (!vf)
                return -ENOMEM;
        if (type == ARPHRD_ETHER)
                return get_ethernet(tb, vf);
        if (type != ARPHRD_INFINIBAND)
                return 0;
        /* On an IPoIB interface the VF's other attributes are zeros, or the PF's address. */
        get_guid(tb[IFLA_VF_IB_NODE_GUID], VF_NODE_GUID, vf);
        get_guid(tb[IFLA_VF_IB_PORT_GUID], VF_PORT_GUID, vf);
        get_link_state(tb[IFLA_VF_LINK_STATE], vf);
        return 0;
}

/* Returns whether the reply is about the PF's interface. The ifindex may have been reused since it was read. If sysfs
 * is a recording of another machine, the ifindex belongs to an unrelated interface of this machine, or to none. */
static bool is_of_pf(const struct ifinfomsg *link, struct nlattr *parent, const PfNetdev *dev) {
        return link->ifi_index == dev->ifindex &&
               (!parent ||
                nla_strcmp(parent, PCI_ADDRESS_STR(dev->pf)) == 0); /* the kernel reports the parent since Linux 5.14 */
}

static int get_link(struct nlmsghdr *header, void *userdata) {
        VfQuery *q = userdata;
        struct nlattr *tb[IFLA_MAX + 1], *info;
        const struct ifinfomsg *link = nlmsg_data(header);
        int rest;

        if (header->nlmsg_type != RTM_NEWLINK || nlmsg_parse(header, sizeof(*link), tb, IFLA_MAX, NULL) < 0)
                return -EPROTO;
        if (!is_of_pf(link, tb[IFLA_PARENT_DEV_NAME], q->dev))
                return -ENODEV;
        if (!tb[IFLA_VFINFO_LIST])
                return 0;
        nla_for_each_nested(info, tb[IFLA_VFINFO_LIST], rest) {
                int r = get_info(info, link->ifi_type, q);

                if (r < 0)
                        return r;
        }
        return 0;
}

static struct nl_msg *new_request(int type, const PfNetdev *dev) {
        struct ifinfomsg link = { .ifi_family = AF_UNSPEC, .ifi_index = dev->ifindex };
        _cleanup_(cleanup_nlmsg_free) struct nl_msg *msg = nlmsg_alloc_simple(type, 0);

        if (!msg || nlmsg_append(msg, &link, sizeof(link), NLMSG_ALIGNTO) < 0)
                return NULL;
        return TAKE_PTR(msg);
}

int vf_rtnl_read(struct nl_sock *sk, const PfNetdev *dev, VfAttributes **ret, size_t *ret_n) {
        _cleanup_(cleanup_nlmsg_free) struct nl_msg *request = new_request(RTM_GETLINK, dev);
        VfQuery q = { .dev = dev };
        int r;

        if (!request || nla_put_u32(request, IFLA_EXT_MASK, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS) < 0)
                return -ENOMEM;
        r = netlink_ask(sk, request, get_link, &q);
        if (r < 0) {
                free(q.vfs);
                return r;
        }
        *ret = q.vfs;
        *ret_n = q.n;
        return 0;
}

/*
 * Puts an attribute into an IFLA_VF_INFO of its own. In an IFLA_VF_INFO with several attributes the kernel's
 * do_setvfinfo() returns after a node GUID and silently ignores the port GUID.
 */
static int put_info(struct nl_msg *msg, int type, const void *data, size_t size) {
        struct nlattr *info = nla_nest_start(msg, IFLA_VF_INFO);

        if (!info || nla_put(msg, type, (int) size, data) < 0)
                return -ENOMEM;
        (void) nla_nest_end(msg, info);
        return 0;
}

typedef struct Put Put;
struct Put {
        unsigned bits; /* attributes that the kernel sets in one go */
        int (*put)(struct nl_msg *msg, const Put *p, unsigned vf, const VfAttributes *v);
        VfAttribute attribute; /* for put_setting() and put_guid(): the attribute, and its IFLA_VF_ type */
        int type;
};

static int put_mac(struct nl_msg *msg, const Put *p _unused_, unsigned vf, const VfAttributes *v) {
        struct ifla_vf_mac mac = { .vf = vf };

        for (unsigned i = 0; i < ETH_ALEN; i++)
                mac.mac[i] = (uint8_t) (v->value[VF_MAC] >> (8 * (ETH_ALEN - 1 - i)));
        return put_info(msg, IFLA_VF_MAC, &mac, sizeof(mac));
}

static int put_vlan_list(struct nl_msg *msg, unsigned vf, const VfAttributes *v) {
        struct {
                struct nlattr header;
                struct ifla_vf_vlan_info info;
        } list;

        memset(&list, 0, sizeof(list));
        list.header.nla_len = sizeof(list);
        list.header.nla_type = IFLA_VF_VLAN_INFO;
        list.info.vf = vf;
        list.info.vlan = (uint32_t) v->value[VF_VLAN];
        list.info.qos = (uint32_t) v->value[VF_QOS];
        list.info.vlan_proto = htons(protocols[v->value[VF_PROTOCOL]]);
        return put_info(msg, IFLA_VF_VLAN_LIST | NLA_F_NESTED, &list, sizeof(list));
}

/* Linux before 4.9 does not have IFLA_VF_VLAN_LIST, so the list is used only for protocols other than 802.1Q. */
static int put_vlan(struct nl_msg *msg, const Put *p _unused_, unsigned vf, const VfAttributes *v) {
        struct ifla_vf_vlan vlan = {
                .vf = vf,
                .vlan = (uint32_t) v->value[VF_VLAN],
                .qos = (uint32_t) v->value[VF_QOS],
        };

        if (v->value[VF_PROTOCOL] != VF_PROTOCOL_8021Q)
                return put_vlan_list(msg, vf, v);
        return put_info(msg, IFLA_VF_VLAN, &vlan, sizeof(vlan));
}

static int put_rates(struct nl_msg *msg, const Put *p _unused_, unsigned vf, const VfAttributes *v) {
        struct ifla_vf_rate rate = {
                .vf = vf,
                .min_tx_rate = (uint32_t) v->value[VF_MIN_RATE],
                .max_tx_rate = (uint32_t) v->value[VF_MAX_RATE],
        };

        return put_info(msg, IFLA_VF_RATE, &rate, sizeof(rate));
}

/* Writes spoof check, trust or link state, which have the same layout. */
static int put_setting(struct nl_msg *msg, const Put *p, unsigned vf, const VfAttributes *v) {
        struct ifla_vf_trust setting = { .vf = vf, .setting = (uint32_t) v->value[p->attribute] };

        return put_info(msg, p->type, &setting, sizeof(setting));
}

static int put_guid(struct nl_msg *msg, const Put *p, unsigned vf, const VfAttributes *v) {
        struct ifla_vf_guid guid;

        memset(&guid, 0, sizeof(guid)); /* also zeroes the padding */
        guid.vf = vf;
        guid.guid = v->value[p->attribute];
        return put_info(msg, p->type, &guid, sizeof(guid));
}

#define VLAN_BITS (VF_ATTRIBUTE_BIT(VF_VLAN) | VF_ATTRIBUTE_BIT(VF_QOS) | VF_ATTRIBUTE_BIT(VF_PROTOCOL))
#define RATE_BITS (VF_ATTRIBUTE_BIT(VF_MIN_RATE) | VF_ATTRIBUTE_BIT(VF_MAX_RATE))

/* The order of the writes: MAC and GUIDs before the link state, so that the link comes up with the right identity. */
#define ONE(attribute, put, type) { VF_ATTRIBUTE_BIT(attribute), (put), (attribute), (type) }
static const Put puts_in_order[] = {
        { .bits = VF_ATTRIBUTE_BIT(VF_MAC), .put = put_mac },
        { .bits = VLAN_BITS, .put = put_vlan },
        { .bits = RATE_BITS, .put = put_rates },
        ONE(VF_SPOOF_CHECK, put_setting, IFLA_VF_SPOOFCHK),
        ONE(VF_TRUST, put_setting, IFLA_VF_TRUST),
        ONE(VF_NODE_GUID, put_guid, IFLA_VF_IB_NODE_GUID),
        ONE(VF_PORT_GUID, put_guid, IFLA_VF_IB_PORT_GUID),
        ONE(VF_LINK, put_setting, IFLA_VF_LINK_STATE),
};

static int put_changes(struct nl_msg *msg, unsigned vf, const VfAttributes *now, const VfAttributes *change) {
        struct nlattr *list = nla_nest_start(msg, IFLA_VFINFO_LIST);
        VfAttributes v = *now;
        int r = list ? 0 : -ENOMEM;

        vf_attributes_merge(&v, change);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(puts_in_order); i++)
                if (change->set & puts_in_order[i].bits)
                        r = puts_in_order[i].put(msg, &puts_in_order[i], vf, &v);
        if (r < 0)
                return r;
        (void) nla_nest_end(msg, list);
        return r;
}

int vf_rtnl_write(struct nl_sock *sk, const PfNetdev *dev, unsigned vf, const VfAttributes *now,
                  const VfAttributes *change) {
        _cleanup_(cleanup_nlmsg_free) struct nl_msg *request = new_request(RTM_SETLINK, dev);
        _cleanup_free_ char *text = vf_attributes_format(change);
        int r;

        if (!request || !text)
                return -ENOMEM;
        r = put_changes(request, vf, now, change);
        if (r < 0)
                return r;
        log_debug("VF %u of %s, interface %d: %s", vf, PCI_ADDRESS_STR(dev->pf), dev->ifindex, text);
        return netlink_ask(sk, request, NULL, NULL);
}

/* The most network interfaces of a PF: those of its ports, representors of its VFs, and IPoIB child interfaces. */
#define ENTRIES_MAX     4096U
#define NETDEV_PATH_MAX 320

static int read_netdev_attribute(const VfTarget *t, const char *netdev, const char *attribute,
                                 char text[static SYSFS_ATTRIBUTE_MAX]) {
        char path[NETDEV_PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/%s/%s", PCI_PATH(t->pf, "net"), netdev, attribute);
        return sysfs_read(t->fs, path, text, SYSFS_ATTRIBUTE_MAX);
}

/* Returns the port of a network interface. Before Linux 4.20 IPoIB had the port only in dev_id. */
static unsigned read_port(const VfTarget *t, const char *netdev) {
        char text[SYSFS_ATTRIBUTE_MAX];
        uint64_t port = 0, id = 0;

        if (read_netdev_attribute(t, netdev, "dev_port", text) >= 0)
                (void) parse_unsigned(text, UINT16_MAX, &port);
        if (read_netdev_attribute(t, netdev, "dev_id", text) >= 0)
                (void) parse_hex(text, UINT16_MAX, &id);
        return (unsigned) MAX(port, id);
}

/* Returns whether the interface is a VF's representor. In switchdev mode, the PF's net directory has representors too.
 * A representor has a phys_port_name such as pf0vf3, the PF's own interface one such as p0. */
static bool is_representor(const VfTarget *t, const char *netdev) {
        char text[SYSFS_ATTRIBUTE_MAX];

        return read_netdev_attribute(t, netdev, "phys_port_name", text) >= 0 && strncmp(text, "pf", 2) == 0;
}

/* Adds `dev` to v->devs, which has one interface per port. Keeps the oldest interface of a port: an IPoIB child
 * interface is younger than its parent. */
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

                /* Skip representors, and an interface that has disappeared since the listing. */
                if (is_representor(t, names[i]) || read_netdev_attribute(t, names[i], "ifindex", text) < 0 ||
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

/* Finds and queries the PF's interfaces. -ENODEV: an interface disappeared since the listing, or sysfs is a recording
 * and the running kernel does not have the interface. */
static int ask_netdevs(const VfTarget *t) {
        _cleanup_(cleanup_nl_socket_free) struct nl_sock *sk = NULL;
        PfView *view = t->view;
        bool gone = false;
        int r;

        forget_netdevs(view);
        r = find_netdevs(t);
        if (r < 0 || view->n_devs == 0)
                return r;
        r = netlink_open(NETLINK_ROUTE, &sk);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < view->n_devs; i++) {
                r = vf_rtnl_read(sk, &view->devs[i], &view->vfs[i], &view->n_vfs[i]);
                gone = gone || r == -ENODEV;
                if (r < 0 && r != -ENODEV)
                        return r;
        }
        return gone ? -ENODEV : r;
}

/* Queries the PF's interfaces for all VFs of the PF. If an interface disappears meanwhile, lists and queries the PF's
 * interfaces once more. A second disappearance is ignored. */
static int ask_netdevs_twice(const VfTarget *t) {
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
        int r = t->view->netdevs_asked ? 0 : ask_netdevs_twice(t);

        if (r < 0)
                return r;
        for (unsigned i = 0; i < t->view->n_devs; i++) {
                VfAttributes offered = attributes_of(t, i);

                vf_attributes_merge(&offered, ret);
                *ret = offered;
        }
        return r;
}

/* Writes those attributes of `change` that the interface v->devs[dev] supports, and removes them from `change`. Returns
 * 0 or a negative errno. */
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
