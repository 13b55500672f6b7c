/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void *message_put(Message *m, const void *data, size_t size) {
        uint8_t *place = m->data + m->size;

        if (NLA_ALIGN(size) > MESSAGE_MAX - m->size)
                return NULL;
        memset(place, 0, NLA_ALIGN(size));
        if (data)
                memcpy(place, data, size);
        m->size += NLA_ALIGN(size);
        return place;
}

int attribute_put(Message *m, uint16_t type, const void *data, size_t size) {
        const struct nlattr header = { .nla_len = (uint16_t) (NLA_HDRLEN + size), .nla_type = type };

        return message_put(m, &header, sizeof(header)) && message_put(m, data, size) ? 0 : -EMSGSIZE;
}

int attribute_put_string(Message *m, uint16_t type, const char *text) {
        return *text ? attribute_put(m, type, text, strlen(text) + 1) : 0;
}

struct nlattr *nest_begin(Message *m, uint16_t type) {
        const struct nlattr header = { .nla_len = NLA_HDRLEN, .nla_type = type };

        return message_put(m, &header, sizeof(header));
}

void nest_end(const Message *m, struct nlattr *nest) {
        nest->nla_len = (uint16_t) (m->data + m->size - (uint8_t *) nest);
}

void reply_send(const Reply *reply, const struct nlmsghdr *request, uint16_t type, uint16_t flags, const Message *m) {
        *(struct nlmsghdr *) m->data = (struct nlmsghdr) {
                .nlmsg_len = (uint32_t) m->size,
                .nlmsg_type = type,
                .nlmsg_flags = flags,
                .nlmsg_seq = request->nlmsg_seq,
                .nlmsg_pid = reply->port,
        };
        reply->send(reply->userdata, m->data, m->size);
}

void reply_error(const Reply *reply, const struct nlmsghdr *request, int error) {
        const struct nlmsgerr body = { .error = error, .msg = *request };
        size_t rest = error < 0 ? request->nlmsg_len - sizeof(*request) : 0;
        Message m = { .data = malloc(MESSAGE_MAX) };

        if (m.data && message_put(&m, NULL, NLMSG_HDRLEN) && message_put(&m, &body, sizeof(body)) &&
            message_put(&m, request + 1, rest))
                reply_send(reply, request, NLMSG_ERROR, error == 0 ? NLM_F_CAPPED : 0, &m);
        free(m.data);
}

const struct nlattr *attribute_next(const void **data, size_t *size) {
        const struct nlattr *a = *data;
        size_t step;

        if (*size < sizeof(*a) || a->nla_len < sizeof(*a) || a->nla_len > *size)
                return NULL;
        step = NLA_ALIGN(a->nla_len);
        step = step < *size ? step : *size;
        *data = (const uint8_t *) *data + step;
        *size -= step;
        return a;
}
