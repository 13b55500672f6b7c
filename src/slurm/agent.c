/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * passthroughd-slurm: a service beside passthroughd. It keeps the GRES counts of Slurm equal to the number of devices
 * in service, releases allocations of jobs whose epilog did not release them, and terminates jobs whose devices fail.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "bus/names.h"
#include "bus/reply-text.h"
#include "controller.h"
#include "handout.h"
#include "model/json-parse.h"
#include "node.h"
#include "settings.h"
#include "slurm/gres.h"
#include "util/log.h"
#include "util/strings.h"

#define SECOND UINT64_C(1000000)

/* Signals of passthroughd within this time cause one comparison. */
#define SETTLE_TIME (SECOND / 5)

/* Compare periodically, because slurmctld sends no signal when it has read slurm.conf again and reset the Gres= of the
 * node. */
#define PERIOD (30 * SECOND)

#define MATCH_DAEMON "type='signal',sender='" BUS_NAME "',path_namespace='" BUS_PATH "'"
#define MATCH_OWNER  "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" BUS_NAME "'"

typedef struct Agent {
        const char *node, *directory;
        sd_bus *bus;
        sd_event *event;
        sd_event_source *timer;
        bool failed;     /* the last comparison has failed, and that was logged */
        bool is_waiting; /* passthroughd did not reply to the last call, and that was logged */
        /* Ids of the allocations with a problem, in this comparison and in the previous one. A problem that the
         * previous comparison had too is not logged again. */
        json_object *told, *told_before;
} Agent;

static void agent_done(Agent *a) {
        (void) json_object_put(a->told);
        (void) json_object_put(a->told_before);
        sd_event_source_unref(a->timer);
        sd_bus_flush_close_unref(a->bus);
        sd_event_unref(a->event);
}

/* Returns the description of the node. NULL: passthroughd does not run, does not reply, or replies with no JSON. When
 * passthroughd starts, NameOwnerChanged causes a comparison. */
static json_object *ask_daemon(Agent *a) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *text = NULL;
        json_object *o = NULL;
        int r = node_call(a->bus, "Describe", &error, &reply, "");

        if (r < 0 && !a->is_waiting)
                log_warning_errno(r, "Waiting for passthroughd: %s", error.message ?: strerror(-r));
        a->is_waiting = r < 0;
        if (r >= 0 && bus_read_reply_text(reply, &text) >= 0)
                (void) json_parse(text, strlen(text), &o);
        return o;
}

/* Returns true when the previous comparison found no problem of the allocation. Remembers that this comparison does. */
static bool is_news(Agent *a, const char *id) {
        (void) json_object_object_add(a->told, id, NULL);
        return !json_object_object_get_ex(a->told_before, id, NULL);
}

static int update_gres(Agent *a, const GresList *list) {
        _cleanup_free_ char *present = NULL, *types = NULL, *wanted = NULL;
        int r = controller_load_gres(a->node, &present, &types);

        if (r < 0)
                return r;
        wanted = gres_list_update(list, present, types);
        if (!wanted)
                return -ENOMEM;
        if (streq(wanted, present))
                return 0;
        r = controller_set_gres(a->node, wanted);
        if (r == 0)
                log_info("Gres of node %s changed from %s to %s.", a->node, present, wanted);
        return r;
}

static const char *text_of(json_object *o, const char *key) {
        return member_text(o, key) ?: "";
}

/* Releases the allocation of an ended job, and removes the files of the job. Returns false if the allocation stays, for
 * example because a guest still runs. */
static bool release(Agent *a, json_object *allocation) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *name = text_of(allocation, "name");
        uint64_t generation = member_size(allocation, "generation");
        int removed, r = node_call(a->bus, "Release", &error, NULL, "st", name, generation);

        if (r >= 0)
                log_info("Released %s, whose job has ended.", name);
        else if (is_news(a, text_of(allocation, "id")))
                log_warning("Cannot release %s, whose job has ended: %s, ignoring", name,
                            error.message ?: strerror(-r));
        removed = handout_remove(a->directory, name);
        if (removed < 0)
                log_warning_errno(removed, "Cannot remove the files of %s: %m, ignoring", name);
        return r >= 0;
}

