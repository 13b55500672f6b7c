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

char *json_text(json_object *o) {
        JsonText t = json_text_new();

        json_text_value(&t, o);
        return json_text_finish(&t);
}
