/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Appends JSON text to a printbuf. */

#include "model/json-text.h"

#include "model/json-value.h"
#include "util/strings.h"

#define BLOCK 16U

JsonText json_text_new(void) {
        struct printbuf *out = printbuf_new();

        return (JsonText){ .out = out, .failed = !out };
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

void json_text_object(JsonText *t, json_object *o) {
        const char *text = json_line(o);

        if (text)
                json_text_put(t, text, strlen(text));
        else
                t->failed = true;
        (void) json_object_put(o);
}

/* Nonzero when one of the n bytes is not ASCII or needs escaping in JSON. */
static inline unsigned find_special(const char *s, size_t n) {
        unsigned special = 0;

        for (size_t i = 0; i < n; i++)
                special |= s[i] < ' ' || s[i] == '"' || s[i] == '\\';
        return special;
}

/* The compiler turns the loop of constant length into vector instructions. */
static bool is_plain(const char *s, size_t n) {
        unsigned special = 0;

        for (; n >= BLOCK; s += BLOCK, n -= BLOCK)
                special |= find_special(s, BLOCK);
        return (special | find_special(s, n)) == 0;
}

/* Bytes of UTF-8 characters are written as they are. */
static void put_character(JsonText *t, char c) {
        char escaped[] = "\\u0000";

        if (c == '"' || c == '\\')
                json_text_literal(t, "\\");
        if ((unsigned char) c >= ' ') {
                json_text_put(t, &c, 1);
        } else {
                (void) format_hex(escaped + strlen("\\u"), (unsigned char) c, 4);
                json_text_literal(t, escaped);
        }
}

static void put_string(JsonText *t, const char *s, size_t n) {
        bool plain = is_plain(s, n);

        json_text_literal(t, "\"");
        if (plain)
                json_text_put(t, s, n);
        for (size_t i = 0; !plain && i < n; i++)
                put_character(t, s[i]);
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
