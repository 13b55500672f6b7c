/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/json-value.h"

#include "model/json-text.h"
#include "util/strings.h"

json_object *json_string_or_null(const char *s) {
        return s ? json_object_new_string(s) : NULL;
}

json_object *json_known_or_null(int n) {
        return n >= 0 ? json_object_new_int(n) : NULL;
}

json_object *json_address(PciAddress a) {
        return json_object_new_string(PCI_ADDRESS_STR(a));
}

json_object *json_cpus(const CpuSet *set) {
        _cleanup_free_ char *text = cpuset_format(set);

        return json_string_or_null(text);
}

json_object *json_hex(unsigned value, int digits) {
        char text[16];

        return json_object_new_string_len(text, (int) (format_hex(text, value, (unsigned) digits) - text));
}

bool member_add(json_object *o, const char *key, json_object *value) {
        if (value && json_object_object_add(o, key, value) == 0)
                return true;
        (void) json_object_put(value);
        return false;
}

bool json_append(json_object *array, json_object *value) {
        if (value && json_object_array_add(array, value) == 0)
                return true;
        (void) json_object_put(value);
        return false;
}

json_object *json_format(const char *format, ...) {
        _cleanup_free_ char *text = FORMAT_ARGUMENTS(format);
        _cleanup_json_ json_object *o = NULL;

        for (char *c = text; c && *c; c++)
                if (*c == '\'')
                        *c = '"';
        /* json_parse() takes objects only, so put the text into one. */
        if (!text || string_replace(&text, "{\"\":%s}", text) < 0 || json_parse(text, strlen(text), &o) < 0)
                return NULL;
        return json_object_get(member(o, ""));
}

char *json_text(json_object *o) {
        JsonText t = json_text_new();

        json_text_value(&t, o);
        return json_text_finish(&t);
}
