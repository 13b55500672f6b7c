/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon's document of the node, kept current. Each document has a number; a caller who must see what is true now
 * asks with facts_refresh() and waits for a document with that number or a later one.
 */

#include <json-c/json.h>
#include <systemd/sd-bus.h>

typedef struct Facts Facts;

/* on_facts() is called after each answer of the daemon, and when the daemon is away. 0 or a negative errno, logged. */
int facts_new(sd_event *event, sd_bus *bus, void (*on_facts)(void *userdata), void *userdata, Facts **ret);
Facts *facts_free(Facts *f);

uint64_t facts_refresh(Facts *f);
/* The number of the next document that is not asked for yet. */
uint64_t facts_next(const Facts *f);
/* NULL: the daemon does not answer. */
json_object *facts_document(const Facts *f);
/* The number of the last answer. */
uint64_t facts_number(const Facts *f);
/* The allocation of this name; NULL: there is none. */
json_object *facts_allocation(const Facts *f, const char *name);
