/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Translates between the node's files and IFLA_VF_*. */
#include "vfinfo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>

#define GUID_FORMAT "%02x:%02x:%02x:%02x:%02x:%02x:%02x:%02x"

static const char *const link_states[] = {
        [IFLA_VF_LINK_STATE_AUTO] = "auto",
        [IFLA_VF_LINK_STATE_ENABLE] = "enable",
        [IFLA_VF_LINK_STATE_DISABLE] = "disable",
};

/* Files to attributes */

static void read_mac(const Netdev *dev, uint32_t vf, uint8_t ret[static 32]) {
        char text[64];
        unsigned b[6];

        if (vf_read(dev, vf, "mac", text) < 0) { /* IPoIB reports its own address */
                memcpy(ret, dev->address, dev->address_size);
                return;
        }
        if (sscanf(text, "%x:%x:%x:%x:%x:%x", b, b + 1, b + 2, b + 3, b + 4, b + 5) == 6)
                for (unsigned i = 0; i < 6; i++)
                        ret[i] = (uint8_t) b[i];
}

static void read_vlan(const Netdev *dev, uint32_t vf, struct ifla_vf_vlan_info *ret) {
        char text[64], protocol[8] = "";

        memset(ret, 0, sizeof(*ret)); /* the padding is sent too */
        ret->vf = vf;
        ret->vlan_proto = htons(ETH_P_8021Q);
        if (vf_read(dev, vf, "vlan", text) == 0 && sscanf(text, "%u %u %7s", &ret->vlan, &ret->qos, protocol) == 3 &&
            strcmp(protocol, "802.1ad") == 0)
                ret->vlan_proto = htons(ETH_P_8021AD);
}

static struct ifla_vf_rate read_rate(const Netdev *dev, uint32_t vf) {
        struct ifla_vf_rate rate = { .vf = vf };
        char text[64];

        if (vf_read(dev, vf, "rate", text) == 0)
                (void) sscanf(text, "%u %u", &rate.min_tx_rate, &rate.max_tx_rate);
        return rate;
}

/* Returns -1 if the driver does not report the value. */
static uint32_t read_switch(const Netdev *dev, uint32_t vf, const char *file) {
        char text[64];

        return vf_read(dev, vf, file, text) < 0 ? UINT32_MAX : strcmp(text, "on") == 0;
}

static uint32_t read_link(const Netdev *dev, uint32_t vf) {
        char text[64];

        if (vf_read(dev, vf, "link_state", text) == 0)
                for (uint32_t i = 0; i < sizeof(link_states) / sizeof(*link_states); i++)
                        if (strcmp(text, link_states[i]) == 0)
                                return i;
        return IFLA_VF_LINK_STATE_AUTO;
}

static int put_guid(Message *m, const Netdev *dev, uint32_t vf, const char *file, uint16_t type) {
        struct ifla_vf_guid guid = { .vf = vf };
        unsigned b[8];
        char text[64];

        if (vf_read(dev, vf, file, text) < 0 ||
            sscanf(text, GUID_FORMAT, b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7) != 8)
                return 0; /* no ndo_get_vf_guid */
        for (unsigned i = 0; i < 8; i++)
                guid.guid = guid.guid << 8 | b[i];
        return attribute_put(m, type, &guid, sizeof(guid));
}

static int put_vlan_list(Message *m, const struct ifla_vf_vlan_info *info) {
        struct nlattr *list = nest_begin(m, IFLA_VF_VLAN_LIST);

        if (!list || attribute_put(m, IFLA_VF_VLAN_INFO, info, sizeof(*info)) < 0)
                return -EMSGSIZE;
        nest_end(m, list);
        return 0;
}

#define PUT(m, type, ...) attribute_put((m), (type), &(__VA_ARGS__), sizeof(__VA_ARGS__))

