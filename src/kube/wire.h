/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding): a message is a sequence of fields,
 * each with a number and a type. Pure. A reader stays within its bytes, also when they are no
 * message.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_VARINT 0U
#define WIRE_BYTES  2U

typedef struct WireReader {
        const uint8_t *at, *end;
} WireReader;

/* data may be NULL when size is 0. */
WireReader wire_read(const uint8_t *data, size_t size);

typedef struct WireField {
        uint32_t number;
        unsigned type;
        uint64_t value;      /* of WIRE_VARINT */
        const uint8_t *data; /* of WIRE_BYTES: part of the message */
        size_t size;
} WireField;

/* The next field. 1, 0 at the end of the message, or -EBADMSG. */
int wire_next(WireReader *r, WireField *ret);

/* A message being written. Once memory is short, is_failed is set and nothing more is written. */
typedef struct WireBuffer {
        uint8_t *data;
        size_t size, capacity;
        bool is_failed;
} WireBuffer;

void wire_done(WireBuffer *b);
void wire_append(WireBuffer *b, const void *data, size_t size);
/* These leave out 0 and "", as proto3 does. */
void wire_put_number(WireBuffer *b, uint32_t number, uint64_t value);
void wire_put_text(WireBuffer *b, uint32_t number, const char *text);
/* The message may be empty. */
void wire_put_message(WireBuffer *b, uint32_t number, const WireBuffer *message);
