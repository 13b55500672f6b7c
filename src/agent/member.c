/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "agent/member.h"

#include "model/json-parse.h"
#include "model/json-value.h"
#include "util/strings.h"

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
        /* json_parse() accepts only an object, so put the value into one. */
        if (!text || string_replace(&text, "{\"\":%s}", text) < 0 || json_parse(text, strlen(text), &o) < 0)
                return NULL;
        return json_object_get(member(o, ""));
}
