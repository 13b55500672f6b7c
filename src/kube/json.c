/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "json.h"

#include "model/json-parse.h"

json_object *json_format(const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        _cleanup_json_ json_object *o = NULL;
        va_list ap;

        va_start(ap, format);
        text = string_vformat(format, ap);
        va_end(ap);
        for (char *c = text; c && *c; c++)
                if (*c == '\'')
                        *c = '"';
        /* A text for json_parse() is one object. */
        if (text && *text == '[' && string_replace(&text, "{\"\":%s}", text) == 0 &&
            json_parse(text, strlen(text), &o) == 0)
                return json_object_get(member(o, ""));
        return text && json_parse(text, strlen(text), &o) == 0 ? TAKE_PTR(o) : NULL;
}

bool json_append(json_object *array, json_object *value) {
        if (value && json_object_array_add(array, value) == 0)
                return true;
        (void) json_object_put(value);
        return false;
}

size_t json_length(json_object *array) {
        return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

size_t text_prefix(const char *text, size_t max) {
        size_t n = 0, size;
        uint32_t code;

        while (text[n] && (size = utf8_decode(text + n, strlen(text + n), &code)) > 0 && n + size <= max)
                n += size;
        return n;
}
