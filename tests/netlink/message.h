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
        uint32_t port;                                 /* nl_pid of the requester */
        void (*notify)(const void *data, size_t size); /* sends to all listeners to links */
} Reply;

typedef struct Message {
        uint8_t *data; /* MESSAGE_MAX bytes */
        size_t size;
} Message;

/* Appends padded data. Returns its place, zeroed if data is NULL, or NULL without room. */
void *message_put(Message *m, const void *data, size_t size);
int attribute_put(Message *m, uint16_t type, const void *data, size_t size);
int attribute_put_string(Message *m, uint16_t type, const char *text);
struct nlattr *nest_begin(Message *m, uint16_t type);
void nest_end(const Message *m, struct nlattr *nest);

/* Fills in the header, for which m begins with NLMSG_HDRLEN bytes, and sends the message. */
void reply_send(const Reply *reply, const struct nlmsghdr *request, uint16_t type, uint16_t flags, const Message *m);
/* An error repeats the request. An acknowledgement, error 0, repeats its header. */
void reply_error(const Reply *reply, const struct nlmsghdr *request, int error);

/* Returns the next attribute in *data, *size, or NULL. A truncated attribute ends them. */
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
