/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The daemon's JSON: getting it, and reading members that may be null or absent. */

#include <json-c/json.h>

#include "client.h"
#include "model/pciaddr.h"

static inline void reply_cleanup(json_object **o) {
        if (*o)
                json_object_put(*o);
}
#define _cleanup_json_ _cleanup_(reply_cleanup)

/* Calls a method whose reply is one JSON string. ret_text (may be NULL) lives as long as *ret_reply. */
int reply_ask(Client *c, const char *member, const char *argument, sd_bus_message **ret_reply, const char **ret_text,
              json_object **ret);
/* As above for a reply that is already there. */
int reply_parse(Client *c, sd_bus_message *reply, const char **ret_text, json_object **ret);

/*
 * All that a verb does which asks for one document: with --json it is printed as it is, else print() shows it to people
 * and returns what the verb returns.
 */
typedef int (*ReplyPrint)(const Args *args, json_object *o);
int reply_show(const Args *args, const char *member, const char *argument, ReplyPrint print);
/* As above with Explain, of the device whose address the operand is. */
int reply_show_device(const Args *args, const char *operand, ReplyPrint print);

/*
 * The address that an operand is. One without a domain is in domain 0000. 0; else what the verb returns: EXIT_USAGE,
 * which was reported, for what is no PCI address.
 */
int reply_device_address(const Args *args, const char *operand, char ret[static PCI_ADDRESS_STRING_MAX]);

/* NULL when the member is null or absent, or o no object. */
json_object *reply_member(json_object *o, const char *key);
/* As above, also NULL when the member is no object. */
json_object *reply_object(json_object *o, const char *key);
/* NULL when the member is null or absent; never text that could upset a terminal. */
const char *reply_text(json_object *o, const char *key);
/* As reply_text(), with "-" for NULL: for tables. */
const char *reply_cell(json_object *o, const char *key);
bool reply_number(json_object *o, const char *key, int64_t *ret);
/* Members of an array; none when it is null, absent or not an array. */
size_t reply_length(json_object *o, const char *key);
json_object *reply_element(json_object *o, const char *key, size_t i);
/* As reply_cell() of an element. */
const char *reply_element_cell(json_object *o, const char *key, size_t i);

/* The first object in array key whose "name" is name; NULL when there is none. */
json_object *reply_find(json_object *o, const char *key, const char *name);
