/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requesting and reading the daemon's JSON replies. */
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

int reply_show(const Args *args, const char *member, const char *argument, ReplyPrint print) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_json_ json_object *o = NULL;
        _cleanup_free_ char *text = NULL;
        int r;

        r = client_new(args, &c);
        if (r >= 0)
                r = reply_ask(c, member, argument, &text, &o);
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

json_object *reply_member(json_object *o, const char *key) {
        json_object *value = NULL;

        return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, key, &value) ? value : NULL;
}

json_object *reply_object(json_object *o, const char *key) {
        json_object *value = reply_member(o, key);

        return json_object_is_type(value, json_type_object) ? value : NULL;
}

static const char *clean_text(json_object *value) {
        const char *s = value ? json_object_get_string(value) : NULL;

        return !s || text_is_clean(s) ? s : "(unprintable)";
}

const char *reply_text(json_object *o, const char *key) {
        return clean_text(reply_member(o, key));
}

const char *reply_cell(json_object *o, const char *key) {
        const char *s = reply_text(o, key);

        return s ? s : "-";
}

bool reply_number(json_object *o, const char *key, int64_t *ret) {
        json_object *value = reply_member(o, key);

        if (!json_object_is_type(value, json_type_int))
                return false;
        *ret = json_object_get_int64(value);
        return true;
}

size_t reply_length(json_object *o, const char *key) {
        json_object *array = reply_member(o, key);

        return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

json_object *reply_element(json_object *o, const char *key, size_t i) {
        return i < reply_length(o, key) ? json_object_array_get_idx(reply_member(o, key), i) : NULL;
}

const char *reply_element_cell(json_object *o, const char *key, size_t i) {
        const char *s = clean_text(reply_element(o, key, i));

        return s ? s : "-";
}

json_object *reply_find(json_object *o, const char *key, const char *id, const char *value) {
        for (size_t i = 0; i < reply_length(o, key); i++) {
                json_object *element = reply_element(o, key, i);
                if (streq_ptr(reply_text(element, id), value))
                        return element;
        }
        return NULL;
}
