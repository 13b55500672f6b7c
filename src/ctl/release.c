/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl release and accept: start a job that releases an allocation or accepts its replacement cards, and
 * follow that job. */
#include "job.h"
#include "reply.h"
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

static int run_job(const Args *args, const JobCall *call) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        const char *name = args->operands[0];
        uint64_t generation = args->number[OPTION_GENERATION];
        int r;

        r = client_new(args, &c);
        if (r >= 0 && !args_has(args, OPTION_GENERATION))
                r = current_generation(c, name, &generation);
        return r < 0 ? r : watch_call(c, call, name, "st", name, generation);
}

int verb_release(const Args *args) {
        return run_job(args, &(JobCall){ "Release", "release", "is released.", "is being released." });
}

int verb_accept(const Args *args) {
        return run_job(args, &(JobCall){ "Accept", "prepare", "is ready.", "is being prepared." });
}
