/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthrough-dra: the settings, the loop, and the two sockets that the kubelet calls: the one by which it finds the
 * plugin, and the one of the plugin, with DRAPlugin and DRAResourceHealth. */

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sysexits.h>
#include <time.h>

#include "agent/daemon.h"
#include "agent/settings.h"
#include "publish.h"
#include "slices.h"
#include "util/log.h"
#include "util/program.h"
#include "work.h"

#define SETTINGS_FILE "/etc/passthroughd/passthrough-dra.conf"
#define NODE_MAX      220U /* The name of a slice is that of the node and a suffix: 253 bytes together. */
#define WATCHERS_MAX  8U
#define COLLECT_USEC  (UINT64_C(600) * 1000000)
#define RENEW_USEC    (UINT64_C(15) * 1000000)

typedef struct Agent {
        /* passthrough-dra(8) */
        char *kubeconfig, *node, *kubelet, *cdi;

        sd_event *event;
        sd_bus *bus;
        Facts *facts;
        Api *api;
        ClaimFiles files;
        Works *works;
        Publisher *publisher;
        sd_event_source *collect; /* the next comparison of files and claims */
        sd_event_source *tell;    /* tells the API server and the kubelet of the node */
        bool had_facts;

        char *registration_path, *plugin_path;
        GrpcServer *registration, *plugin;
        GrpcCall *watchers[WATCHERS_MAX]; /* streams of DRAResourceHealth */
        WireBuffer health;                /* the last message, without times */
        sd_event_source *renew;
} Agent;

static const AgentKey keys[] = {
        { "Kubernetes", "Kubeconfig", agent_parse_text, offsetof(Agent, kubeconfig), "/etc/kubernetes/kubelet.conf" },
        { "Kubernetes", "Node", agent_parse_text, offsetof(Agent, node), NULL },
        { "Kubernetes", "KubeletDirectory", agent_parse_text, offsetof(Agent, kubelet), "/var/lib/kubelet" },
        { "Kubernetes", "CdiDirectory", agent_parse_text, offsetof(Agent, cdi), "/var/run/cdi" },
};

static const char *arg_config = SETTINGS_FILE;
static bool arg_print, arg_debug;

static void agent_done(Agent *a) {
        grpc_server_free(a->registration);
        grpc_server_free(a->plugin);
        works_free(a->works);
        publisher_free(a->publisher);
        apiserver_free(a->api);
        facts_free(a->facts);
        sd_event_source_disable_unref(a->collect);
        sd_event_source_disable_unref(a->tell);
        sd_event_source_disable_unref(a->renew);
        wire_done(&a->health);
        free(a->registration_path);
        free(a->plugin_path);
        files_done(&a->files);
        sd_bus_flush_close_unref(a->bus);
        sd_event_unref(a->event);
        agent_free_settings(keys, ELEMENTSOF(keys), a);
}

/* A missing file is one without lines. The kubelet takes the name of the host in lower case. */
static int read_settings(Agent *a) {
        bool is_missing = access(arg_config, F_OK) < 0 && errno == ENOENT;
        char name[HOST_NAME_MAX + 1] = "";
        int r = agent_read_settings(is_missing ? NULL : arg_config, keys, ELEMENTSOF(keys), a);

        if (r < 0)
                return r;
        if (!a->node && gethostname(name, sizeof(name) - 1) < 0)
                return log_error_errno(-errno, "Failed to read the name of the host: %m");
        for (char *c = name; *c; c++)
                *c = (char) tolower((unsigned char) *c);
        if (!a->node && string_copy(&a->node, name) < 0)
                return log_error_errno(-ENOMEM, "Failed to complete the settings: %m");
        if (!name_is_valid(a->node) || strlen(a->node) > NODE_MAX)
                return log_error_errno(-EINVAL, "%s: '%s' is no name of a node.", arg_config, QUOTABLE(a->node));
        return 0;
}

/* Registration */

static void run_info(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        /* The names by which the kubelet knows the services: kubelet/pkg/apis/dra/v1/types.go and those beside it. */
        static const char *const versions[] = { "v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth",
                                                NULL };
        _cleanup_(wire_done) WireBuffer info = { 0 };
        const Agent *a = userdata;

        message_put_plugin_info(&info, "DRAPlugin", KUBE_DRIVER, a->plugin_path, versions);
        grpc_reply(call, &info);
}

