/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthrough-dra: the loop, and the parts that it connects. */

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>

#include "agent/daemon.h"
#include "agent/retry.h"
#include "model/json-value.h"
#include "plugin.h"
#include "settings.h"
#include "slices.h"
#include "util/log.h"
#include "util/strings.h"

#define COLLECT_USEC (UINT64_C(600) * 1000000)

typedef struct Agent {
        Settings settings;
        ClaimFiles files;
        sd_event *event;
        sd_bus *bus;
        sd_event_source *timer; /* the next comparison of files and claims */
        sd_event_source *tell;  /* tells the API server and the kubelet of the node */
        Facts *facts;
        Api *api;
        Works *works;
        Publisher *publisher;
        Plugin *plugin;
        bool had_facts;
} Agent;

static const char *arg_config = SETTINGS_FILE;
static bool arg_print;

static void agent_done(Agent *a) {
        plugin_free(a->plugin);
        works_free(a->works);
        publisher_free(a->publisher);
        apiserver_free(a->api);
        facts_free(a->facts);
        sd_event_source_disable_unref(a->timer);
        sd_event_source_disable_unref(a->tell);
        free(a->files.directory);
        sd_bus_flush_close_unref(a->bus);
        sd_event_unref(a->event);
        dra_settings_done(&a->settings);
}

/* The ledger is known from the first document on: claims may have gone while this program or the daemon did not run. */
static void on_facts(void *userdata) {
        Agent *a = userdata;
        bool has_facts = facts_document(a->facts);

        works_on_facts(a->works);
        (void) sd_event_source_set_enabled(a->tell, SD_EVENT_ONESHOT);
        if (has_facts && !a->had_facts)
                works_collect(a->works);
        a->had_facts = has_facts;
}

/* After the answers that a pod waits for. */
static int on_tell(sd_event_source *source, void *userdata) {
        Agent *a = userdata;

        publisher_update(a->publisher, facts_document(a->facts));
        plugin_on_facts(a->plugin);
        return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Agent *a = userdata;
        int r = sd_event_source_set_time_relative(a->timer, COLLECT_USEC - random_usec(COLLECT_USEC / 10));

        works_collect(a->works);
        return r < 0 ? r : sd_event_source_set_enabled(a->timer, SD_EVENT_ONESHOT);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        Agent *a = userdata;

        publisher_reread(a->publisher);
        works_collect(a->works);
        return 0;
}

