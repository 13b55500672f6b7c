/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests and replies as in Linux 6.12 (net/netlink/genetlink.c, net/devlink/dev.c). */
#include "genetlink.h"

#include <errno.h>
#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

enum {
        DEVLINK_FAMILY = NLMSG_MIN_TYPE + 4, /* any number but the controller's */
        DEVLINK_MAXATTR = DEVLINK_ATTR_MAX
};

typedef struct Request {
        const struct nlmsghdr *header;
        const struct genlmsghdr *command;
        const void *attributes;
        size_t size;
        const Reply *reply;
} Request;

/* Returns "" if there is no such string, or it has no NUL. */
static const char *find_string(const Request *q, uint16_t type) {
        const void *data = q->attributes;
        size_t size = q->size;
        const char *found = "";

        for (const struct nlattr *a; (a = attribute_next(&data, &size));)
                if (attribute_type(a) == type && memchr(attribute_data(a), '\0', attribute_size(a)))
                        found = attribute_data(a);
        return found;
}

static int begin(Message *m, uint8_t command, uint8_t version) {
        const struct genlmsghdr header = { .cmd = command, .version = version };

        return message_put(m, NULL, NLMSG_HDRLEN) && message_put(m, &header, sizeof(header)) ? 0 : -EMSGSIZE;
}

static int put_family(const Request *q, Message *m) {
        const uint16_t id = DEVLINK_FAMILY;
        const uint32_t version = DEVLINK_GENL_VERSION, none = 0, maxattr = DEVLINK_MAXATTR;

        if (strcmp(find_string(q, CTRL_ATTR_FAMILY_NAME), DEVLINK_GENL_NAME) != 0)
                return -ENOENT;
        if (begin(m, CTRL_CMD_NEWFAMILY, 2) < 0 ||
            attribute_put_string(m, CTRL_ATTR_FAMILY_NAME, DEVLINK_GENL_NAME) < 0 ||
            attribute_put(m, CTRL_ATTR_FAMILY_ID, &id, sizeof(id)) < 0 ||
            attribute_put(m, CTRL_ATTR_VERSION, &version, sizeof(version)) < 0 ||
            attribute_put(m, CTRL_ATTR_HDRSIZE, &none, sizeof(none)) < 0 ||
            attribute_put(m, CTRL_ATTR_MAXATTR, &maxattr, sizeof(maxattr)) < 0)
                return -EMSGSIZE;
        return 0;
}

static int put_eswitch(const Request *q, Message *m) {
        const char *bus = find_string(q, DEVLINK_ATTR_BUS_NAME), *address = find_string(q, DEVLINK_ATTR_DEV_NAME);
        const uint8_t none = 0;
        uint16_t mode;
        int r = strcmp(bus, "pci") == 0 && *address ? eswitch_read_mode(address, &mode) : -ENODEV;

        if (r < 0)
                return r;
        if (begin(m, DEVLINK_CMD_ESWITCH_GET, 0) < 0 || attribute_put_string(m, DEVLINK_ATTR_BUS_NAME, bus) < 0 ||
            attribute_put_string(m, DEVLINK_ATTR_DEV_NAME, address) < 0 ||
            attribute_put(m, DEVLINK_ATTR_ESWITCH_MODE, &mode, sizeof(mode)) < 0 ||
            attribute_put(m, DEVLINK_ATTR_ESWITCH_INLINE_MODE, &none, sizeof(none)) < 0 ||
            attribute_put(m, DEVLINK_ATTR_ESWITCH_ENCAP_MODE, &none, sizeof(none)) < 0)
                return -EMSGSIZE;
        return 0;
}

/* Handles a request. Dumps are not supported, because no client asks for one. */
static int handle_one(const Request *q) {
        Message m = { .data = malloc(MESSAGE_MAX) };
        int r = -EOPNOTSUPP;

        if (m.data && q->command && q->header->nlmsg_type == GENL_ID_CTRL && q->command->cmd == CTRL_CMD_GETFAMILY)
                r = put_family(q, &m);
        else if (m.data && q->command && q->header->nlmsg_type == DEVLINK_FAMILY &&
                 q->command->cmd == DEVLINK_CMD_ESWITCH_GET)
                r = put_eswitch(q, &m);
        if (r == 0)
                reply_send(q->reply, q->header, q->header->nlmsg_type, 0, &m);
        free(m.data);
        return r;
}

static Request parse(const struct nlmsghdr *header, const Reply *reply) {
        Request q = { .header = header, .reply = reply };

        if (header->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
                return q;
        q.command = NLMSG_DATA(header);
        q.attributes = (const uint8_t *) q.command + GENL_HDRLEN;
        q.size = header->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN);
        return q;
}

/* Handles one request per datagram, as all clients send. */
void genetlink_handle(const void *data, size_t size, const Reply *reply) {
        const struct nlmsghdr *header = data;
        Request q;
        int r;

        if (!NLMSG_OK(header, size) || !(header->nlmsg_flags & NLM_F_REQUEST))
                return;
        q = parse(header, reply);
        r = handle_one(&q);
        if (r < 0 || (header->nlmsg_flags & NLM_F_ACK))
                reply_error(reply, header, r);
}
