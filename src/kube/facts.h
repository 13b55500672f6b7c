/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon's document of the node, kept current. Each answer has a number; a caller who must see what is true now
 * asks with facts_refresh() and waits for an answer with that number or a later one.
 */

#include "agent/daemon.h"
#include "agent/member.h"

typedef struct Facts {
        json_object *document; /* NULL: the daemon does not answer */
        uint64_t number;       /* of the last answer */
        uint64_t asked;        /* of the call under way, or of the last one */
        bool again;            /* something changed after the call was sent */
        sd_bus *bus;
        sd_bus_slot *slot;
        sd_event_source *timer; /* the next try */
        uint64_t delay;
        void (*on_facts)(void *userdata);
        void *userdata;
} Facts;

/* on_facts() is called after each answer of the daemon, and when the daemon is away. 0 or a negative errno, logged. */
int facts_new(sd_event *event, sd_bus *bus, void (*on_facts)(void *userdata), void *userdata, Facts **ret);
Facts *facts_free(Facts *f);

uint64_t facts_refresh(Facts *f);
/* The allocation of this name; NULL: there is none. */
json_object *facts_allocation(const Facts *f, const char *name);
