/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "dra.h"

#include <errno.h>

#include "util/log.h"

/* Signals of the daemon within this time cause one call. */
#define SETTLE_USEC UINT64_C(500000)

static void ask(Manager *m);

/* Handles the reply of the daemon. If the daemon does not run, NameOwnerChanged follows when it starts. */
static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        json_object *document = NULL;
        Manager *m = userdata;
        Facts *f = &m->facts;
        int r = daemon_read(reply, &document);

        if (r >= 0 || r == -ESRCH)
                f->delay = 0;
        else
                (void) agent_set_timer(f->timer, retry_usec(&f->delay));
        json_object_put(f->document);
        f->document = document;
        f->number = f->asked;
        f->slot = sd_bus_slot_unref(f->slot);
        if (f->again)
                ask(m);
        m->on_facts(m);
        return 0;
}

static void ask(Manager *m) {
        Facts *f = &m->facts;

        f->again = false;
        f->asked++;
        if (daemon_ask(m->bus, &f->slot, on_reply, m) < 0)
                (void) agent_set_timer(f->timer, retry_usec(&f->delay));
}

uint64_t facts_refresh(Manager *m) {
        if (m->facts.slot)
                m->facts.again = true;
        else
                ask(m);
        return m->facts.asked + m->facts.again;
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        facts_refresh(userdata);
        return 0;
}

static int on_change(sd_bus_message *message, void *userdata, sd_bus_error *ret_error) {
        const Facts *f = &((Manager *) userdata)->facts;
        int enabled, r = sd_event_source_get_enabled(f->timer, &enabled);

        return r < 0 || enabled != SD_EVENT_OFF ? r : agent_set_timer(f->timer, SETTLE_USEC);
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        facts_refresh(userdata);
        return 0;
}

int facts_init(Manager *m, void (*on_facts)(Manager *m)) {
        Facts *f = &m->facts;
        int r = agent_add_timer(m->event, &f->timer, on_retry, m);

        if (r >= 0)
                r = daemon_watch(m->bus, on_change, on_owner, m);
        if (r < 0)
                return log_error_errno(r, "Failed to watch passthroughd: %m");
        m->on_facts = on_facts;
        facts_refresh(m);
        return 0;
}

void facts_done(Facts *f) {
        sd_bus_slot_unref(f->slot);
        sd_event_source_disable_unref(f->timer);
        json_object_put(f->document);
}

json_object *facts_allocation(const Facts *f, const char *name) {
        return json_find(member(f->document, "allocations"), "name", name);
}
