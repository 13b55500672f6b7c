/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Asks polkit whether a caller may change something, or may read without being a member of the daemon's group. polkit
 * is never asked about root. The daemon asks asynchronously: a call is kept until polkit has decided, and the event
 * loop serves other calls meanwhile. A call is dropped without a reply when its sender leaves the bus.
 */

#include <systemd/sd-bus.h>

#include "bus/server.h"
#include "caller.h"

/* Time for polkit to decide, and the longer time when polkit has to ask a person for a password. */
#define AUTHORIZATION_TIMEOUT_SEC        25U
#define AUTHORIZATION_PERSON_TIMEOUT_SEC 120U

/* The actions of conf/org.passthroughd1.policy. */
typedef enum PolkitAction {
        POLKIT_READ,      /* call the daemon without being a member of its group */
        POLKIT_ALLOCATE,  /* make, change and release allocations of one's own */
        POLKIT_MANAGE,    /* the same for allocations of all users, and read their documents */
        POLKIT_CONFIGURE, /* change what the node offers, and the log level */
        POLKIT_FORCE,     /* allocate the boot VGA device and the card of the console */
        _POLKIT_ACTION_MAX,
} PolkitAction;

#define INTENT_DETAILS_MAX 40U

/* What a call is about to do, as actions and details for the rules of polkit. */
typedef struct Intent {
        unsigned actions; /* bits of PolkitAction; polkit has to allow all of them */
        struct IntentDetail {
                char *key, *value;
        } details[INTENT_DETAILS_MAX];
        size_t n_details;
        int error; /* 0, or negative errno when a detail could not be added */
} Intent;

/* Adds a detail: copies key and formats the value. A failure is stored in i->error. */
void intent_add(Intent *i, const char *key, const char *format, ...) _printf_(3, 4);
/* Adds the action for an allocation of owner, when the caller has uid. */
void intent_add_owner(Intent *i, uint32_t owner, uint32_t uid);

/* Reads the intent from the arguments of a call. Refuses a call whose arguments are invalid. */
typedef Verdict (*IntentRead)(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);

/*
 * Calls the method when the caller is root, the daemon's own uid, or allowed by polkit. The method is called with the
 * state for which polkit decided: if the intent has changed in the meantime, polkit is asked again. Otherwise the
 * caller is sent AccessDenied, or InteractiveAuthorizationRequired when polkit wants to ask for a password and the call
 * does not allow that. Returns what the method of a vtable returns.
 */
int authorize(Server *s, sd_bus_message *call, uint32_t uid, IntentRead read, CallerMethod method, sd_bus_error *error);

/* Returns true if a call of the sender waits for polkit with this intent. */
bool authorizations_have(const Server *s, const char *sender, IntentRead read);

/* Drops all calls of a connection to the daemon, or with sender, only those of this client of the bus. */
void authorizations_drop(Server *s, const sd_bus *bus, const char *sender);

/* intents.c: the intent of each method */
Verdict intent_to_attach(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);
Verdict intent_to_allocate(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);
/* For a call whose first argument is the name of an allocation. */
Verdict intent_on_allocation(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);
Verdict intent_to_read(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);
Verdict intent_to_configure(Server *s, sd_bus_message *call, uint32_t uid, Intent *ret, Refusal *ret_refusal);
