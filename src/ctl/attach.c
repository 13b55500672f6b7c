/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl attach and detach: give an allocation further devices or take one from it, and follow that job. */
#include "job.h"
#include "report.h"
#include "request.h"
#include "verbs.h"

int verb_attach(const Args *args) {
        static const JobCall call = { "Attach", "attach", "has its new devices.", "is getting its new devices." };
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        _cleanup_pool_counts_ PoolCounts pools = { 0 };
        const char *name = args->operands[0];
        uint64_t generation;
        int r = pool_counts_parse(args, 1, &pools);

        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r >= 0)
                r = watch_generation(c, name, &generation);
        if (r >= 0)
                r = client_method(c, call.method, &message);
        if (r < 0)
                return r;
        r = sd_bus_message_append(message, "st", name, generation);
        if (r < 0)
                return report_errno(args, r, "Cannot build the D-Bus call");
        r = request_append(args, NULL, &pools, message);
        return r < 0 ? r : watch_send(c, &call, name, message);
}

int verb_detach(const Args *args) {
        static const JobCall call = { "Detach", "detach", "has given the device back.", "is giving the device back." };
        _cleanup_(cleanup_client_free) Client *c = NULL;
        const char *name = args->operands[0];
        uint64_t generation;
        int r = client_new(args, &c);

        if (r >= 0)
                r = watch_generation(c, name, &generation);
        return r < 0 ? r : watch_call(c, &call, name, "sts", name, generation, args->operands[1]);
}
