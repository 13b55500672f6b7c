/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "facts.h"

#include <errno.h>

#include "agent/daemon.h"
#include "agent/member.h"
#include "agent/retry.h"
#include "util/log.h"
#include "util/strings.h"

/* Changes that come together are read once. */
#define SETTLE_USEC UINT64_C(500000)

struct Facts {
        sd_bus *bus;
        sd_event_source *timer; /* the next try */
        void (*on_facts)(void *userdata);
        void *userdata;
        json_object *document;
        uint64_t number; /* of the last answer */
        uint64_t asked;  /* of the call under way, or of the last one */
        sd_bus_slot *slot;
        bool again; /* something changed after the call was sent */
        uint64_t delay;
};

static void ask(Facts *f);

static void take_answer(Facts *f, json_object *document) {
        json_object_put(f->document);
        f->document = document;
        f->number = f->asked;
        f->slot = sd_bus_slot_unref(f->slot);
        if (f->again)
                ask(f);
        f->on_facts(f->userdata);
}

/* When the daemon starts, a signal comes. */
static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        json_object *document = NULL;
        Facts *f = userdata;
        int r = daemon_read(reply, &document);

        if (r >= 0 || r == -ESRCH)
                f->delay = 0;
        else if (sd_event_source_set_time_relative(f->timer, retry_usec(&f->delay)) >= 0)
                (void) sd_event_source_set_enabled(f->timer, SD_EVENT_ONESHOT);
        take_answer(f, document);
        return 0;
}

static void ask(Facts *f) {
        f->again = false;
        f->asked++;
        if (daemon_ask(f->bus, &f->slot, on_reply, f) < 0 &&
            sd_event_source_set_time_relative(f->timer, retry_usec(&f->delay)) >= 0)
                (void) sd_event_source_set_enabled(f->timer, SD_EVENT_ONESHOT);
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

        if (r < 0 || enabled != SD_EVENT_OFF)
                return r;
        r = sd_event_source_set_time_relative(f->timer, SETTLE_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(f->timer, SD_EVENT_ONESHOT);
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

json_object *facts_document(const Facts *f) {
        return f->document;
}

uint64_t facts_next(const Facts *f) {
        return f->asked + 1;
}

uint64_t facts_number(const Facts *f) {
        return f->number;
}

json_object *facts_allocation(const Facts *f, const char *name) {
        json_object *all = member(f->document, "allocations");

        for (size_t i = 0; json_object_is_type(all, json_type_array) && i < json_object_array_length(all); i++)
                if (streq_ptr(member_text(json_object_array_get_idx(all, i), "name"), name))
                        return json_object_array_get_idx(all, i);
        return NULL;
}
