/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * rtnetlink without a kernel: replies have the layout of rtnl_fill_vfinfo() of Linux 6.12, and requests are handled as
 * in its do_setvfinfo(). Include after unit.h.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "treefixture.h"

#define NETDEVS_MAX 4
#define VFS         3
#define ABSENT      UINT32_MAX

typedef struct Datagram {
        uint8_t data[8192];
        size_t size;
} Datagram;

typedef struct Vf {
        uint8_t mac[32];
        uint32_t vlan, qos, spoof, trust, min, max, link;
        uint16_t protocol;
        uint64_t node_guid, port_guid;
} Vf;

/* The fake kernel. The index of an interface is its ifindex. */
static struct {
        struct {
                uint16_t type; /* 0: no interface */
                const char *parent;
                unsigned n_vfs;
                bool has_guids, has_vlan_list;
                Vf vfs[VFS];
        } netdevs[NETDEVS_MAX];
        int error;         /* errno of the next RTM_SETLINK, or with get_error of RTM_GETLINK */
        bool get_error;    /* error is for RTM_GETLINK */
        bool keeps_mac;    /* acknowledges a MAC and ignores it */
        size_t cut;        /* bytes of a reply that arrive; 0: all */
        size_t shrink;     /* as cut, and the message's length says the same */
        uint32_t foreign;  /* added to the sequence number of replies */
        int renumbered;    /* added to the ifindex in replies */
        size_t mac_cut;    /* bytes missing from IFLA_VF_MAC; all: no attribute */
        Datagram get, set; /* the last RTM_GETLINK and RTM_SETLINK */
        Datagram replies[2];
        unsigned n_replies, next_reply, sockets, sets;
} kernel;

static void put(Datagram *d, uint16_t type, const void *data, size_t size) {
        struct nlattr header = { .nla_len = (uint16_t) (NLA_HDRLEN + size), .nla_type = type };

        assert_true(d->size + NLA_HDRLEN + size + NLA_ALIGNTO <= sizeof(d->data));
        memcpy(d->data + d->size, &header, sizeof(header));
        if (size > 0)
                memcpy(d->data + d->size + NLA_HDRLEN, data, size);
        memset(d->data + d->size + NLA_HDRLEN + size, 0, NLA_ALIGN(size) - size);
        d->size += NLA_HDRLEN + NLA_ALIGN(size);
}

/* As the kernel's nla_nest_start_noflag(): without NLA_F_NESTED. */
static size_t nest(Datagram *d, uint16_t type) {
        size_t at = d->size;

        put(d, type, NULL, 0);
        return at;
}

static void nest_end(Datagram *d, size_t at) {
        uint16_t size = (uint16_t) (d->size - at);

        memcpy(d->data + at, &size, sizeof(size));
}

#define PUT(d, type, ...) put((d), (type), &(__VA_ARGS__), sizeof(__VA_ARGS__))

static void fill_vfinfo(Datagram *d, uint32_t i, const Vf *vf, bool guids, bool vlan_list) {
        struct ifla_vf_mac mac = { .vf = i };
        size_t info = nest(d, IFLA_VF_INFO), list;

        memcpy(mac.mac, vf->mac, sizeof(vf->mac));
        if (kernel.mac_cut < sizeof(mac))
                put(d, IFLA_VF_MAC, &mac, sizeof(mac) - kernel.mac_cut);
        PUT(d, IFLA_VF_BROADCAST, (struct ifla_vf_broadcast) { { 0xff } });
        PUT(d, IFLA_VF_VLAN, (struct ifla_vf_vlan) { i, vf->vlan, vf->qos });
        PUT(d, IFLA_VF_RATE, (struct ifla_vf_rate) { i, vf->min, vf->max });
        PUT(d, IFLA_VF_TX_RATE, (struct ifla_vf_tx_rate) { i, vf->max });
        PUT(d, IFLA_VF_SPOOFCHK, (struct ifla_vf_spoofchk) { i, vf->spoof });
        PUT(d, IFLA_VF_LINK_STATE, (struct ifla_vf_link_state) { i, vf->link });
        PUT(d, IFLA_VF_RSS_QUERY_EN, (struct ifla_vf_rss_query_en) { i, ABSENT });
        PUT(d, IFLA_VF_TRUST, (struct ifla_vf_trust) { i, vf->trust });
        if (guids) {
                PUT(d, IFLA_VF_IB_NODE_GUID, (struct ifla_vf_guid) { i, vf->node_guid });
                PUT(d, IFLA_VF_IB_PORT_GUID, (struct ifla_vf_guid) { i, vf->port_guid });
        }
        if (vlan_list) {
                list = nest(d, IFLA_VF_VLAN_LIST);
                PUT(d, IFLA_VF_VLAN_INFO, (struct ifla_vf_vlan_info) { i, vf->vlan, vf->qos, htons(vf->protocol) });
                nest_end(d, list);
        }
        nest_end(d, info);
}

