/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks for the JSON replies of the daemon and reads them. Also reads D-Bus properties as the same JSON. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "bus/names.h"
#include "model/json-parse.h"
#include "reply.h"
#include "report.h"
#include "util/strings.h"

int reply_parse(Client *c, sd_bus_message *reply, char **ret_text, json_object **ret) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = client_read_text(c, reply, &text);
        if (r < 0)
                return r;
        r = json_parse(text, strlen(text), ret);
        if (r < 0)
                return client_bad_reply(c, r);
        if (ret_text)
                *ret_text = TAKE_PTR(text);
        return 0;
}

int reply_ask(Client *c, const char *member, const char *argument, char **ret_text, json_object **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        r = argument ? client_ask(c, member, &reply, "s", argument) : client_ask(c, member, &reply, "");
        return r < 0 ? r : reply_parse(c, reply, ret_text, ret);
}

int reply_ask_once(const Args *args, const char *member, const char *argument, char **ret_text, json_object **ret) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        int r = client_new(args, &c);

        return r < 0 ? r : reply_ask(c, member, argument, ret_text, ret);
}

int reply_show(const Args *args, const char *member, const char *argument, ReplyPrint print) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_free_ char *text = NULL;
        int r = reply_ask_once(args, member, argument, &text, &o);

        if (r < 0)
                return r;
        if (!args_has(args, OPTION_JSON))
                return print(args, o);
        puts(text);
        return 0;
}

int reply_device_address(const Args *args, const char *operand, char ret[static PCI_ADDRESS_STRING_MAX]) {
        _cleanup_free_ char *full = NULL;
        const char *colon = strchr(operand, ':');
        PciAddress address;

        if (string_replace(&full, "%s%s", colon && !strchr(colon + 1, ':') ? "0000:" : "", operand) < 0)
                return report_errno(args, -ENOMEM, "Cannot read the arguments");
        if (pci_address_parse(full, &address) < 0)
                return report_usage(args, "'%s' is not a PCI address; write one as 0000:82:00.0 or 82:00.0", operand);
        (void) pci_address_format(address, ret);
        return 0;
}

int reply_show_device(const Args *args, const char *operand, ReplyPrint print) {
        char address[PCI_ADDRESS_STRING_MAX];
        int r = reply_device_address(args, operand, address);

        return r != 0 ? r : reply_show(args, "Explain", address, print);
}

static const char *clean_text(json_object *value) {
        const char *s = value ? json_object_get_string(value) : NULL;

        return !s || text_is_clean(s) ? s : "(unprintable)";
}

const char *reply_text(json_object *o, const char *key) {
        return clean_text(member(o, key));
}

const char *reply_cell(json_object *o, const char *key) {
        const char *s = reply_text(o, key);

        return s ? s : "-";
}

const char *reply_element_cell(json_object *o, const char *key, size_t i) {
        const char *s = clean_text(member_at(o, key, i));

        return s ? s : "-";
}

/* D-Bus properties as JSON. */

/* Converts the name of a property to a key: "NumaNode" to "numa_node". */
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

/* Enters an array inside a variant. type: D-Bus type of the array. */
static int enter_array(sd_bus_message *msg, const char *type) {
        int r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_VARIANT, type);

        return r < 0 ? r : sd_bus_message_enter_container(msg, SD_BUS_TYPE_ARRAY, type + 1);
}

static int exit_array(sd_bus_message *msg) {
        int r = sd_bus_message_exit_container(msg);

        return r < 0 ? r : sd_bus_message_exit_container(msg);
}

static int read_words(sd_bus_message *msg, json_object **ret) {
        const char *word;
        int r = enter_array(msg, "as");

        *ret = json_object_new_array();
        while (r >= 0 && (r = sd_bus_message_read(msg, "s", &word)) > 0)
                r = *ret ? json_object_array_add(*ret, json_object_new_string(word)) : -ENOMEM;
        return r < 0 ? r : exit_array(msg);
}

static int read_texts(sd_bus_message *msg, json_object **ret) {
        const char *key, *text;
        int r = enter_array(msg, "a{ss}");

        *ret = json_object_new_object();
        while (r >= 0 && (r = sd_bus_message_read(msg, "{ss}", &key, &text)) > 0)
                r = *ret ? json_object_object_add(*ret, key, json_object_new_string(text)) : -ENOMEM;
        return r < 0 ? r : exit_array(msg);
}

/* Reads a value. "" and negative numbers become null: D-Bus has no null, so the daemon sends these instead. Returns a
 * negative errno on failure; -ENODATA: skipped a value of a type that is left out. */
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

int reply_read_properties(sd_bus_message *msg, json_object **ret) {
        _cleanup_json_ json_object *properties = json_object_new_object();
        int r;

        if (!properties)
                return -ENOMEM;
        r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_ARRAY, "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_DICT_ENTRY, "sv")) > 0) {
                r = read_property(msg, properties);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(msg);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(msg);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(properties);
        return 0;
}
