/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "messages.h"

#include <errno.h>

#define WIRE_VARINT 0U
#define WIRE_BYTES  2U
#define NUMBER_MAX  ((1U << 29) - 1)

typedef struct WireReader {
        const uint8_t *at, *end;
} WireReader;

typedef struct WireField {
        uint32_t number;
        unsigned type;
        uint64_t value;      /* value of a WIRE_VARINT field */
        const uint8_t *data; /* content of a WIRE_BYTES field; points into the message */
        size_t size;
} WireField;

static WireReader wire_read(const uint8_t *data, size_t size) {
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

/* Reads the next field. Returns 1, 0 at the end of the message, or -EBADMSG. */
static int wire_next(WireReader *r, WireField *ret) {
        uint64_t tag, size;

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
        case WIRE_BYTES:
                if (read_varint(r, &size) < 0)
                        return -EBADMSG;
                ret->data = r->at;
                ret->size = (size_t) size;
                return skip(r, size) < 0 ? -EBADMSG : 1;
        case 1: /* 64 bits */
                return skip(r, 8) < 0 ? -EBADMSG : 1;
        case 5: /* 32 bits */
                return skip(r, 4) < 0 ? -EBADMSG : 1;
        default: /* groups, which were removed from the format */
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

bool name_is_valid(const char *name) {
        size_t n = strlen(name);

        for (size_t i = 0; i < n; i++) {
                char c = name[i];
                bool is_inner = i > 0 && i < n - 1;

                if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (is_inner && (c == '-' || c == '.'))))
                        return false;
        }
        return n > 0;
}

static int parse_claim(const WireField *claim, ClaimRef *ret) {
        char *const texts[] = { ret->namespace, ret->uid, ret->name }; /* fields 1 to 3 */
        const size_t sizes[] = { sizeof(ret->namespace), sizeof(ret->uid), sizeof(ret->name) };
        WireReader r = wire_read(claim->data, claim->size);
        WireField f;
        int more;

        while ((more = wire_next(&r, &f)) > 0) {
                if (f.number > ELEMENTSOF(texts))
                        continue;
                if (f.type != WIRE_BYTES)
                        return -EBADMSG;
                if (f.size >= sizes[f.number - 1] || memchr(f.data, '\0', f.size))
                        return -EINVAL;
                memcpy(texts[f.number - 1], f.data, f.size);
                texts[f.number - 1][f.size] = '\0';
        }
        if (more < 0)
                return more;
        return name_is_valid(ret->namespace) && name_is_valid(ret->name) && text_is_uuid(ret->uid) ? 0 : -EINVAL;
}

int message_parse_claims(const uint8_t *data, size_t size, ClaimRef **ret, size_t *ret_n) {
        _cleanup_free_ ClaimRef *claims = calloc(CLAIMS_MAX, sizeof(*claims));
        WireReader r = wire_read(data, size);
        WireField f;
        size_t n = 0;
        int more;

        if (!claims)
                return -ENOMEM;
        while ((more = wire_next(&r, &f)) > 0) {
                int e;

                if (f.number != 1)
                        continue;
                if (f.type != WIRE_BYTES)
                        return -EBADMSG;
                if (n == CLAIMS_MAX)
                        return -E2BIG;
                e = parse_claim(&f, &claims[n++]);
                if (e < 0)
                        return e;
        }
        if (more < 0)
                return more;
        *ret = TAKE_PTR(claims);
        *ret_n = n;
        return 0;
}

int message_parse_status(const uint8_t *data, size_t size, bool *ret_registered, char *error, size_t error_size) {
        WireReader r = wire_read(data, size);
        bool registered = false;
        WireField f;
        int more;

        *error = '\0';
        while ((more = wire_next(&r, &f)) > 0) {
                if (f.number == 1 && f.type == WIRE_VARINT)
                        registered = f.value != 0;
                if (f.number == 2 && f.type == WIRE_BYTES) {
                        size_t n = MIN(f.size, error_size - 1);

                        memcpy(error, f.data, n);
                        error[n] = '\0';
                }
        }
        if (more == 0)
                *ret_registered = registered;
        return more;
}

void message_put_device(WireBuffer *b, const char *request, const char *pool, const char *device, const char *cdi_id) {
        _cleanup_(wire_done) WireBuffer value = { 0 };

        wire_put_text(&value, 1, request);
        wire_put_text(&value, 2, pool);
        wire_put_text(&value, 3, device);
        wire_put_text(&value, 4, cdi_id);
        wire_put_message(b, 1, &value);
}

/* Writes one entry of the response's map of claims: the UID as key (field 1), the result as value (field 2). */
void message_put_claim(WireBuffer *b, const char *uid, const WireBuffer *devices, const char *error) {
        _cleanup_(wire_done) WireBuffer value = { 0 }, entry = { 0 };

        if (devices)
                wire_append(&value, devices->data, devices->size);
        value.is_failed |= devices && devices->is_failed;
        wire_put_text(&value, devices ? 2 : 1, error);
        wire_put_text(&entry, 1, uid);
        wire_put_message(&entry, 2, &value);
        wire_put_message(b, 1, &entry);
}

void message_put_plugin_info(WireBuffer *b, const char *type, const char *name, const char *endpoint,
                             const char *const *versions) {
        wire_put_text(b, 1, type);
        wire_put_text(b, 2, name);
        wire_put_text(b, 3, endpoint);
        for (; *versions; versions++)
                wire_put_text(b, 4, *versions);
}

void message_put_health(WireBuffer *b, const char *pool, const char *device, HealthStatus health, uint64_t seconds,
                        const char *message) {
        _cleanup_(wire_done) WireBuffer id = { 0 }, value = { 0 };

        wire_put_text(&id, 1, pool);
        wire_put_text(&id, 2, device);
        wire_put_message(&value, 1, &id);
        wire_put_number(&value, 2, health);
        wire_put_number(&value, 3, seconds);
        wire_put_text(&value, 5, message);
        wire_put_message(b, 1, &value);
}
