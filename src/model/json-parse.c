/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/json-parse.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "util/strings.h"

typedef struct Parser {
        const char *p, *end;
        char *buf; /* the string that was read last */
        size_t capacity;
        unsigned depth;
        size_t left; /* what the values that follow may cost */
} Parser;

/* Returns the next byte without reading it; NUL at the end. A NUL in the text ends the parse, too: no token has one. */
static char peek(const Parser *p) {
        return p->p < p->end ? *p->p : '\0';
}

static void skip_space(Parser *p) {
        while (p->p < p->end && strchr(" \t\n\r", *p->p) && *p->p)
                p->p++;
}

static bool take(Parser *p, char c) {
        if (peek(p) != c)
                return false;
        p->p++;
        return true;
}

static bool take_word(Parser *p, const char *word) {
        size_t n = strlen(word);

        if ((size_t) (p->end - p->p) < n || memcmp(p->p, word, n) != 0)
                return false;
        p->p += n;
        return true;
}

/* Reads four hex digits. Returns false if there are fewer. */
static bool take_unit(Parser *p, uint32_t *ret) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";

        *ret = 0;
        for (unsigned i = 0; i < 4; i++) {
                const char *digit = peek(p) ? strchr(digits, peek(p)) : NULL;

                if (!digit)
                        return false;
                *ret = *ret << 4 | ((uint32_t) (digit - digits) & 0xf);
                p->p++;
        }
        return true;
}

/* Reads the digits of \uHHHH and, for a surrogate pair, the second \uHHHH. Returns false if digits are missing, and for
 * \u0000. */
static bool take_code(Parser *p, uint32_t *ret) {
        const char *second;
        uint32_t low;

        if (!take_unit(p, ret) || *ret == 0)
                return false;
        if (*ret < 0xd800 || *ret > 0xdfff)
                return true;
        second = p->p;
        if (*ret < 0xdc00 && take_word(p, "\\u") && take_unit(p, &low) && low >= 0xdc00 && low <= 0xdfff) {
                *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
        } else {
                p->p = second;
                *ret = UTF8_REPLACEMENT;
        }
        return true;
}

static bool take_escape(Parser *p, uint32_t *ret) {
        static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
        const char *letter;

        if (take(p, 'u'))
                return take_code(p, ret);
        letter = peek(p) ? strchr(letters, peek(p)) : NULL;
        if (!letter)
                return false;
        *ret = (uint8_t) meanings[letter - letters];
        p->p++;
        return true;
}

/* Reads one character of a string. Returns false for a control character and for an invalid escape. */
static bool take_character(Parser *p, uint32_t *ret) {
        size_t n;

        if ((uint8_t) *p->p < ' ')
                return false;
        if (take(p, '\\'))
                return take_escape(p, ret);
        n = utf8_decode(p->p, (size_t) (p->end - p->p), ret);
        if (n == 0)
                *ret = UTF8_REPLACEMENT;
        p->p += MAX(n, (size_t) 1);
        return true;
}

/* Makes room in p->buf for a string of n bytes. A byte that is not UTF-8 becomes the three bytes of U+FFFD. */
static int reserve(Parser *p, size_t n) {
        char *larger;

        if (n > (INT_MAX - 1) / 3) /* json-c's sizes are of type int */
                return -EBADMSG;
        if (3 * n < p->capacity)
                return 0;
        larger = realloc(p->buf, 3 * n + 1);
        if (!larger)
                return -ENOMEM;
        p->buf = larger;
        p->capacity = 3 * n + 1;
        return 0;
}

/* Reads a string into p->buf. 0 or a negative errno. */
static int take_string(Parser *p, size_t *ret_size) {
        const char *quote;
        size_t n = 0;
        int r;

        if (!take(p, '"'))
                return -EBADMSG;
        for (quote = p->p; quote < p->end && *quote != '"';)
                quote += *quote == '\\' && quote + 1 < p->end ? 2 : 1;
        if (quote == p->end)
                return -EBADMSG;
        r = reserve(p, (size_t) (quote - p->p));
        if (r < 0)
                return r;
        while (p->p < quote) {
                uint32_t code;

                if (*p->p >= ' ' && *p->p < 0x7f && *p->p != '\\') { /* a plain character, as most are */
                        p->buf[n++] = *p->p++;
                        continue;
                }
                if (!take_character(p, &code))
                        return -EBADMSG;
                n += utf8_encode(code, p->buf + n);
        }
        p->p++;
        p->buf[n] = '\0';
        *ret_size = n;
        return 0;
}

