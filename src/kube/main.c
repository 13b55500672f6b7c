/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthrough-dra: the settings, the loop, and the two sockets that the kubelet uses: one for the registration of the
 * plugin, and one for the plugin itself, with DRAPlugin and DRAResourceHealth. */

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sysexits.h>
#include <time.h>

#include "agent/settings.h"
#include "dra.h"
#include "util/log.h"
#include "util/program.h"

#define SETTINGS_FILE "/etc/passthroughd/passthrough-dra.conf"
#define NODE_MAX      220U /* the name of a slice is this name and a suffix, together at most 253 bytes */
#define COLLECT_USEC  (UINT64_C(600) * 1000000)
#define RENEW_USEC    (UINT64_C(15) * 1000000)

static const AgentKey keys[] = {
        { "Kubernetes", "Kubeconfig", agent_parse_text, offsetof(Manager, kubeconfig), "/etc/kubernetes/kubelet.conf" },
        { "Kubernetes", "Node", agent_parse_text, offsetof(Manager, node), NULL },
        { "Kubernetes", "KubeletDirectory", agent_parse_text, offsetof(Manager, kubelet), "/var/lib/kubelet" },
        { "Kubernetes", "CdiDirectory", agent_parse_text, offsetof(Manager, cdi), "/var/run/cdi" },
};

static const char *arg_config = SETTINGS_FILE;
static bool arg_print, arg_debug;

static void manager_done(Manager *m) {
        grpc_server_free(m->plugin.registration);
        grpc_server_free(m->plugin.server);
        sd_event_source_disable_unref(m->plugin.renew);
        wire_done(&m->plugin.health);
        free(m->plugin.path);
        works_done(&m->works);
        facts_done(&m->facts);
        publisher_done(&m->publisher);
        apiserver_done(&m->api);
        sd_event_source_disable_unref(m->collect);
        sd_event_source_disable_unref(m->tell);
        free(m->records);
        free(m->metadata);
        sd_bus_flush_close_unref(m->bus);
        sd_event_unref(m->event);
        agent_free_settings(keys, ELEMENTSOF(keys), m);
}

/* Reads the settings. A missing file counts as empty. The default of the node's name is the host name in lower case, as
 * with the kubelet. */
static int read_settings(Manager *m) {
        bool is_missing = access(arg_config, F_OK) < 0 && errno == ENOENT;
        char name[HOST_NAME_MAX + 1] = "";
        int r = agent_read_settings(is_missing ? NULL : arg_config, keys, ELEMENTSOF(keys), m);

        if (r < 0)
                return r;
        if (!m->node && gethostname(name, sizeof(name) - 1) < 0)
                return log_error_errno(-errno, "Failed to read the name of the host: %m");
        for (char *c = name; *c; c++)
                *c = (char) tolower((unsigned char) *c);
        if (!m->node && string_copy(&m->node, name) < 0)
                return log_error_errno(-ENOMEM, "Failed to complete the settings: %m");
        if (!name_is_valid(m->node) || strlen(m->node) > NODE_MAX)
                return log_error_errno(-EINVAL, "%s: '%s' is no name of a node.", arg_config, QUOTABLE(m->node));
        return 0;
}

static void run_info(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        /* The kubelet's names of the services: kubelet/pkg/apis/dra/v1/types.go and the files beside it. */
        static const char *const versions[] = { "v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth",
                                                NULL };
        _cleanup_(wire_done) WireBuffer info = { 0 };
        const Manager *m = userdata;

        message_put_plugin_info(&info, "DRAPlugin", KUBE_DRIVER, m->plugin.path, versions);
        grpc_reply(call, &info);
}

static void run_status(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        WireBuffer empty = { 0 };
        bool registered = false;
        Manager *m = userdata;
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
        publisher_kubelet_started(m);
}

static void put_health(const Manager *m, WireBuffer *b, uint64_t seconds) {
        _cleanup_json_ json_object *devices = slice_devices(m->facts.document);

        for (size_t i = 0; i < json_length(devices); i++) {
                json_object *device = json_at(devices, i);
                char name[DEVICE_NAME_SIZE];
                const char *reason;
                HealthStatus health = slice_health(device, &reason);

                slice_device_name(member_text(device, "address"), name);
                message_put_health(b, m->node, name, health, seconds, reason);
        }
}

static void send_health(Manager *m) {
        _cleanup_(wire_done) WireBuffer message = { 0 };

        if (!m->facts.document)
                return;
        put_health(m, &message, (uint64_t) time(NULL));
        for (size_t i = 0; i < WATCHERS_MAX; i++)
                if (m->plugin.watchers[i])
                        grpc_send(m->plugin.watchers[i], &message);
}

static void on_watcher_gone(GrpcCall *call, void *userdata) {
        Manager *m = userdata;

        for (size_t i = 0; i < WATCHERS_MAX; i++)
                if (m->plugin.watchers[i] == call)
                        m->plugin.watchers[i] = NULL;
}

static void run_watch(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        Manager *m = userdata;

        for (size_t i = 0; i < WATCHERS_MAX; i++)
                if (!m->plugin.watchers[i]) {
                        m->plugin.watchers[i] = call;
                        grpc_call_watch(call, on_watcher_gone, m);
                        send_health(m);
                        return;
                }
        grpc_fail(call, GRPC_RESOURCE_EXHAUSTED, "Too many programs watch the health of devices.");
}