/* Returns false while passthroughd prepares or releases the allocation. passthroughd ends both states without this
 * program. */
static bool is_settled(json_object *allocation) {
        const char *state = text_of(allocation, "state");

        return !streq(state, "preparing") && !streq(state, "releasing");
}

/*
 * Terminates the job if its allocation has failed, but not while the job has no files: then its prolog still runs, and
 * reports the failure. 0 or a negative errno.
 */
static int terminate_failed(Agent *a, uint32_t id, json_object *allocation) {
        const char *name = text_of(allocation, "name");
        _cleanup_free_ char *sentence = string_format("passthroughd: %s", text_of(allocation, "reason"));
        int r;

        if (!streq(text_of(allocation, "state"), "failed"))
                return 0;
        r = handout_exists(a->directory, name);
        if (r <= 0 || !is_news(a, text_of(allocation, "id")))
                return MIN(r, 0);
        r = sentence ? controller_terminate_job(id, sentence) : -ENOMEM;
        if (r == 0)
                log_info("Terminated the job of %s, whose devices failed: %s", name, text_of(allocation, "reason"));
        else /* not terminated: try again in the next comparison */
                json_object_object_del(a->told, text_of(allocation, "id"));
        return r;
}

/* Checks an allocation; ignores one that is not of a job, or not settled. If the job is not on this node, releases the
 * allocation; if that fails, its devices do not count as healthy. If the job is on this node and the allocation has
 * failed, terminates the job. 0 or a negative errno. */
static int check_allocation(Agent *a, json_object *description, json_object *allocation, GresList *list) {
        const char *name = text_of(allocation, "name");
        size_t prefix = strlen(GRES_ALLOCATION_PREFIX);
        uint64_t id;
        int r;

        if (strncmp(name, GRES_ALLOCATION_PREFIX, prefix) != 0 || parse_unsigned(name + prefix, UINT32_MAX, &id) < 0 ||
            !streq(text_of(allocation, "tag"), GRES_ALLOCATION_TAG) || !is_settled(allocation))
                return 0;
        r = controller_has_job((uint32_t) id, a->node);
        if (r != 0)
                return r < 0 ? r : terminate_failed(a, (uint32_t) id, allocation);
        if (!release(a, allocation))
                gres_list_withhold(list, description, name);
        return 0;
}

static int check_allocations(Agent *a, json_object *description, GresList *list) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < member_length(description, "allocations"); i++)
                r = check_allocation(a, description, member_at(description, "allocations", i), list);
        return r;
}

static void compare(Agent *a) {
        _cleanup_json_ json_object *description = ask_daemon(a);
        _cleanup_gres_list_ GresList list = { 0 };
        int r;

        if (!description)
                return;
        (void) json_object_put(a->told_before);
        a->told_before = a->told;
        a->told = json_object_new_object();
        r = gres_list_new(description, &list);
        if (r == 0)
                r = check_allocations(a, description, &list);
        if (r == 0)
                r = update_gres(a, &list);
        if (r < 0 && !a->failed)
                log_warning_errno(r, "slurmctld cannot be told what node %s has: %m, ignoring", a->node);
        a->failed = r < 0;
}

static int on_compare_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Agent *a = userdata;
        int r;

        compare(a);
        r = sd_event_source_set_time_relative(source, PERIOD);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Agent *a = userdata;
        uint64_t due, now;

        /*
         * Move the timer only to an earlier time: if each signal delayed the timer, a node with frequent changes would
         * never be compared.
         */
        if (sd_event_source_get_time(a->timer, &due) >= 0 && sd_event_now(a->event, CLOCK_MONOTONIC, &now) >= 0 &&
            due > now + SETTLE_TIME)
                (void) sd_event_source_set_time(a->timer, now + SETTLE_TIME);
        return 0;
}

