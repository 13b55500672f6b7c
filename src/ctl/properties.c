/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts D-Bus properties to JSON. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "properties.h"

/* Converts "NumaNode" to "numa_node". */
static void format_key(const char *property, char *buf, size_t size) {
        size_t n = 0;

        for (const char *p = property; *p && n + 2 < size; p++) {
                if (isupper((unsigned char) *p) && p > property)
                        buf[n++] = '_';
                buf[n++] = (char) tolower((unsigned char) *p);
        }
        buf[n] = '\0';
}

static json_object *class_value(uint32_t class) {
        char hex[16];

        (void) snprintf(hex, sizeof(hex), "%06x", class);
        return json_object_new_string(hex);
}

static int read_words(sd_bus_message *msg, json_object **ret) {
        const char *word;
        int r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_VARIANT, "as");

        if (r >= 0)
                r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_ARRAY, "s");
        *ret = json_object_new_array();
        while (r >= 0 && (r = sd_bus_message_read(msg, "s", &word)) > 0)
                r = *ret ? json_object_array_add(*ret, json_object_new_string(word)) : -ENOMEM;
        if (r >= 0)
                r = sd_bus_message_exit_container(msg);
        return r < 0 ? r : sd_bus_message_exit_container(msg);
}

static int read_texts(sd_bus_message *msg, json_object **ret) {
        const char *key, *text;
        int r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_VARIANT, "a{ss}");

        if (r >= 0)
                r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_ARRAY, "{ss}");
        *ret = json_object_new_object();
        while (r >= 0 && (r = sd_bus_message_read(msg, "{ss}", &key, &text)) > 0)
                r = *ret ? json_object_object_add(*ret, key, json_object_new_string(text)) : -ENOMEM;
        if (r >= 0)
                r = sd_bus_message_exit_container(msg);
        return r < 0 ? r : sd_bus_message_exit_container(msg);
}

/* "" and -1 become null, as D-Bus has no null. -ENODATA: a type that is left out. */
static int read_value(sd_bus_message *msg, const char *property, json_object **ret) {
        const char *contents, *s = "";
        uint64_t t = 0;
        uint32_t u = 0;
        int32_t i = 0;
        int r;

        *ret = NULL;
        r = sd_bus_message_peek_type(msg, NULL, &contents);
        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        if (streq(contents, "s")) {
                r = sd_bus_message_read(msg, "v", "s", &s);
                *ret = *s ? json_object_new_string(s) : NULL;
        } else if (streq(contents, "u")) {
                r = sd_bus_message_read(msg, "v", "u", &u);
                *ret = streq(property, "Class") ? class_value(u) : json_object_new_int64(u);
        } else if (streq(contents, "t")) {
                r = sd_bus_message_read(msg, "v", "t", &t);
                *ret = json_object_new_uint64(t);
        } else if (streq(contents, "i")) {
                r = sd_bus_message_read(msg, "v", "i", &i);
                *ret = i < 0 ? NULL : json_object_new_int64(i);
        } else if (streq(contents, "as")) {
                r = read_words(msg, ret);
        } else if (streq(contents, "a{ss}")) {
                r = read_texts(msg, ret);
        } else {
                r = sd_bus_message_skip(msg, "v");
                return r < 0 ? r : -ENODATA;
        }
        return r;
}

static int read_property(sd_bus_message *msg, json_object *properties) {
        json_object *value = NULL;
        const char *property;
        char key[64];
        int r;

        r = sd_bus_message_read(msg, "s", &property);
        if (r < 0)
                return r;
        r = read_value(msg, property, &value);
        if (r == -ENODATA)
                return 0;
        format_key(property, key, sizeof(key));
        if (r >= 0 && json_object_object_add(properties, key, value) >= 0)
                return 0;
        json_object_put(value);
        return r < 0 ? r : -ENOMEM;
}

int properties_read(sd_bus_message *msg, json_object **ret) {
        _cleanup_json_ json_object *properties = json_object_new_object();
        int r;

        if (!properties)
                return -ENOMEM;
        r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_ARRAY, "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_DICT_ENTRY, "sv")) > 0) {
                r = read_property(msg, properties);
                if (r >= 0)
                        r = sd_bus_message_exit_container(msg);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(msg);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(properties);
        return 0;
}