static int put_vf(Message *m, const Netdev *dev, uint32_t vf) {
        struct ifla_vf_vlan_info info;
        const struct ifla_vf_rate rate = read_rate(dev, vf);
        struct ifla_vf_mac mac = { .vf = vf };
        struct ifla_vf_broadcast broadcast = {};
        struct nlattr *nest = nest_begin(m, IFLA_VF_INFO);

        if (!nest)
                return -EMSGSIZE;
        read_vlan(dev, vf, &info);
        read_mac(dev, vf, mac.mac);
        memset(broadcast.broadcast, 0xff, dev->address_size);
        if (PUT(m, IFLA_VF_MAC, mac) < 0 || PUT(m, IFLA_VF_BROADCAST, broadcast) < 0 ||
            PUT(m, IFLA_VF_VLAN, (struct ifla_vf_vlan) { vf, info.vlan, info.qos }) < 0 ||
            PUT(m, IFLA_VF_RATE, rate) < 0 ||
            PUT(m, IFLA_VF_TX_RATE, (struct ifla_vf_tx_rate) { vf, rate.max_tx_rate }) < 0 ||
            PUT(m, IFLA_VF_SPOOFCHK, (struct ifla_vf_spoofchk) { vf, read_switch(dev, vf, "spoofchk") }) < 0 ||
            PUT(m, IFLA_VF_LINK_STATE, (struct ifla_vf_link_state) { vf, read_link(dev, vf) }) < 0 ||
            PUT(m, IFLA_VF_RSS_QUERY_EN, (struct ifla_vf_rss_query_en) { vf, UINT32_MAX }) < 0 ||
            PUT(m, IFLA_VF_TRUST, (struct ifla_vf_trust) { vf, read_switch(dev, vf, "trust") }) < 0 ||
            put_guid(m, dev, vf, "node_guid", IFLA_VF_IB_NODE_GUID) < 0 ||
            put_guid(m, dev, vf, "port_guid", IFLA_VF_IB_PORT_GUID) < 0 || put_vlan_list(m, &info) < 0)
                return -EMSGSIZE;
        nest_end(m, nest);
        return 0;
}

int vfinfo_put(Message *m, const Netdev *dev) {
        struct nlattr *list = nest_begin(m, IFLA_VFINFO_LIST);
        int r = list ? 0 : -EMSGSIZE;

        for (uint32_t vf = 0; r == 0 && dev->n_vfs > 0 && vf < (uint32_t) dev->n_vfs; vf++)
                r = put_vf(m, dev, vf);
        if (r == 0)
                nest_end(m, list);
        return r;
}

/* Attributes to files */

static int set_mac(const Netdev *dev, const void *data) {
        const struct ifla_vf_mac *a = data;
        char text[64];

        (void) snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", a->mac[0], a->mac[1], a->mac[2], a->mac[3],
                        a->mac[4], a->mac[5]);
        return vf_write(dev, a->vf, "mac", text);
}

static int write_vlan(const Netdev *dev, uint32_t vf, uint32_t vlan, uint32_t qos, uint16_t protocol) {
        char text[64];

        (void) snprintf(text, sizeof(text), "%u %u %s", vlan, qos,
                        protocol == htons(ETH_P_8021Q)    ? "802.1q"
                        : protocol == htons(ETH_P_8021AD) ? "802.1ad"
                                                          : "other");
        return vf_write(dev, vf, "vlan", text);
}

static int set_vlan(const Netdev *dev, const void *data) {
        const struct ifla_vf_vlan *a = data;

        return write_vlan(dev, a->vf, a->vlan, a->qos, htons(ETH_P_8021Q));
}

/* The kernel uses the first VLAN of the list. */
static int set_vlan_list(const Netdev *dev, const void *data, size_t size) {
        const struct nlattr *a = attribute_next(&data, &size);
        const struct ifla_vf_vlan_info *info;

        if (!a || attribute_type(a) != IFLA_VF_VLAN_INFO || attribute_size(a) < sizeof(*info))
                return -EINVAL;
        if (attribute_next(&data, &size)) /* MAX_VLAN_LIST_LEN is 1 */
                return -EOPNOTSUPP;
        info = attribute_data(a);
        return write_vlan(dev, info->vf, info->vlan, info->qos, info->vlan_proto);
}

static int write_rate(const Netdev *dev, uint32_t vf, uint32_t low, uint32_t high) {
        char text[64];

        (void) snprintf(text, sizeof(text), "%u %u", low, high);
        return vf_write(dev, vf, "rate", text);
}

static int set_tx_rate(const Netdev *dev, const void *data) {
        const struct ifla_vf_tx_rate *a = data;

        return write_rate(dev, a->vf, read_rate(dev, a->vf).min_tx_rate, a->rate);
}

static int set_rate(const Netdev *dev, const void *data) {
        const struct ifla_vf_rate *a = data;

        return write_rate(dev, a->vf, a->min_tx_rate, a->max_tx_rate);
}

