/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl release and accept: start a job that releases an allocation or accepts its replacement cards, and
 * follow that job. */
#include "job.h"
#include "verbs.h"

static int run_job(const Args *args, const JobCall *call) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        const char *name = args->operands[0];
        uint64_t generation;
        int r;

        r = client_new(args, &c);
        if (r >= 0)
                r = watch_generation(c, name, &generation);
        return r < 0 ? r : watch_call(c, call, name, "st", name, generation);
}

int verb_release(const Args *args) {
        return run_job(args, &(JobCall){ "Release", "release", "is released.", "is being released." });
}

int verb_accept(const Args *args) {
        return run_job(args, &(JobCall){ "Accept", "prepare", "is ready.", "is being prepared." });
}
