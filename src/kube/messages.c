/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "messages.h"

#include <errno.h>

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

static int copy_text(const WireField *f, char *ret, size_t size) {
        if (f->type != WIRE_BYTES)
                return -EBADMSG;
        if (f->size >= size || memchr(f->data, '\0', f->size))
                return -EINVAL;
        memcpy(ret, f->data, f->size);
        ret[f->size] = '\0';
        return 0;
}

static int parse_claim(const WireField *claim, ClaimRef *ret) {
        WireReader r = wire_read(claim->data, claim->size);
        WireField f;
        int more;

        while ((more = wire_next(&r, &f)) > 0) {
                int e = 0;

                if (f.number == 1)
                        e = copy_text(&f, ret->namespace, sizeof(ret->namespace));
                else if (f.number == 2)
                        e = copy_text(&f, ret->uid, sizeof(ret->uid));
                else if (f.number == 3)
                        e = copy_text(&f, ret->name, sizeof(ret->name));
                if (e < 0)
                        return e;
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

/* An entry of a map has its key in field 1 and its value in field 2. */
static void put_entry(WireBuffer *b, const char *uid, const WireBuffer *value) {
        _cleanup_(wire_done) WireBuffer entry = { 0 };

        wire_put_text(&entry, 1, uid);
        wire_put_message(&entry, 2, value);
        wire_put_message(b, 1, &entry);
}

void message_put_prepared(WireBuffer *b, const char *uid, const MessageDevice *devices, size_t n, const char *error) {
        _cleanup_(wire_done) WireBuffer value = { 0 };

        for (size_t i = 0; i < n; i++) {
                _cleanup_(wire_done) WireBuffer device = { 0 };

                wire_put_text(&device, 1, devices[i].request);
                wire_put_text(&device, 2, devices[i].pool);
                wire_put_text(&device, 3, devices[i].device);
                wire_put_text(&device, 4, devices[i].cdi_id);
                wire_put_message(&value, 1, &device);
        }
        wire_put_text(&value, 2, error);
        put_entry(b, uid, &value);
}

void message_put_unprepared(WireBuffer *b, const char *uid, const char *error) {
        _cleanup_(wire_done) WireBuffer value = { 0 };

        wire_put_text(&value, 1, error);
        put_entry(b, uid, &value);
}

void message_put_plugin_info(WireBuffer *b, const char *type, const char *name, const char *endpoint,
                             const char *const *versions) {
        wire_put_text(b, 1, type);
        wire_put_text(b, 2, name);
        wire_put_text(b, 3, endpoint);
        for (; *versions; versions++)
                wire_put_text(b, 4, *versions);
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
