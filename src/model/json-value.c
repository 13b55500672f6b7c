/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/json-value.h"

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

const char *json_line(json_object *o) {
        return json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE | JSON_C_TO_STRING_PLAIN);
}

char *json_text(json_object *o) {
        const char *text = json_line(o);

        return text ? strdup(text) : NULL;
}