static int agent_start(Agent *a) {
        int r = sd_event_default(&a->event);

        if (r < 0)
                return r;
        r = node_open_bus(NULL, &a->bus);
        if (r < 0)
                return r;
        r = sd_bus_attach_event(a->bus, a->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        r = sd_bus_set_exit_on_disconnect(a->bus, true);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(a->event, &a->timer, CLOCK_MONOTONIC, 0, SETTLE_TIME, on_compare_timer, a);
        if (r < 0)
                return r;
        r = sd_bus_add_match(a->bus, NULL, MATCH_DAEMON, on_signal, a);
        return r < 0 ? r : sd_bus_add_match(a->bus, NULL, MATCH_OWNER, on_signal, a);
}

static int usage(void) {
        puts("Usage: passthroughd-slurm [--node=NAME] [--directory=DIR]\n"
             "Keeps the GRES of this node in Slurm equal to the devices that passthroughd can give.\n\n"
             "  --node=NAME      The name of the node in slurm.conf; default: the host name up to its first dot\n"
             "  --directory=DIR  The directory of the plugin in plugstack.conf; default: " SETTINGS_DIRECTORY "\n"
             "  -h, --help       Show this help\n"
             "  --version        Show the version");
        return EXIT_SUCCESS;
}

/* Checks for a configuration, because Slurm's library ends the program without one. slurmd writes the second file if
 * slurmctld has the configuration of all nodes. */
static bool is_configured(void) {
        static const char *const files[] = { "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf" };

        if (getenv("SLURM_CONF") || getenv("SLURM_CONF_SERVER"))
                return true;
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                if (access(files[i], F_OK) >= 0)
                        return true;
        return false;
}

static const char *host_name(char *buf, size_t size) {
        if (gethostname(buf, size) < 0)
                return "localhost";
        buf[size - 1] = '\0';
        buf[strcspn(buf, ".")] = '\0';
        return buf;
}

int main(int argc, char *argv[]) {
        static const struct option options[] = {
                { "node", required_argument, NULL, 'n' },
                { "directory", required_argument, NULL, 'd' },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'v' },
                { 0 },
        };
        _cleanup_(agent_done) Agent a = { .directory = SETTINGS_DIRECTORY };
        char host[256];
        int c, r;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
                if (c == 'h')
                        return usage();
                if (c == 'v')
                        return puts("passthroughd-slurm " VERSION) < 0;
                if (c == 'n')
                        a.node = optarg;
                else if (c == 'd')
                        a.directory = optarg;
                else
                        return EXIT_FAILURE;
        }
        if (optind < argc) {
                (void) fprintf(stderr, "Try 'passthroughd-slurm --help'.\n");
                return EXIT_FAILURE;
        }
        if (!a.node)
                a.node = host_name(host, sizeof(host));
        if (!is_configured()) {
                (void) log_error("Slurm is not configured: there is no /etc/slurm/slurm.conf and no "
                                 "/run/slurm/conf/slurm.conf. Set SLURM_CONF= or SLURM_CONF_SERVER= in a drop-in of "
                                 "passthroughd-slurm.service.");
                /* If /run/slurm exists, slurmd runs, and may fetch the configuration later. So try again: systemd
                 * restarts this program after EXIT_FAILURE, but not after EX_CONFIG. */
                return access("/run/slurm", F_OK) >= 0 ? EXIT_FAILURE : EX_CONFIG;
        }
        controller_init();
        r = agent_start(&a);
        if (r >= 0) {
                (void) sd_notify(0, "READY=1");
                r = sd_event_loop(a.event);
        }
        slurm_fini();
        if (r < 0)
                log_error_errno(r, "Cannot watch passthroughd: %m");
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