static Datagram *new_reply(const struct nlmsghdr *request, uint16_t type, const void *data, size_t size) {
        Datagram *d = &kernel.replies[kernel.n_replies++];
        struct nlmsghdr header = *request;

        header.nlmsg_type = type;
        header.nlmsg_flags = 0;
        header.nlmsg_seq += kernel.foreign;
        memcpy(d->data, &header, sizeof(header));
        memcpy(d->data + sizeof(header), data, size);
        d->size = sizeof(header) + NLMSG_ALIGN(size);
        return d;
}

static void end_reply(Datagram *d) {
        uint32_t size = (uint32_t) d->size;

        if (kernel.shrink > 0)
                d->size = size = (uint32_t) MIN(kernel.shrink, d->size);
        memcpy(d->data, &size, sizeof(size));
        if (kernel.cut > 0)
                d->size = MIN(kernel.cut, d->size);
}

static void reply_error(const struct nlmsghdr *request, int error) {
        struct nlmsgerr e = { .error = error, .msg = *request };
        Datagram *d = new_reply(request, NLMSG_ERROR, &e, sizeof(e));
        uint32_t size = (uint32_t) d->size;

        memcpy(d->data, &size, sizeof(size));
        if (kernel.cut > 0 && request->nlmsg_type == RTM_SETLINK)
                d->size = MIN(kernel.cut, d->size);
}

static void reply_link(const struct nlmsghdr *request, int index) {
        struct ifinfomsg link = { .ifi_type = kernel.netdevs[index].type, .ifi_index = index + kernel.renumbered };
        Datagram *d = new_reply(request, RTM_NEWLINK, &link, sizeof(link));
        size_t list;

        put(d, IFLA_IFNAME, "any0", sizeof("any0"));
        PUT(d, IFLA_NUM_VF, (uint32_t) { kernel.netdevs[index].n_vfs });
        if (kernel.netdevs[index].n_vfs > 0) {
                list = nest(d, IFLA_VFINFO_LIST);
                for (uint32_t i = 0; i < kernel.netdevs[index].n_vfs; i++)
                        fill_vfinfo(d, i, &kernel.netdevs[index].vfs[i], kernel.netdevs[index].has_guids,
                                    kernel.netdevs[index].has_vlan_list);
                nest_end(d, list);
        }
        if (kernel.netdevs[index].parent)
                put(d, IFLA_PARENT_DEV_NAME, kernel.netdevs[index].parent, strlen(kernel.netdevs[index].parent) + 1);
        end_reply(d);
}

