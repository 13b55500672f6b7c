/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "wire.h"

#include <errno.h>

#include "util/cleanup.h"

#define NUMBER_MAX ((1U << 29) - 1)

WireReader wire_read(const uint8_t *data, size_t size) {
        return (WireReader) { data, size > 0 ? data + size : data };
}

static int read_varint(WireReader *r, uint64_t *ret) {
        uint64_t value = 0;

        for (unsigned shift = 0; shift < 70; shift += 7) {
                uint8_t byte;

                if (r->at == r->end)
                        return -EBADMSG;
                byte = *r->at++;
                if (shift == 63 && byte > 1)
                        return -EBADMSG;
                value |= (uint64_t) (byte & 0x7f) << shift;
                if (byte < 0x80) {
                        *ret = value;
                        return 0;
                }
        }
        return -EBADMSG;
}

static int skip(WireReader *r, uint64_t size) {
        if ((uint64_t) (r->end - r->at) < size)
                return -EBADMSG;
        r->at += size;
        return 0;
}

int wire_next(WireReader *r, WireField *ret) {
        uint64_t tag;

        if (r->at == r->end)
                return 0;
        *ret = (WireField) { 0 };
        if (read_varint(r, &tag) < 0 || tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
                return -EBADMSG;
        ret->number = (uint32_t) (tag >> 3);
        ret->type = tag & 7;
        switch (ret->type) {
        case WIRE_VARINT:
                return read_varint(r, &ret->value) < 0 ? -EBADMSG : 1;
        case 1: /* 64 bits */
                return skip(r, 8) < 0 ? -EBADMSG : 1;
        case WIRE_BYTES: {
                uint64_t size;

                if (read_varint(r, &size) < 0)
                        return -EBADMSG;
                ret->data = r->at;
                if (skip(r, size) < 0)
                        return -EBADMSG;
                ret->size = (size_t) size;
                return 1;
        }
        case 5: /* 32 bits */
                return skip(r, 4) < 0 ? -EBADMSG : 1;
        default: /* groups have gone from the format */
                return -EBADMSG;
        }
}

void wire_done(WireBuffer *b) {
        free(b->data);
        *b = (WireBuffer) { 0 };
}

void wire_append(WireBuffer *b, const void *data, size_t size) {
        if (b->is_failed || size == 0)
                return;
        if (b->size + size > b->capacity) {
                size_t capacity = MAX(2 * b->capacity, b->size + size + 64);
                uint8_t *larger = realloc(b->data, capacity);

                if (!larger) {
                        b->is_failed = true;
                        return;
                }
                b->data = larger;
                b->capacity = capacity;
        }
        memcpy(b->data + b->size, data, size);
        b->size += size;
}

static void put_varint(WireBuffer *b, uint64_t value) {
        uint8_t bytes[10];
        size_t n = 0;

        for (; value >= 0x80; value >>= 7)
                bytes[n++] = (uint8_t) (value | 0x80);
        bytes[n++] = (uint8_t) value;
        wire_append(b, bytes, n);
}

void wire_put_number(WireBuffer *b, uint32_t number, uint64_t value) {
        if (value == 0)
                return;
        put_varint(b, (uint64_t) number << 3 | WIRE_VARINT);
        put_varint(b, value);
}

static void put_bytes(WireBuffer *b, uint32_t number, const void *data, size_t size) {
        put_varint(b, (uint64_t) number << 3 | WIRE_BYTES);
        put_varint(b, size);
        wire_append(b, data, size);
}

void wire_put_text(WireBuffer *b, uint32_t number, const char *text) {
        if (text && *text)
                put_bytes(b, number, text, strlen(text));
}

void wire_put_message(WireBuffer *b, uint32_t number, const WireBuffer *message) {
        if (message->is_failed)
                b->is_failed = true;
        else
                put_bytes(b, number, message->data, message->size);
}
