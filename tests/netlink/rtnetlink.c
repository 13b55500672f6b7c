/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests and replies of rtnetlink. */
#include "rtnetlink.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "node.h"
#include "vfinfo.h"

enum {
        QUEUE = 1000,
        MTU = 1500,
        MTU_INFINIBAND = 2044
};

typedef struct Request {
        const struct nlmsghdr *header;
        const struct ifinfomsg *link;
        const void *attributes;
        size_t size;
        const Reply *reply;
        uint32_t filter; /* IFLA_EXT_MASK */
} Request;

/* links */

static int put_link(const Request *q, const Netdev *dev, Message *m) {
        bool infiniband = dev->type == ARPHRD_INFINIBAND;
        const struct ifinfomsg header = {
                .ifi_family = AF_UNSPEC,
                .ifi_type = dev->type,
                .ifi_index = (int) dev->ifindex,
                .ifi_flags = IFF_UP | IFF_BROADCAST | IFF_MULTICAST | IFF_RUNNING | IFF_LOWER_UP,
        };
        const uint32_t mtu = infiniband ? MTU_INFINIBAND : MTU, n_vfs = (uint32_t) dev->n_vfs;
        uint8_t broadcast[ADDRESS_MAX];

        memset(broadcast, 0xff, sizeof(broadcast));
        if (!message_put(m, NULL, NLMSG_HDRLEN) || !message_put(m, &header, sizeof(header)) ||
            attribute_put_string(m, IFLA_IFNAME, dev->name) < 0 ||
            attribute_put(m, IFLA_TXQLEN, &(uint32_t) { QUEUE }, sizeof(uint32_t)) < 0 ||
            attribute_put(m, IFLA_OPERSTATE, &(uint8_t) { IF_OPER_UP }, 1) < 0 ||
            attribute_put(m, IFLA_MTU, &mtu, sizeof(mtu)) < 0 ||
            attribute_put(m, IFLA_ADDRESS, dev->address, dev->address_size) < 0 ||
            attribute_put(m, IFLA_BROADCAST, broadcast, dev->address_size) < 0 ||
            attribute_put_string(m, IFLA_PHYS_PORT_NAME, dev->port_name) < 0 ||
            (dev->switch_id_size > 0 &&
             attribute_put(m, IFLA_PHYS_SWITCH_ID, dev->switch_id, dev->switch_id_size) < 0) ||
            attribute_put_string(m, IFLA_PARENT_DEV_NAME, dev->pci) < 0 ||
            (*dev->pci && attribute_put_string(m, IFLA_PARENT_DEV_BUS_NAME, "pci") < 0))
                return -EMSGSIZE;
        if (!(q->filter & RTEXT_FILTER_VF) || dev->n_vfs < 0)
                return 0;
        if (attribute_put(m, IFLA_NUM_VF, &n_vfs, sizeof(n_vfs)) < 0)
                return -EMSGSIZE;
        return dev->told ? vfinfo_put(m, dev) : 0;
}

static int send_link(const Request *q, const Netdev *dev, uint16_t flags) {
        Message m = { .data = malloc(MESSAGE_MAX) };
        int r = m.data ? put_link(q, dev, &m) : -ENOMEM;

        if (r == 0)
                reply_send(q->reply, q->header, RTM_NEWLINK, flags, &m);
        free(m.data);
        return r;
}

static int send_link_of_dump(const Netdev *dev, void *userdata) {
        return send_link(userdata, dev, NLM_F_MULTI);
}

static void dump_links(Request *q) {
        int32_t r = netdevs_each(send_link_of_dump, q);
        uint8_t data[64];
        Message m = { .data = data };

        (void) message_put(&m, NULL, NLMSG_HDRLEN);
        (void) message_put(&m, &r, sizeof(r));
        reply_send(q->reply, q->header, NLMSG_DONE, NLM_F_MULTI, &m);
}

static const struct nlattr *find_attribute(const Request *q, uint16_t type) {
        const void *data = q->attributes;
        size_t size = q->size;
        const struct nlattr *found = NULL;

        for (const struct nlattr *a; (a = attribute_next(&data, &size));)
                if (attribute_type(a) == type)
                        found = a;
        return found;
}