/* Applies one attribute of an IFLA_VF_INFO as do_setvfinfo() does. */
static void apply(int index, struct nlattr *nla) {
        const uint32_t *u = nla_data(nla);
        Vf *vf;
        struct ifla_vf_vlan_info info;
        struct ifla_vf_guid guid;

        if (nla_type(nla) == IFLA_VF_VLAN_LIST) /* the VLAN in a nested attribute */
                u = nla_data(nla_data(nla));
        assert_in_range(u[0], 0, VFS - 1);
        vf = &kernel.netdevs[index].vfs[u[0]];

        switch (nla_type(nla)) {
        case IFLA_VF_MAC:
                if (!kernel.keeps_mac)
                        memcpy(vf->mac, u + 1, sizeof(vf->mac));
                break;
        case IFLA_VF_VLAN:
                vf->vlan = u[1];
                vf->qos = u[2];
                vf->protocol = ETH_P_8021Q;
                break;
        case IFLA_VF_RATE:
                vf->min = u[1];
                vf->max = u[2];
                break;
        case IFLA_VF_SPOOFCHK:
                vf->spoof = u[1];
                break;
        case IFLA_VF_TRUST:
                vf->trust = u[1];
                break;
        case IFLA_VF_LINK_STATE:
                vf->link = u[1];
                break;
        case IFLA_VF_IB_NODE_GUID:
        case IFLA_VF_IB_PORT_GUID:
                memcpy(&guid, u, sizeof(guid));
                *(nla_type(nla) == IFLA_VF_IB_NODE_GUID ? &vf->node_guid : &vf->port_guid) = guid.guid;
                break;
        case IFLA_VF_VLAN_LIST:
                memcpy(&info, u, sizeof(info));
                vf->vlan = info.vlan;
                vf->qos = info.qos;
                vf->protocol = ntohs(info.vlan_proto);
                break;
        default:
                fail_msg("attribute %d", nla_type(nla));
        }
}

static void keep_request(Datagram *d, const struct nlmsghdr *request) {
        assert_true(request->nlmsg_len <= sizeof(d->data));
        memcpy(d->data, request, request->nlmsg_len);
        d->size = request->nlmsg_len;
}

static void set_link(struct nlmsghdr *request, int index) {
        struct nlattr *list = nlmsg_find_attr(request, sizeof(struct ifinfomsg), IFLA_VFINFO_LIST), *info;
        int rest;

        kernel.sets++;
        keep_request(&kernel.set, request);
        if (kernel.error == 0)
                nla_for_each_nested(info, list, rest) {
                        apply(index, nla_data(info)); /* of several attributes it would apply only one */
                }
        reply_error(request, kernel.error);
}

static int on_send(struct nl_sock *sk, struct nl_msg *msg) {
        struct nlmsghdr *request = nlmsg_hdr(msg);
        int index = ((struct ifinfomsg *) nlmsg_data(request))->ifi_index;

        kernel.n_replies = kernel.next_reply = 0;
        assert_in_range(index, 0, NETDEVS_MAX - 1);
        assert_int_equal(request->nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
        if (kernel.netdevs[index].type == 0)
                reply_error(request, -ENODEV);
        else if (request->nlmsg_type == RTM_SETLINK)
                set_link(request, index);
        else {
                assert_int_equal(request->nlmsg_type, RTM_GETLINK);
                keep_request(&kernel.get, request);
                if (!kernel.get_error)
                        reply_link(request, index);
                reply_error(request, kernel.get_error ? kernel.error : 0);
        }
        return (int) request->nlmsg_len;
}

/* The buffer has exactly the received size, so that the sanitizer sees any read beyond. */
static int on_receive(struct nl_sock *sk, struct sockaddr_nl *from, unsigned char **ret, struct ucred **creds) {
        const Datagram *d = &kernel.replies[kernel.next_reply];

        assert_true(kernel.next_reply++ < kernel.n_replies); /* another receive would block for ever */
        *from = (struct sockaddr_nl) { .nl_family = AF_NETLINK };
        *ret = malloc(d->size);
        assert_non_null(*ret);
        memcpy(*ret, d->data, d->size);
        return (int) d->size;
}

/* Replaces the functions of libnl. */
int nl_connect(struct nl_sock *sk, int protocol) {
        struct nl_cb *cb = nl_socket_get_cb(sk);

        assert_int_equal(protocol, NETLINK_ROUTE);
        kernel.sockets++;
        nl_cb_overwrite_send(cb, on_send);
        nl_cb_overwrite_recv(cb, on_receive);
        nl_cb_put(cb);
        return 0;
}
