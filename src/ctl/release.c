/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl release, accept and prepare: start a job of an allocation and follow that job; renew: its lease. */
#include "document.h"
#include "job.h"
#include "report.h"
#include "util/strings.h"
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
        return run_job(args, &(JobCall) { "Release", "release", "is released.", "is being released." });
}

int verb_accept(const Args *args) {
        return run_job(args, &(JobCall) { "Accept", "prepare", "is ready.", "is being prepared." });
}

int verb_prepare(const Args *args) {
        return run_job(args, &(JobCall) { "Prepare", "prepare", "is ready.", "is being prepared." });
}

int verb_renew(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *name = args->operands[0];
        uint64_t generation, seconds;
        int r;

        if (parse_unsigned(args->operands[1], UINT32_MAX, &seconds) < 0)
                return report_usage(args, "'%s' is not a number of seconds", args->operands[1]);
        r = client_new(args, &c);
        if (r >= 0)
                r = watch_generation(c, name, &generation);
        if (r >= 0)
                r = client_ask(c, "Renew", &reply, "stu", name, generation, (uint32_t) seconds);
        return r < 0 ? r : document_print_done(args);
}