static size_t skip_digits(Parser *p) {
        const char *start = p->p;

        while (peek(p) >= '0' && peek(p) <= '9')
                p->p++;
        return (size_t) (p->p - start);
}

/* Skips a number. *ret_is_integer: it has no fraction and no exponent. */
static bool skip_number(Parser *p, bool *ret_is_integer) {
        *ret_is_integer = true;
        (void) take(p, '-');
        if (!take(p, '0') && skip_digits(p) == 0)
                return false;
        if (take(p, '.')) {
                *ret_is_integer = false;
                if (skip_digits(p) == 0)
                        return false;
        }
        if (take(p, 'e') || take(p, 'E')) {
                *ret_is_integer = false;
                if (!take(p, '-'))
                        (void) take(p, '+');
                return skip_digits(p) > 0;
        }
        return true;
}

static int make_number(const char *text, bool is_integer, json_object **ret) {
        bool is_negative = text[0] == '-';
        int64_t negative = 0;
        uint64_t n = 0;
        double d = 0;

        errno = 0;
        if (!is_integer)
                d = strtod(text, NULL);
        else if (is_negative)
                negative = strtoll(text, NULL, 10);
        else
                n = strtoull(text, NULL, 10);
        if (is_integer ? errno == ERANGE : isinf(d))
                return -EBADMSG;
        if (!is_integer)
                *ret = json_object_new_double_s(d, text);
        else
                *ret = is_negative ? json_object_new_int64(negative) : json_object_new_uint64(n);
        return *ret ? 0 : -ENOMEM;
}

static int parse_number(Parser *p, json_object **ret) {
        char text[JSON_NUMBER_MAX + 1];
        const char *start = p->p;
        bool is_integer;
        size_t n;

        if (!skip_number(p, &is_integer))
                return -EBADMSG;
        n = (size_t) (p->p - start);
        if (n >= sizeof(text))
                return -EBADMSG;
        memcpy(text, start, n);
        text[n] = '\0';
        return make_number(text, is_integer, ret);
}

static int parse_value(Parser *p, json_object **ret);

static int charge(Parser *p, size_t cost) {
        if (cost > p->left)
                return -E2BIG;
        p->left -= cost;
        return 0;
}

static int parse_member(Parser *p, json_object *object) {
        _cleanup_json_ json_object *value = NULL;
        _cleanup_free_ char *key = NULL;
        size_t n;
        int r;

        skip_space(p);
        r = take_string(p, &n);
        if (r < 0)
                return r;
        if (json_object_object_get_ex(object, p->buf, NULL))
                return -EBADMSG;
        r = charge(p, JSON_COST_MEMBER);
        if (r < 0)
                return r;
        key = strdup(p->buf);
        if (!key)
                return -ENOMEM;
        skip_space(p);
        if (!take(p, ':'))
                return -EBADMSG;
        r = parse_value(p, &value);
        if (r < 0)
                return r;
        if (json_object_object_add_ex(object, key, value, JSON_C_OBJECT_ADD_KEY_IS_NEW) < 0)
                return -ENOMEM;
        TAKE_PTR(value);
        return 0;
}

static int parse_element(Parser *p, json_object *array) {
        _cleanup_json_ json_object *value = NULL;
        int r = parse_value(p, &value);

        if (r < 0)
                return r;
        if (json_object_array_add(array, value) < 0)
                return -ENOMEM;
        TAKE_PTR(value);
        return 0;
}

/* Parses an object or array after its opening bracket, into `all`, which is empty. Takes ownership of `all`, which
 * is NULL if memory for it ran out. */
static int parse_all(Parser *p, json_object *all, char closing, int (*parse)(Parser *p, json_object *all),
                     json_object **ret) {
        _cleanup_json_ json_object *o = all;
        int r;

        if (!o)
                return -ENOMEM;
        if (++p->depth > JSON_DEPTH_MAX)
                return -EBADMSG;
        skip_space(p);
        if (!take(p, closing))
                for (;;) {
                        r = parse(p, o);
                        if (r < 0)
                                return r;
                        skip_space(p);
                        if (take(p, closing))
                                break;
                        if (!take(p, ','))
                                return -EBADMSG;
                }
        p->depth--;
        *ret = TAKE_PTR(o);
        return 0;
}

