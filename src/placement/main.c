/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthrough-placement: its loop. It compares Placement with the daemon's document at the start, after signals of the
 * daemon, periodically, and at SIGHUP. */

#include <errno.h>
#include <stdio.h>
#include <sysexits.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <uuid/uuid.h>

#include "agent/daemon.h"
#include "agent/http.h"
#include "claim.h"
#include "read.h"
#include "sync.h"
#include "util/log.h"
#include "util/program.h"
#include "util/strings.h"

#define SECOND_USEC UINT64_C(1000000)
#define FULL_USEC   (600 * SECOND_USEC) /* the longest time between full comparisons */

typedef struct Agent {
        Sync sync;
        sd_event *event;
        sd_bus *bus;
        sd_event_source *change; /* idle source that starts a comparison */
        sd_event_source *timer;  /* starts the next full comparison, or repeats a failed one */
        uint64_t delay;          /* for retry_usec(); 0: the last comparison succeeded, or passthroughd did not run */
} Agent;

static const char *arg_config = SETTINGS_FILE, *arg_claim;
static bool arg_dry_run, arg_once, arg_debug;

static int describe(void *userdata, json_object **ret) {
        const Agent *a = userdata;

        return daemon_describe(a->bus, ret);
}

/* Compares Placement with the daemon's document, and changes Placement. 0 or a negative errno, logged. */
static int compare(Agent *a) {
        unsigned changes = a->sync.changes, requests = api_requests(a->sync.api);
        int r = sync_run(&a->sync);

        changes = a->sync.changes - changes;
        requests = api_requests(a->sync.api) - requests;
        if (changes > 0)
                log_info("Placement: %u change%s of '%s' with %u request%s.", changes, PLURAL(changes),
                         a->sync.settings->host, requests, PLURAL(requests));
        return r;
}

/* Prints the claim of a consumer as operands and options of 'passthroughctl allocate'. */
static int print_claim(Agent *a, const char *consumer) {
        _cleanup_json_ json_object *document = NULL;
        _cleanup_free_ char *line = NULL;
        const Claim *claim;
        int r = describe(a, &document);

        if (r < 0)
                return r;
        a->sync.have = calloc(1, sizeof(*a->sync.have));
        r = a->sync.have ? placement_read_claim(&a->sync, consumer) : -ENOMEM;
        if (r < 0)
                return r;
        claim = tree_find_claim(a->sync.have, consumer);
        r = claim ? claim_request(claim, a->sync.settings->host, document, &line) : -ENOENT;
        if (r == -ENOENT)
                return log_error_errno(r, "The consumer '%s' has claimed nothing on this node.", QUOTABLE(consumer));
        if (r == -EBUSY)
                return log_error_errno(r, "Not all devices and slots that '%s' has claimed are available.",
                                       QUOTABLE(consumer));
        if (r < 0)
                return log_error_errno(r, "Failed to read the claim: %m");
        puts(line);
        return fflush(stdout) == 0 ? 0 : -errno;
}

static int compare_and_plan(Agent *a) {
        uint64_t usec;
        int r = compare(a);

        /* -ESRCH: passthroughd does not run, and NameOwnerChanged follows when it starts. */
        if (r >= 0 || r == -ESRCH) {
                a->delay = 0;
                (void) sd_notify(false,
                                 r >= 0 ? "STATUS=Placement equals the node." : "STATUS=Waiting for passthroughd.");
                return 0;
        }
        usec = retry_usec(&a->delay);
        (void) sd_notifyf(false, "STATUS=%s The next comparison is in %.1f s.",
                          r == -EADDRNOTAVAIL ? "The address is not that of Placement: correct Url= or the catalog."
                                              : "The last comparison failed: see the journal.",
                          (double) usec / SECOND_USEC);
        return agent_set_timer(a->timer, usec);
}

static int on_change(sd_event_source *source, void *userdata) {
        return compare_and_plan(userdata);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Agent *a = userdata;
        int r;

        /* Read all of Placement: other programs may have changed it. After a failure sync_run() has decided what to
         * read again. The time is random, so that agents that started together do not stay in step. */
        if (a->delay == 0)
                sync_reread(&a->sync);
        r = agent_set_timer(a->timer, FULL_USEC - random_usec(FULL_USEC / 10));
        return r < 0 ? r : compare_and_plan(a);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        Agent *a = userdata;

        sync_reread(&a->sync);
        return a->delay > 0 ? 0 : sd_event_source_set_enabled(a->change, SD_EVENT_ONESHOT);
}

