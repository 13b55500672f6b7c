/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "facts.h"

#include <errno.h>

#include "agent/http.h"
#include "util/log.h"

/* Changes that come together are read once. */
#define SETTLE_USEC UINT64_C(500000)

static void ask(Facts *f);

/* When the daemon starts, a signal comes. */
static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        json_object *document = NULL;
        Facts *f = userdata;
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
                ask(f);
        f->on_facts(f->userdata);
        return 0;
}

static void ask(Facts *f) {
        f->again = false;
        f->asked++;
        if (daemon_ask(f->bus, &f->slot, on_reply, f) < 0)
                (void) agent_set_timer(f->timer, retry_usec(&f->delay));
}

uint64_t facts_refresh(Facts *f) {
        if (!f->slot)
                ask(f);
        else
                f->again = true;
        return f->asked + f->again;
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        facts_refresh(userdata);
        return 0;
}

static int on_change(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Facts *f = userdata;
        int enabled, r = sd_event_source_get_enabled(f->timer, &enabled);

        return r < 0 || enabled != SD_EVENT_OFF ? r : agent_set_timer(f->timer, SETTLE_USEC);
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        facts_refresh(userdata);
        return 0;
}

int facts_new(sd_event *event, sd_bus *bus, void (*on_facts)(void *userdata), void *userdata, Facts **ret) {
        Facts *f = calloc(1, sizeof(*f));
        int r = -ENOMEM;

        if (f) {
                *f = (Facts) { .bus = sd_bus_ref(bus), .on_facts = on_facts, .userdata = userdata };
                r = daemon_watch(bus, on_change, on_owner, f);
        }
        if (r >= 0)
                r = sd_event_add_time(event, &f->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_retry, f);
        if (r >= 0)
                r = sd_event_source_set_enabled(f->timer, SD_EVENT_OFF);
        if (r < 0) {
                facts_free(f);
                return log_error_errno(r, "Failed to watch passthroughd: %m");
        }
        facts_refresh(f);
        *ret = f;
        return 0;
}

Facts *facts_free(Facts *f) {
        if (!f)
                return NULL;
        sd_bus_slot_unref(f->slot);
        sd_event_source_disable_unref(f->timer);
        json_object_put(f->document);
        sd_bus_unref(f->bus);
        free(f);
        return NULL;
}

json_object *facts_allocation(const Facts *f, const char *name) {
        return json_find(member(f->document, "allocations"), "name", name);
}