static int prepare_loop(Agent *a) {
        sigset_t signals;
        int r;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGHUP);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &signals, NULL);
        r = sd_event_default(&a->event);
        if (r >= 0)
                r = sd_event_set_watchdog(a->event, true);
        if (r >= 0)
                r = sd_event_add_signal(a->event, NULL, SIGHUP, on_reload, a);
        if (r >= 0)
                r = sd_event_add_signal(a->event, NULL, SIGTERM, NULL, NULL);
        if (r >= 0)
                r = sd_event_add_signal(a->event, NULL, SIGINT, NULL, NULL);
        if (r >= 0)
                r = sd_event_add_time_relative(a->event, &a->timer, CLOCK_MONOTONIC, COLLECT_USEC, 0, on_timer, a);
        if (r >= 0)
                r = sd_event_add_defer(a->event, &a->tell, on_tell, a);
        if (r >= 0)
                r = sd_event_source_set_priority(a->tell, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = sd_event_source_set_enabled(a->tell, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_bus_attach_event(a->bus, a->event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = sd_bus_set_exit_on_disconnect(a->bus, true);
        return r < 0 ? log_error_errno(r, "Failed to prepare the loop: %m") : 0;
}

static int make_parts(Agent *a) {
        const Settings *s = &a->settings;
        int r;

        a->files = (ClaimFiles) { string_format("%s/plugins/" KUBE_DRIVER, s->kubelet), s->cdi };
        if (!a->files.directory)
                return log_error_errno(-ENOMEM, "Failed to prepare: %m");
        r = files_prepare(&a->files);
        if (r >= 0)
                r = apiserver_new(a->event, s->kubeconfig, &a->api);
        if (r >= 0)
                r = publisher_new(a->event, a->api, s->node, &a->publisher);
        if (r >= 0)
                r = facts_new(a->event, a->bus, on_facts, a, &a->facts);
        if (r >= 0)
                r = works_new(a->event, a->bus, a->facts, a->api, &a->files, s->node, &a->works);
        if (r >= 0)
                r = plugin_new(&(const PluginParts) { a->event, a->works, a->publisher, a->facts, s->node, s->kubelet },
                               &a->plugin);
        return r;
}

static int run_loop(Agent *a) {
        int r = prepare_loop(a);

        if (r >= 0)
                r = make_parts(a);
        if (r < 0)
                return r;
        (void) sd_notify(false, "READY=1");
        r = sd_event_loop(a->event);
        if (r > 0)
                return log_error_errno(-ECONNRESET, "The system bus has closed the connection.");
        return r < 0 ? log_error_errno(r, "The loop failed: %m") : 0;
}

/* What would be published. */
static int print_slices(const Agent *a) {
        _cleanup_json_ json_object *document = NULL, *wanted = NULL;
        _cleanup_free_ char *text = NULL;
        int r = daemon_describe(a->bus, &document);

        if (r < 0)
                return r;
        r = slices_wanted(document, &wanted);
        text = r < 0 ? NULL : json_text(wanted);
        if (!text)
                return log_error_errno(r < 0 ? r : -ENOMEM, "Failed to make ResourceSlices: %m");
        puts(text);
        return fflush(stdout) == 0 ? 0 : -errno;
}

/* Returns the exit status. */
static int run(void) {
        _cleanup_(agent_done) Agent a = { 0 };
        int r = dra_settings_read(arg_config, &a.settings);

        if (r < 0) /* the unit says that systemd does not try again */
                return r == -ENOMEM ? EXIT_FAILURE : EX_CONFIG;
        r = sd_bus_open_system(&a.bus);
        if (r < 0)
                log_error_errno(r, "Failed to connect to the system bus: %m");
        else
                r = arg_print ? print_slices(&a) : run_loop(&a);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void help(void) {
        puts("Usage: passthrough-dra [OPTION...]\n"
             "Hand this node's PCI devices to Kubernetes: a driver of Dynamic Resource Allocation.\n"
             "\n"
             "  --config=FILE   Read FILE instead of " SETTINGS_FILE "\n"
             "  --print         Print the devices of the ResourceSlices as JSON, and exit\n"
             "  --debug         Log each request\n"
             "  -h, --help      Show this help\n"
             "  --version       Show the version\n"
             "\n"
             "See passthrough-dra(8).");
}

/* 1: go on. 0: done. -1: usage error. */
static int parse_arguments(int argc, char *argv[]) {
        enum {
                ARG_CONFIG = 0x100,
                ARG_PRINT,
                ARG_DEBUG,
                ARG_VERSION
        };
        static const struct option options[] = {
                { "config", required_argument, NULL, ARG_CONFIG }, { "print", no_argument, NULL, ARG_PRINT },
                { "debug", no_argument, NULL, ARG_DEBUG },         { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, ARG_VERSION },     { NULL, 0, NULL, 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case ARG_CONFIG:
                        arg_config = optarg;
                        break;
                case ARG_PRINT:
                        arg_print = true;
                        break;
                case ARG_DEBUG:
                        log_set_max_level(LOG_DEBUG);
                        break;
                case ARG_VERSION:
                        puts("passthrough-dra " VERSION);
                        return 0;
                case 'h':
                        help();
                        return 0;
                default:
                        return -1;
                }
        return optind < argc ? -1 : 1;
}

int main(int argc, char *argv[]) {
        int r = parse_arguments(argc, argv);

        if (r < 0) {
                (void) fprintf(stderr, "Try 'passthrough-dra --help'.\n");
                return 2;
        }
        if (r == 0)
                return fflush(stdout) != 0 || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
        return run();
}
