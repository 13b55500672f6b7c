/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl release and accept: start a job that releases an allocation or accepts its replacement cards, and
 * follow that job. */
#include <errno.h>

#include "job.h"
#include "reply.h"
#include "report.h"
#include "verbs.h"

/* Gets the current generation of an allocation. *ret is 0 when there is no such allocation; the daemon
 * refuses the call then. */
static int current_generation(Client *c, const char *name, uint64_t *ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *found, *state, *path;
        uint64_t generation;
        uint32_t owner;
        int r;

        r = client_ask(c, "ListAllocations", &reply, "");
        if (r < 0)
                return r;
        *ret = 0;
        r = sd_bus_message_enter_container(reply, SD_BUS_TYPE_ARRAY, "(sstuo)");
        while (r >= 0 && (r = sd_bus_message_read(reply, "(sstuo)", &found, &state, &generation, &owner, &path)) > 0)
                if (streq(found, name))
                        *ret = generation;
        return r < 0 ? client_bad_reply(c, r) : 0;
}

/* A method that starts a job, and the words for that job as watch_new() and watch_follow() take them. */
typedef struct Call {
        const char *method, *verb, *done, *begun;
} Call;

static int run_job(const Args *args, const Call *call) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(cleanup_watch_free) Watch *w = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *name = args->operands[0];
        uint64_t generation = args->number[OPTION_GENERATION];
        int r;

        r = client_new(args, &c);
        if (r >= 0 && !args_has(args, OPTION_GENERATION))
                r = current_generation(c, name, &generation);
        if (r >= 0 && !args_has(args, OPTION_NO_WAIT))
                r = watch_new(c, call->verb, name, &w);
        if (r >= 0)
                r = client_ask(c, call->method, &reply, "st", name, generation);
        if (r == -EINTR && w)
                return watch_interrupted(w);
        return r < 0 ? r : watch_follow(c, w, name, reply, call->done, call->begun);
}

int verb_release(const Args *args) {
        return run_job(args, &(Call){ "Release", "release", "is released.", "is being released." });
}

int verb_accept(const Args *args) {
        return run_job(args, &(Call){ "Accept", "prepare", "is ready.", "is being prepared." });
}