/* Sends the health again, which the kubelet treats as unknown after 30 s without a message
 * (pkg/kubelet/cm/dra/healthinfo.go). Exits if the sockets were removed, for example by a cleaner of the kubelet's
 * directories. */
static int on_renew(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        send_health(m);
        if (!grpc_server_is_reachable(m->plugin.registration) || !grpc_server_is_reachable(m->plugin.server)) {
                log_error("The sockets in %s have gone.", m->kubelet);
                return sd_event_exit(m->event, -EIDRM);
        }
        return agent_set_timer(m->plugin.renew, RENEW_USEC);
}

/* Listens at the plugin's socket first: the kubelet connects to it as soon as it sees the registration socket. */
static int listen_at_both(Manager *m) {
        static const GrpcMethod registration[] = {
                { "/pluginregistration.Registration/GetInfo", run_info },
                { "/pluginregistration.Registration/NotifyRegistrationStatus", run_status },
        };
        static const GrpcMethod plugin[] = {
                { "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources", works_prepare },
                { "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources", works_unprepare },
                { "/v1alpha1.DRAResourceHealth/NodeWatchResources", run_watch },
                { "/v1.DRAResourceHealth/NodeWatchResources", run_watch },
        };
        _cleanup_free_ char *path = string_format("%s/plugins_registry/" KUBE_DRIVER "-reg.sock", m->kubelet);
        int r;

        m->plugin.path = string_format("%s/plugins/" KUBE_DRIVER "/dra.sock", m->kubelet);
        if (!path || !m->plugin.path)
                return log_error_errno(-ENOMEM, "Failed to prepare: %m");
        r = grpc_server_new(m->event, m->plugin.path, plugin, ELEMENTSOF(plugin), m, &m->plugin.server);
        if (r < 0)
                return r;
        return grpc_server_new(m->event, path, registration, ELEMENTSOF(registration), m, &m->plugin.registration);
}

/* Handles a new document, or its loss. works_collect() follows the first document after a start of this program or of
 * the daemon: claims may have ended in the meantime. */
static void on_facts(Manager *m) {
        bool has_facts = m->facts.document;

        works_on_facts(m);
        (void) sd_event_source_set_enabled(m->tell, SD_EVENT_ONESHOT);
        if (has_facts && !m->had_facts)
                works_collect(m);
        m->had_facts = has_facts;
}

/* Updates the ResourceSlices and then the watchers. As an idle source, it runs after works_on_facts(): pods wait for
 * the answers of the works. */
static int on_tell(sd_event_source *source, void *userdata) {
        _cleanup_(wire_done) WireBuffer now = { 0 };
        Manager *m = userdata;

        publisher_update(m);
        if (!m->facts.document)
                return 0;
        put_health(m, &now, 0);
        if (now.size == m->plugin.health.size &&
            (now.size == 0 || memcmp(now.data, m->plugin.health.data, now.size) == 0))
                return 0;
        wire_done(&m->plugin.health);
        m->plugin.health = now;
        now = (WireBuffer) { 0 };
        send_health(m);
        return 0;
}

static int on_collect(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        works_collect(m);
        return agent_set_timer(m->collect, COLLECT_USEC - random_usec(COLLECT_USEC / 10));
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        Manager *m = userdata;

        publisher_reread(m);
        works_collect(m);
        return 0;
}

static int run_loop(Manager *m) {
        int r = agent_loop_new(m->bus, on_reload, m, &m->event);

        if (r >= 0)
                r = agent_add_signal(m->event, SIGTERM, NULL, NULL);
        if (r >= 0)
                r = agent_add_signal(m->event, SIGINT, NULL, NULL);
        if (r >= 0)
                r = sd_event_set_watchdog(m->event, true);
        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &m->collect, CLOCK_MONOTONIC, COLLECT_USEC, 0, on_collect, m);
        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &m->plugin.renew, CLOCK_MONOTONIC, RENEW_USEC, 0, on_renew, m);
        if (r >= 0)
                r = agent_add_idle(m->event, &m->tell, on_tell, m);
        if (r < 0)
                return log_error_errno(r, "Failed to prepare the loop: %m");
        /* Each of these functions has logged its failure. */
        if (files_init(m) < 0 || apiserver_init(m) < 0 || publisher_init(m) < 0 || works_init(m) < 0 ||
            facts_init(m, on_facts) < 0 || listen_at_both(m) < 0)
                return -EIO;
        return agent_loop_run(m->event);
}

/* Prints the parts of the ResourceSlices that depend on the devices: slices_wanted(). */
static int print_slices(const Manager *m) {
        _cleanup_json_ json_object *document = NULL, *wanted = NULL;
        _cleanup_free_ char *text = NULL;
        int r = daemon_describe(m->bus, &document);

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
        _cleanup_(manager_done) Manager m = { .works.list = TAILQ_HEAD_INITIALIZER(m.works.list) };
        int r = program_read_arguments(argc, argv, "passthrough-dra", help, options, ELEMENTSOF(options));

        if (r >= 0)
                return r;
        if (arg_debug)
                log_set_max_level(LOG_DEBUG);
        r = read_settings(&m);
        if (r < 0) /* the unit has RestartPreventExitStatus= for this status */
                return r == -ENOMEM ? EXIT_FAILURE : EX_CONFIG;
        r = sd_bus_open_system(&m.bus);
        if (r < 0)
                log_error_errno(r, "Failed to connect to the system bus: %m");
        else
                r = arg_print ? print_slices(&m) : run_loop(&m);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