static void run_status(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        WireBuffer empty = { 0 };
        bool registered = false;
        Agent *a = userdata;
        char error[256];

        if (message_parse_status(data, size, &registered, error, sizeof(error)) < 0) {
                grpc_fail(call, GRPC_INVALID_ARGUMENT, "The status cannot be read.");
                return;
        }
        if (registered)
                log_info("The kubelet has registered " KUBE_DRIVER ".");
        else
                log_error("The kubelet does not register " KUBE_DRIVER ": %s", QUOTABLE(error));
        grpc_reply(call, &empty);
        publisher_kubelet_started(a->publisher);
}

/* Health */

static void put_health(const Agent *a, WireBuffer *b, uint64_t seconds) {
        _cleanup_json_ json_object *devices = slice_devices(a->facts->document);

        for (size_t i = 0; i < json_length(devices); i++) {
                json_object *device = json_at(devices, i);
                char name[DEVICE_NAME_SIZE];
                const char *reason;
                HealthStatus health = slice_health(device, &reason);

                slice_device_name(member_text(device, "address"), name);
                message_put_health(b, a->node, name, health, seconds, reason);
        }
}

static void send_health(Agent *a) {
        _cleanup_(wire_done) WireBuffer message = { 0 };

        if (!a->facts->document)
                return;
        put_health(a, &message, (uint64_t) time(NULL));
        for (size_t i = 0; i < WATCHERS_MAX; i++)
                if (a->watchers[i])
                        grpc_send(a->watchers[i], &message);
}

static void on_watcher_gone(GrpcCall *call, void *userdata) {
        Agent *a = userdata;

        for (size_t i = 0; i < WATCHERS_MAX; i++)
                if (a->watchers[i] == call)
                        a->watchers[i] = NULL;
}

static void run_watch(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        Agent *a = userdata;

        for (size_t i = 0; i < WATCHERS_MAX; i++)
                if (!a->watchers[i]) {
                        a->watchers[i] = call;
                        grpc_call_watch(call, on_watcher_gone, a);
                        send_health(a);
                        return;
                }
        grpc_fail(call, GRPC_RESOURCE_EXHAUSTED, "Too many programs watch the health of devices.");
}

/* The kubelet takes health for unknown after 30 s without a message (pkg/kubelet/cm/dra/healthinfo.go), and a cleaner
 * of its directories may have removed a socket. */
static int on_renew(sd_event_source *source, uint64_t usec, void *userdata) {
        Agent *a = userdata;

        send_health(a);
        if (!grpc_server_is_reachable(a->registration) || !grpc_server_is_reachable(a->plugin)) {
                log_error("The sockets in %s have gone.", a->kubelet);
                return sd_event_exit(a->event, -EIDRM);
        }
        return agent_set_timer(a->renew, RENEW_USEC);
}

/* DRAPlugin */

static void run_prepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        works_run(((Agent *) userdata)->works, WORK_PREPARE, call, data, size);
}

static void run_unprepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        works_run(((Agent *) userdata)->works, WORK_UNPREPARE, call, data, size);
}

/* The kubelet may call the plugin as soon as it sees the socket of the registration. */
static int listen_at_both(Agent *a) {
        static const GrpcMethod registration[] = {
                { "/pluginregistration.Registration/GetInfo", run_info },
                { "/pluginregistration.Registration/NotifyRegistrationStatus", run_status },
        };
        static const GrpcMethod plugin[] = {
                { "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources", run_prepare },
                { "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources", run_unprepare },
                { "/v1alpha1.DRAResourceHealth/NodeWatchResources", run_watch },
                { "/v1.DRAResourceHealth/NodeWatchResources", run_watch },
        };
        int r;

        a->plugin_path = string_format("%s/plugins/" KUBE_DRIVER "/dra.sock", a->kubelet);
        a->registration_path = string_format("%s/plugins_registry/" KUBE_DRIVER "-reg.sock", a->kubelet);
        if (!a->plugin_path || !a->registration_path)
                return log_error_errno(-ENOMEM, "Failed to prepare: %m");
        r = grpc_server_new(a->event, a->plugin_path, plugin, ELEMENTSOF(plugin), a, &a->plugin);
        if (r < 0)
                return r;
        return grpc_server_new(a->event, a->registration_path, registration, ELEMENTSOF(registration), a,
                               &a->registration);
}

/* The loop */

/* The ledger is known from the first document on: claims may have gone while this program or the daemon did not run. */
static void on_facts(void *userdata) {
        Agent *a = userdata;
        bool has_facts = a->facts->document;

        works_on_facts(a->works);
        (void) sd_event_source_set_enabled(a->tell, SD_EVENT_ONESHOT);
        if (has_facts && !a->had_facts)
                works_collect(a->works);
        a->had_facts = has_facts;
}

