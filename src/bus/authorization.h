/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Asks polkit whether a caller may change something, or may read without being a member of the daemon's group. For root
 * and the daemon's own user polkit is not asked. The daemon asks asynchronously: a call waits until polkit has decided,
 * and the event loop serves other calls meanwhile. A call is dropped without a reply when its sender leaves the bus. */

#include <systemd/sd-bus.h>

#include "bus/server.h"
#include "caller.h"

/* The time within which polkit must decide, and the longer time if polkit may ask a person for a password. */
#define AUTHORIZATION_TIMEOUT_SEC        25U
#define AUTHORIZATION_PERSON_TIMEOUT_SEC 120U

/* The actions that conf/org.passthroughd1.policy declares. */
typedef enum PolkitAction {
        POLKIT_READ,      /* call the daemon without being a member of its group */
        POLKIT_ALLOCATE,  /* allocate, and change and release one's own allocations */
        POLKIT_MANAGE,    /* allocate for other users; change and release the allocations of other users, and read their
                             documents */
        POLKIT_CONFIGURE, /* change what the node offers, accept replaced cards, and change the log level and the log
                             target */
        POLKIT_FORCE,     /* allocate the boot VGA device and the card of the console */
        _POLKIT_ACTION_MAX,
} PolkitAction;

#define INTENT_DETAILS_MAX 40U

/* What a call is about to do: the actions, and details for the rules of polkit. */
typedef struct Intent {
        unsigned actions; /* a bit (1 << PolkitAction) for each action; polkit has to allow all of them */
        struct IntentDetail {
                char *key, *value;
        } details[INTENT_DETAILS_MAX];
        size_t n_details;
        int error; /* 0, or a negative errno: a detail could not be added */
} Intent;

/* Adds a detail: copies key and formats the value. Stores a failure in i->error. */
void intent_add(Intent *i, const char *key, const char *format, ...) _printf_(3, 4);
/* Adds the action that a caller with this uid needs to change an allocation of `owner`, and the detail "owner". */
void intent_add_owner(Intent *i, uint32_t owner, uint32_t uid);

/* Reads the intent from the arguments of a call. Refuses a call with invalid arguments. */
typedef Verdict (*IntentRead)(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);

/*
 * Calls the method if the caller is root or has the daemon's own uid, or after polkit has allowed it. The method is
 * called with the state for which polkit decided: if the intent changes meanwhile, polkit is asked again. If polkit
 * does not allow the call, the caller is sent AccessDenied, or InteractiveAuthorizationRequired when polkit would have
 * to ask for a password and the call does not allow that. A call is refused with LimitExceeded when too many calls wait
 * for polkit. Returns what a method of a vtable returns.
 */
int authorize(Server *s, sd_bus_message *call, uint32_t uid, IntentRead read, CallerMethod method, sd_bus_error *error);

/* Returns true if polkit still decides about a call of the sender that was passed to authorize() with this `read`. */
bool authorizations_have(const Server *s, const char *sender, IntentRead read);

/* Drops the calls that were made on this connection of the daemon: all of them (sender NULL), or only those of one
 * client of the bus. */
void authorizations_drop(Server *s, const sd_bus *bus, const char *sender);

/* intents.c: the intent of each method */
Verdict intent_to_attach(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);
Verdict intent_to_allocate(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);
/* For a method whose first argument is the name of an allocation. */
Verdict intent_on_allocation(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);
Verdict intent_to_read(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);
Verdict intent_to_configure(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);
