/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "message.h"

#include <errno.h>
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
