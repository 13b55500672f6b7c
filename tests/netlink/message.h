/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Netlink messages and their attributes. */
#pragma once

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_MAX (128U << 10)

typedef struct Reply {
        void (*send)(void *userdata, const void *data, size_t size); /* one datagram */
        void *userdata;
        uint32_t port;                                 /* nl_pid of who asks */
        void (*notify)(const void *data, size_t size); /* all that listen to links */
} Reply;

typedef struct Message {
        uint8_t *data; /* MESSAGE_MAX bytes */
        size_t size;
} Message;

/* Pads; returns the place of the data, zeroed where data is NULL, or NULL when there is no room. */
void *message_put(Message *m, const void *data, size_t size);
int attribute_put(Message *m, uint16_t type, const void *data, size_t size);
int attribute_put_string(Message *m, uint16_t type, const char *text);
struct nlattr *nest_begin(Message *m, uint16_t type);
void nest_end(const Message *m, struct nlattr *nest);

/* Fills in the header, for which the first NLMSG_HDRLEN bytes of m are, and sends it. */
void reply_send(const Reply *reply, const struct nlmsghdr *request, uint16_t type, uint16_t flags, const Message *m);
/* An error repeats the request; 0, an acknowledgement, its header. */
void reply_error(const Reply *reply, const struct nlmsghdr *request, int error);

/* The next attribute of those in *data, *size, or NULL; one that does not fit ends them. */
const struct nlattr *attribute_next(const void **data, size_t *size);
static inline uint16_t attribute_type(const struct nlattr *a) {
        return a->nla_type & NLA_TYPE_MASK;
}
static inline const void *attribute_data(const struct nlattr *a) {
        return (const uint8_t *) a + NLA_HDRLEN;
}
static inline size_t attribute_size(const struct nlattr *a) {
        return a->nla_len - (size_t) NLA_HDRLEN;
}
