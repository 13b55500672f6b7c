/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/json-text.h"

#include "util/strings.h"

#define BLOCK 16U

JsonText json_text_new(void) {
        struct printbuf *out = printbuf_new();

        return (JsonText) { .out = out, .failed = !out };
}

char *json_text_finish(JsonText *t) {
        char *text = t->failed ? NULL : TAKE_PTR(t->out->buf);

        printbuf_free(t->out);
        return text;
}

void json_text_put(JsonText *t, const char *text, size_t n) {
        if (t->failed)
                return;
        if (t->out->size - t->out->bpos > (int) n) {
                memcpy(t->out->buf + t->out->bpos, text, n);
                t->out->bpos += (int) n;
                t->out->buf[t->out->bpos] = '\0';
        } else if (printbuf_memappend(t->out, text, (int) n) < 0) {
                t->failed = true;
        }
}

/* Returns nonzero when one of the n bytes is not ASCII, or needs an escape in JSON. */
static inline unsigned find_special(const char *s, size_t n) {
        unsigned special = 0;

        for (size_t i = 0; i < n; i++)
                special |= (signed char) s[i] < ' ' || s[i] == '"' || s[i] == '\\';
        return special;
}

/* Returns true when no byte needs an escape. Checks blocks of constant length, for which the compiler uses vector
 * instructions. */
static bool is_plain(const char *s, size_t n) {
        unsigned special = 0;

        for (; n >= BLOCK; s += BLOCK, n -= BLOCK)
                special |= find_special(s, BLOCK);
        return (special | find_special(s, n)) == 0;
}

/* Appends a UTF-16 code unit as \uHHHH. */
static void put_escape(JsonText *t, uint32_t unit) {
        char escape[] = "\\u0000";

        (void) format_hex(escape + strlen("\\u"), unit, 4);
        json_text_literal(t, escape);
}

static void put_character(JsonText *t, uint32_t code) {
        char c = (char) code;

        if (code == '"' || code == '\\')
                json_text_literal(t, "\\");
        if (code >= ' ' && code < 0x80) {
                json_text_put(t, &c, 1);
        } else if (code < 0x10000) {
                put_escape(t, code);
        } else {
                put_escape(t, 0xd800 + ((code - 0x10000) >> 10));
                put_escape(t, 0xdc00 + (code & 0x3ff));
        }
}

static void put_string(JsonText *t, const char *s, size_t n) {
        json_text_literal(t, "\"");
        if (is_plain(s, n)) {
                json_text_put(t, s, n);
                n = 0;
        }
        while (n > 0) {
                uint32_t code;
                size_t size = utf8_decode(s, n, &code);

                put_character(t, size > 0 ? code : UTF8_REPLACEMENT);
                size = MAX(size, (size_t) 1);
                s += size;
                n -= size;
        }
        json_text_literal(t, "\"");
}

void json_text_string(JsonText *t, const char *s) {
        if (s)
                put_string(t, s, strlen(s));
        else
                json_text_literal(t, "null");
}

void json_text_words(JsonText *t, const char *words) {
        bool first = true;

        json_text_literal(t, "[");
        for (const char *w = words; w && *w; w += strspn(w, " \n")) {
                size_t n = strcspn(w, " \n");

                if (n > 0 && !first)
                        json_text_literal(t, ",");
                if (n > 0)
                        put_string(t, w, n);
                first = first && n == 0;
                w += n;
        }
        json_text_literal(t, "]");
}

void json_text_address(JsonText *t, PciAddress a) {
        char text[1 + PCI_ADDRESS_STRING_MAX + 1] = "\"";
        size_t n = 1 + strlen(pci_address_format(a, text + 1));

        text[n++] = '"';
        json_text_put(t, text, n);
}

void json_text_hex(JsonText *t, unsigned value, unsigned digits) {
        char text[18] = "\"", *end = format_hex(text + 1, value, digits);

        *end++ = '"';
        json_text_put(t, text, (size_t) (end - text));
}

void json_text_boolean(JsonText *t, bool value) {
        if (value)
                json_text_literal(t, "true");
        else
                json_text_literal(t, "false");
}

void json_text_number(JsonText *t, uint64_t n) {
        char text[20];

        json_text_put(t, text, (size_t) (format_unsigned(text, n) - text));
}

void json_text_known(JsonText *t, int n) {
        if (n >= 0)
                json_text_number(t, (uint64_t) n);
        else
                json_text_literal(t, "null");
}

static void put_object(JsonText *t, json_object *o) {
        bool first = true;

        json_text_literal(t, "{");
        json_object_object_foreach(o, key, value) {
                if (!first)
                        json_text_literal(t, ",");
                first = false;
                json_text_string(t, key);
                json_text_literal(t, ":");
                json_text_value(t, value);
        }
        json_text_literal(t, "}");
}

static void put_array(JsonText *t, json_object *o) {
        json_text_literal(t, "[");
        for (size_t i = 0; i < json_object_array_length(o); i++) {
                if (i > 0)
                        json_text_literal(t, ",");
                json_text_value(t, json_object_array_get_idx(o, i));
        }
        json_text_literal(t, "]");
}

static void put_integer(JsonText *t, json_object *o) {
        int64_t n = json_object_get_int64(o);

        if (n < 0)
                json_text_literal(t, "-");
        json_text_number(t, n < 0 ? -(uint64_t) n : json_object_get_uint64(o));
}

void json_text_value(JsonText *t, json_object *o) {
        const char *text;

        switch (json_object_get_type(o)) {
        case json_type_object:
                return put_object(t, o);
        case json_type_array:
                return put_array(t, o);
        case json_type_string:
                return put_string(t, json_object_get_string(o), (size_t) json_object_get_string_len(o));
        case json_type_int:
                return put_integer(t, o);
        default: /* null, true, false, or a number with a fraction */
                text = json_object_to_json_string(o);
                if (text)
                        json_text_put(t, text, strlen(text));
                t->failed |= !text;
        }
}

void json_text_object(JsonText *t, json_object *o) {
        json_text_value(t, o);
        (void) json_object_put(o);
}