/* Starts a comparison after each signal of the daemon. After a failed comparison the timer starts the next one. */
static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Agent *a = userdata;

        return a->delay > 0 ? 0 : sd_event_source_set_enabled(a->change, SD_EVENT_ONESHOT);
}

/* Handles a start or an end of passthroughd. Guests may use devices while passthroughd is stopped, so the next
 * comparison reads Placement again, with the providers of cleaned devices. */
static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Agent *a = userdata;

        sync_reread(&a->sync);
        return on_signal(m, userdata, ret_error);
}

static int connect_bus(Agent *a) {
        int r = sd_bus_open_system(&a->bus);

        return r < 0 ? log_error_errno(r, "Failed to connect to the system bus: %m") : 0;
}

static int prepare_loop(Agent *a) {
        int r = agent_loop_new(a->bus, on_reload, a, &a->event);

        if (r < 0)
                return r;
        /* An idle source runs after all pending signals, so one comparison covers them. */
        r = agent_add_idle(a->event, &a->change, on_change, a);
        if (r < 0)
                return r;
        r = agent_add_timer(a->event, &a->timer, on_timer, a);
        if (r < 0)
                return r;
        r = agent_set_timer(a->timer, 0);
        return r < 0 ? r : daemon_watch(a->bus, on_signal, on_owner, a);
}

/* Runs the loop. SIGTERM and SIGINT end the agent at once, even during a request: its next start makes the remaining
 * changes. */
static int run_loop(Agent *a) {
        int r = prepare_loop(a);

        return r < 0 ? log_error_errno(r, "Failed to prepare the loop: %m") : agent_loop_run(a->event);
}

static void agent_done(Agent *a) {
        sync_done(&a->sync);
        api_free(a->sync.api);
        sd_event_source_unref(a->change);
        sd_event_source_unref(a->timer);
        sd_bus_flush_close_unref(a->bus);
        sd_event_unref(a->event);
}

/* Runs the agent. Returns the exit status. */
static int run(void) {
        _cleanup_(settings_done) Settings settings = { 0 };
        _cleanup_(agent_done) Agent a = {
                .sync = { .settings = &settings, .describe = describe, .userdata = &a, .dry_run = arg_dry_run }
        };
        int r = settings_read(arg_config, &settings);

        if (r < 0) /* the unit has RestartPreventExitStatus= for this status */
                return r == -ENOMEM ? EXIT_FAILURE : EX_CONFIG;
        if (api_new(&settings, &a.sync.api) < 0 || connect_bus(&a) < 0)
                return EXIT_FAILURE;
        r = arg_claim ? print_claim(&a, arg_claim) : arg_once || arg_dry_run ? compare(&a) : run_loop(&a);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const char help[] = "Usage: passthrough-placement [OPTION...]\n"
                           "Keep OpenStack Placement equal to this node's PCI devices, CPUs and memory.\n"
                           "\n"
                           "  --config=FILE   Read FILE instead of " SETTINGS_FILE "\n"
                           "  --claim=UUID    Print a consumer's claim as operands of 'passthroughctl allocate'\n"
                           "  --dry-run       Print what would change in Placement, and exit\n"
                           "  --once          Compare once, and exit\n"
                           "  --debug         Log each request\n"
                           "  -h, --help      Show this help\n"
                           "  --version       Show the version\n"
                           "\n"
                           "See passthrough-placement(8).";

int main(int argc, char *argv[]) {
        static const ProgramOption options[] = { { "config", &arg_config, NULL },
                                                 { "claim", &arg_claim, NULL },
                                                 { "dry-run", NULL, &arg_dry_run },
                                                 { "once", NULL, &arg_once },
                                                 { "debug", NULL, &arg_debug } };
        int r = program_read_arguments(argc, argv, "passthrough-placement", help, options, ELEMENTSOF(options));
        uuid_t uuid;

        if (r >= 0)
                return r;
        if (arg_claim && uuid_parse(arg_claim, uuid) < 0)
                return log_error("'%s' is no UUID.", QUOTABLE(arg_claim)), 2;
        if (arg_debug)
                log_set_max_level(LOG_DEBUG);
        return run();
}
