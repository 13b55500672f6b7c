/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The JSON replies of the daemon: asks for them, and returns members as text to print. model/json-parse.h reads members
 * of other types. */

#include "client.h"
#include "model/json-value.h"

/* Calls a method of the Manager that replies with JSON, and parses the reply into *ret. argument (a string) and
 * ret_text may be NULL. The caller frees *ret_text and *ret. Returns 0 or a negative errno, which was reported unless
 * it is -EINTR (client_call()). */
int reply_ask(Client *c, const char *member, const char *argument, char **ret_text, json_object **ret);
/* As reply_ask(), over a new connection that is closed afterwards. */
int reply_ask_once(const Args *args, const char *member, const char *argument, char **ret_text, json_object **ret);
/* As reply_ask(), for a reply that has already arrived. */
int reply_parse(Client *c, sd_bus_message *reply, char **ret_text, json_object **ret);

typedef int (*ReplyPrint)(const Args *args, json_object *o);
/* Implements a verb: calls the D-Bus method `member`. With --json, prints the JSON of its reply; otherwise calls
 * print(). Returns the result of the verb. */
int reply_show(const Args *args, const char *member, const char *argument, ReplyPrint print);
/* As reply_show(), with the method Explain. operand: the address of the device, from the command line. */
int reply_show_device(const Args *args, const char *operand, ReplyPrint print);

/* Parses an operand as a PCI address, by default in domain 0000. Returns 0; EXIT_USAGE when the operand is no PCI
 * address; or a negative errno. Both failures were reported. */
int reply_device_address(const Args *args, const char *operand, char ret[static PCI_ADDRESS_STRING_MAX]);

/* Returns a member as text; NULL when it is null or missing. Text that is not text_is_clean() becomes "(unprintable)".
 */
const char *reply_text(json_object *o, const char *key);
/* As reply_text(), but "-" instead of NULL. For tables. */
const char *reply_cell(json_object *o, const char *key);
/* As reply_cell(), for element i of the array o[key]. */
const char *reply_element_cell(json_object *o, const char *key, size_t i);

/*
 * Converts the properties of a D-Bus object, an a{sv}, to an object like those in the daemon's JSON: the key "NumaNode"
 * becomes "numa_node", "" and negative numbers become null, and the number of Class becomes six hex digits. Only values
 * of the types s, u, t, i, as and a{ss} are converted; others are left out. The caller frees *ret. Returns 0, -ENOMEM,
 * or another negative errno for a bad message, not reported.
 */
int reply_read_properties(sd_bus_message *msg, json_object **ret);