/* After the answers that a pod waits for. Watchers get the health of devices when it has changed. */
static int on_tell(sd_event_source *source, void *userdata) {
        _cleanup_(wire_done) WireBuffer now = { 0 };
        Agent *a = userdata;

        publisher_update(a->publisher, a->facts->document);
        if (!a->facts->document)
                return 0;
        put_health(a, &now, 0);
        if (now.size == a->health.size && (now.size == 0 || memcmp(now.data, a->health.data, now.size) == 0))
                return 0;
        wire_done(&a->health);
        a->health = now;
        now = (WireBuffer) { 0 };
        send_health(a);
        return 0;
}

static int on_collect(sd_event_source *source, uint64_t usec, void *userdata) {
        Agent *a = userdata;

        works_collect(a->works);
        return agent_set_timer(a->collect, COLLECT_USEC - random_usec(COLLECT_USEC / 10));
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        Agent *a = userdata;

        publisher_reread(a->publisher);
        works_collect(a->works);
        return 0;
}

static int prepare_loop(Agent *a) {
        int r = agent_loop_new(a->bus, on_reload, a, &a->event);

        if (r >= 0)
                r = agent_add_signal(a->event, SIGTERM, NULL, NULL);
        if (r >= 0)
                r = agent_add_signal(a->event, SIGINT, NULL, NULL);
        if (r >= 0)
                r = sd_event_set_watchdog(a->event, true);
        if (r >= 0)
                r = sd_event_add_time_relative(a->event, &a->collect, CLOCK_MONOTONIC, COLLECT_USEC, 0, on_collect, a);
        if (r >= 0)
                r = sd_event_add_time_relative(a->event, &a->renew, CLOCK_MONOTONIC, RENEW_USEC, 0, on_renew, a);
        if (r >= 0)
                r = sd_event_add_defer(a->event, &a->tell, on_tell, a);
        if (r >= 0)
                r = sd_event_source_set_priority(a->tell, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = sd_event_source_set_enabled(a->tell, SD_EVENT_OFF);
        return r < 0 ? log_error_errno(r, "Failed to prepare the loop: %m") : 0;
}

static int run_loop(Agent *a) {
        int r = prepare_loop(a);

        if (r >= 0)
                r = files_prepare(&a->files, a->kubelet, a->cdi);
        if (r >= 0)
                r = apiserver_new(a->event, a->kubeconfig, &a->api);
        if (r >= 0)
                r = publisher_new(a->event, a->api, a->node, &a->publisher);
        if (r >= 0)
                r = facts_new(a->event, a->bus, on_facts, a, &a->facts);
        if (r >= 0)
                r = works_new(a->event, a->bus, a->facts, a->api, &a->files, a->node, &a->works);
        if (r >= 0)
                r = listen_at_both(a);
        return r < 0 ? r : agent_loop_run(a->event);
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

static const char help[] = "Usage: passthrough-dra [OPTION...]\n"
                           "Hand this node's PCI devices to Kubernetes: a driver of Dynamic Resource Allocation.\n"
                           "\n"
                           "  --config=FILE   Read FILE instead of " SETTINGS_FILE "\n"
                           "  --print         Print the devices of the ResourceSlices as JSON, and exit\n"
                           "  --debug         Log each request\n"
                           "  -h, --help      Show this help\n"
                           "  --version       Show the version\n"
                           "\n"
                           "See passthrough-dra(8).";

int main(int argc, char *argv[]) {
        static const ProgramOption options[] = { { "config", &arg_config, NULL },
                                                 { "print", NULL, &arg_print },
                                                 { "debug", NULL, &arg_debug } };
        _cleanup_(agent_done) Agent a = { 0 };
        int r = program_read_arguments(argc, argv, "passthrough-dra", help, options, ELEMENTSOF(options));

        if (r >= 0)
                return r;
        if (arg_debug)
                log_set_max_level(LOG_DEBUG);
        r = read_settings(&a);
        if (r < 0) /* the unit says that systemd does not try again */
                return r == -ENOMEM ? EXIT_FAILURE : EX_CONFIG;
        r = sd_bus_open_system(&a.bus);
        if (r < 0)
                log_error_errno(r, "Failed to connect to the system bus: %m");
        else
                r = arg_print ? print_slices(&a) : run_loop(&a);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