static const char *wanted_name(const Request *q) {
        const struct nlattr *a = find_attribute(q, IFLA_IFNAME) ?: find_attribute(q, IFLA_ALT_IFNAME);
        const char *name = a ? attribute_data(a) : NULL;

        return name && memchr(name, '\0', attribute_size(a)) ? name : NULL;
}

static int find_link(const Request *q, Netdev *ret) {
        if (!q->link)
                return -EINVAL;
        if (q->link->ifi_index <= 0 && !wanted_name(q)) /* RTM_NEWLINK would make an interface */
                return q->header->nlmsg_type == RTM_NEWLINK ? -ENODEV : -EINVAL;
        return netdev_find((uint32_t) q->link->ifi_index, wanted_name(q), ret);
}

static int get_link(const Request *q) {
        Netdev dev;
        int r = find_link(q, &dev);

        return r < 0 ? r : send_link(q, &dev, 0);
}

static void send_notification(void *userdata, const void *data, size_t size) {
        const Request *q = userdata;

        q->reply->notify(data, size);
}

/* Notifies as do_setlink() of the kernel: of the interface, without its VFs. */
static void notify(Request *q, const Netdev *dev) {
        const struct nlmsghdr header = { 0 };
        const Reply all = { .send = send_notification, .userdata = q };
        const Request notification = { .header = &header, .reply = &all };

        (void) send_link(&notification, dev, 0);
}

/* Sets attributes of VFs only. */
static int set_link(Request *q) {
        const struct nlattr *list = find_attribute(q, IFLA_VFINFO_LIST);
        const void *data;
        size_t size;
        Netdev dev;
        int r = find_link(q, &dev);

        if (r < 0)
                return r;
        if (!list)
                return -EOPNOTSUPP;
        data = attribute_data(list);
        size = attribute_size(list);
        for (const struct nlattr *a; r == 0 && (a = attribute_next(&data, &size));)
                r = attribute_type(a) == IFLA_VF_INFO ? vfinfo_set(&dev, attribute_data(a), attribute_size(a))
                                                      : -EINVAL;
        if (r == 0)
                notify(q, &dev);
        return r;
}

/* requests */

static void handle_one(Request *q) {
        bool dump = (q->header->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
        int r;

        if (q->header->nlmsg_type == RTM_GETLINK && dump) {
                dump_links(q);
                return;
        }
        if (q->header->nlmsg_type == RTM_GETLINK)
                r = get_link(q);
        else if (q->header->nlmsg_type == RTM_SETLINK || q->header->nlmsg_type == RTM_NEWLINK)
                r = set_link(q);
        else
                r = -EOPNOTSUPP;
        if (r < 0 || (q->header->nlmsg_flags & NLM_F_ACK))
                reply_error(q->reply, q->header, r);
}

static Request parse(const struct nlmsghdr *header, const Reply *reply) {
        Request q = { .header = header, .reply = reply };
        const struct nlattr *mask;

        if (header->nlmsg_len < NLMSG_LENGTH(sizeof(*q.link)))
                return q;
        q.link = NLMSG_DATA(header);
        q.attributes = IFLA_RTA(q.link);
        q.size = header->nlmsg_len - NLMSG_LENGTH(sizeof(*q.link));
        mask = find_attribute(&q, IFLA_EXT_MASK);
        if (mask && attribute_size(mask) >= sizeof(q.filter))
                memcpy(&q.filter, attribute_data(mask), sizeof(q.filter));
        return q;
}

void rtnetlink_handle(const void *data, size_t size, const Reply *reply) {
        const struct nlmsghdr *header = data;

        for (size_t left = size; NLMSG_OK(header, left);) {
                Request q = parse(header, reply);

                if (header->nlmsg_type >= NLMSG_MIN_TYPE && (header->nlmsg_flags & NLM_F_REQUEST))
                        handle_one(&q);
                else if (header->nlmsg_flags & NLM_F_ACK)
                        reply_error(reply, header, 0);
                left -= NLMSG_ALIGN(header->nlmsg_len) < left ? NLMSG_ALIGN(header->nlmsg_len) : left;
                header = (const struct nlmsghdr *) ((const uint8_t *) header + NLMSG_ALIGN(header->nlmsg_len));
        }
}
