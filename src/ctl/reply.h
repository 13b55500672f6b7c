/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The daemon's JSON replies: requesting them, and members as text to print. model/json-parse.h reads other members. */

#include "client.h"
#include "model/json-value.h"

/*
 * Calls a method of the Manager that replies with JSON text, and parses the text. argument (a string) and ret_text may
 * be NULL. The caller frees *ret_text. 0 or a negative errno, reported.
 */
int reply_ask(Client *c, const char *member, const char *argument, char **ret_text, json_object **ret);
/* As reply_ask(), over a connection of its own. */
int reply_ask_once(const Args *args, const char *member, const char *argument, char **ret_text, json_object **ret);
/* As reply_ask(), for a reply that has arrived already. */
int reply_parse(Client *c, sd_bus_message *reply, char **ret_text, json_object **ret);

/*
 * Implements a verb: calls the method, then prints its JSON document unchanged with --json, otherwise calls print().
 * Returns the result of the verb.
 */
typedef int (*ReplyPrint)(const Args *args, json_object *o);
int reply_show(const Args *args, const char *member, const char *argument, ReplyPrint print);
/* As reply_show() with the method Explain. operand: the address of the device. */
int reply_show_device(const Args *args, const char *operand, ReplyPrint print);

/*
 * Parses an operand as a PCI address; the default domain is 0000. Returns 0, EXIT_USAGE when the operand is not a PCI
 * address, or a negative errno. Both errors are reported.
 */
int reply_device_address(const Args *args, const char *operand, char ret[static PCI_ADDRESS_STRING_MAX]);

/* The member as text; NULL when it is null or absent. Text with control characters becomes "(unprintable)". */
const char *reply_text(json_object *o, const char *key);
/* As reply_text(), for tables: "-" in place of NULL. */
const char *reply_cell(json_object *o, const char *key);
/* As reply_cell(), for an element of an array. */
const char *reply_element_cell(json_object *o, const char *key, size_t i);

/*
 * Converts the properties of a D-Bus object, an a{sv}, to an object with the keys and values of the daemon's JSON: the
 * key "NumaNode" becomes "numa_node", the values "" and -1 become null, and a PCI class becomes six hex digits. Arrays
 * of anything but strings are left out. 0 or a negative errno, not reported: -ENOMEM, or another one for a bad message.
 * The caller frees *ret.
 */
int reply_read_properties(sd_bus_message *msg, json_object **ret);