static int set_spoofchk(const Netdev *dev, const void *data) {
        const struct ifla_vf_spoofchk *a = data;

        return vf_write(dev, a->vf, "spoofchk", a->setting ? "on" : "off");
}

static int set_trust(const Netdev *dev, const void *data) {
        const struct ifla_vf_trust *a = data;

        return vf_write(dev, a->vf, "trust", a->setting ? "on" : "off");
}

static int set_link(const Netdev *dev, const void *data) {
        const struct ifla_vf_link_state *a = data;
        bool known = a->link_state < sizeof(link_states) / sizeof(*link_states);

        return vf_write(dev, a->vf, "link_state", known ? link_states[a->link_state] : "other");
}

static int write_guid(const Netdev *dev, const struct ifla_vf_guid *a, const char *file) {
        char text[64];
        unsigned b[8];

        for (unsigned i = 0; i < 8; i++)
                b[i] = (unsigned) (a->guid >> (56 - 8 * i) & 0xff);
        (void) snprintf(text, sizeof(text), GUID_FORMAT, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]);
        return vf_write(dev, a->vf, file, text);
}

static int set_node_guid(const Netdev *dev, const void *data) {
        return write_guid(dev, data, "node_guid");
}

static int set_port_guid(const Netdev *dev, const void *data) {
        return write_guid(dev, data, "port_guid");
}

static int set_nothing(const Netdev *dev, const void *data) {
        (void) dev, (void) data;
        return -EOPNOTSUPP;
}

/* In the kernel's order. do_setvfinfo() returns after a node GUID. */
static const struct {
        uint16_t type;
        size_t size;
        int (*set)(const Netdev *dev, const void *data); /* each attribute begins with the VF's number; NULL: a list */
} setters[] = {
        { IFLA_VF_MAC, sizeof(struct ifla_vf_mac), set_mac },
        { IFLA_VF_VLAN, sizeof(struct ifla_vf_vlan), set_vlan },
        { IFLA_VF_VLAN_LIST, 0, NULL },
        { IFLA_VF_TX_RATE, sizeof(struct ifla_vf_tx_rate), set_tx_rate },
        { IFLA_VF_RATE, sizeof(struct ifla_vf_rate), set_rate },
        { IFLA_VF_SPOOFCHK, sizeof(struct ifla_vf_spoofchk), set_spoofchk },
        { IFLA_VF_LINK_STATE, sizeof(struct ifla_vf_link_state), set_link },
        { IFLA_VF_RSS_QUERY_EN, sizeof(struct ifla_vf_rss_query_en), set_nothing },
        { IFLA_VF_TRUST, sizeof(struct ifla_vf_trust), set_trust },
        { IFLA_VF_IB_NODE_GUID, sizeof(struct ifla_vf_guid), set_node_guid },
        { IFLA_VF_IB_PORT_GUID, sizeof(struct ifla_vf_guid), set_port_guid },
};
enum {
        N_SETTERS = sizeof(setters) / sizeof(*setters)
};

/* The last attribute of each type counts. One that is too short fails the request before any write. */
static int parse(const void *data, size_t size, const struct nlattr *ret[static IFLA_VF_MAX + 1]) {
        for (const struct nlattr *a; (a = attribute_next(&data, &size));)
                if (attribute_type(a) <= IFLA_VF_MAX)
                        ret[attribute_type(a)] = a;
        for (size_t i = 0; i < N_SETTERS; i++) {
                const struct nlattr *a = ret[setters[i].type];

                if (a && attribute_size(a) < setters[i].size)
                        return -ERANGE;
        }
        return 0;
}

int vfinfo_set(const Netdev *dev, const void *data, size_t size) {
        const struct nlattr *given[IFLA_VF_MAX + 1] = {};
        int r = parse(data, size, given);

        for (size_t i = 0; r == 0 && i < N_SETTERS; i++) {
                const struct nlattr *a = given[setters[i].type];

                if (!a)
                        continue;
                if (!setters[i].set)
                        r = set_vlan_list(dev, attribute_data(a), attribute_size(a));
                else if (*(const uint32_t *) attribute_data(a) >= INT_MAX)
                        r = -EINVAL;
                else
                        r = setters[i].set(dev, attribute_data(a));
                if (setters[i].type == IFLA_VF_IB_NODE_GUID)
                        break;
        }
        return r;
}