static int parse_string(Parser *p, json_object **ret) {
        size_t n;
        int r = take_string(p, &n);

        if (r < 0)
                return r;
        *ret = json_object_new_string_len(p->buf, (int) n);
        return *ret ? 0 : -ENOMEM;
}

static int parse_boolean(Parser *p, const char *word, bool value, json_object **ret) {
        if (!take_word(p, word))
                return -EBADMSG;
        *ret = json_object_new_boolean(value);
        return *ret ? 0 : -ENOMEM;
}

/* Parses any value. *ret is NULL before the call, and stays NULL for null. */
static int parse_value(Parser *p, json_object **ret) {
        int r;

        skip_space(p);
        r = charge(p, peek(p) == '{' ? JSON_COST_OBJECT : peek(p) == '[' ? JSON_COST_ARRAY : JSON_COST);
        if (r < 0)
                return r;
        switch (peek(p)) {
        case '{':
                p->p++;
                return parse_all(p, json_object_new_object(), '}', parse_member, ret);
        case '[':
                p->p++;
                return parse_all(p, json_object_new_array(), ']', parse_element, ret);
        case '"':
                return parse_string(p, ret);
        case 'n':
                return take_word(p, "null") ? 0 : -EBADMSG;
        case 't':
                return parse_boolean(p, "true", true, ret);
        case 'f':
                return parse_boolean(p, "false", false, ret);
        default:
                return parse_number(p, ret);
        }
}

int json_parse_within(const char *text, size_t size, size_t max, json_object **ret) {
        Parser p = { .p = text, .end = text + size, .left = max };
        _cleanup_json_ json_object *o = NULL;
        int r;

        *ret = NULL;
        r = parse_value(&p, &o);
        free(p.buf);
        if (r < 0)
                return r;
        skip_space(&p);
        if (p.p < p.end || !json_object_is_type(o, json_type_object))
                return -EBADMSG;
        *ret = TAKE_PTR(o);
        return 0;
}

int json_parse(const char *text, size_t size, json_object **ret) {
        return json_parse_within(text, size, SIZE_MAX, ret);
}

json_object *json_find(json_object *array, const char *key, const char *text) {
        for (size_t i = 0; i < json_length(array); i++)
                if (streq_ptr(member_text(json_at(array, i), key), text))
                        return json_at(array, i);
        return NULL;
}

static int read_member(json_object *o, const char *key, json_type type, json_object **ret) {
        json_object *value;

        if (!json_object_object_get_ex(o, key, &value))
                return -ENOENT;
        if (!value)
                return -ENODATA;
        if (!json_object_is_type(value, type))
                return -EBADMSG;
        *ret = value;
        return 0;
}

int json_read_text(json_object *o, const char *key, const char **ret) {
        json_object *value;
        int r = read_member(o, key, json_type_string, &value);

        if (r >= 0)
                *ret = json_object_get_string(value);
        return r;
}

int json_to_number(json_object *value, uint64_t max, uint64_t *ret) {
        if (!json_object_is_type(value, json_type_int))
                return -EBADMSG;
        if (json_object_get_int64(value) < 0 || json_object_get_uint64(value) > max)
                return -ERANGE;
        *ret = json_object_get_uint64(value);
        return 0;
}

int json_read_number(json_object *o, const char *key, uint64_t max, uint64_t *ret) {
        json_object *value;
        int r = read_member(o, key, json_type_int, &value);

        return r < 0 ? r : json_to_number(value, max, ret);
}

int json_read_flag(json_object *o, const char *key, bool *ret) {
        json_object *value;
        int r = read_member(o, key, json_type_boolean, &value);

        if (r >= 0)
                *ret = json_object_get_boolean(value);
        return r;
}

int json_read_array(json_object *o, const char *key, size_t max, json_object **ret) {
        json_object *value;
        int r = read_member(o, key, json_type_array, &value);

        if (r < 0)
                return r;
        if (json_object_array_length(value) > max)
                return -ERANGE;
        *ret = value;
        return 0;
}
