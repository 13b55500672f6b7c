/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "plugin.h"

#include <errno.h>
#include <time.h>

#include "json.h"
#include "slices.h"
#include "util/log.h"
#include "util/strings.h"

#define WATCHERS_MAX 8U
#define RENEW_USEC   (UINT64_C(15) * 1000000)

struct Plugin {
        PluginParts parts;
        char *registration_path, *plugin_path;
        GrpcServer *registration, *plugin;
        GrpcCall *watchers[WATCHERS_MAX]; /* streams of DRAResourceHealth */
        WireBuffer health;                /* the last message, without times */
        sd_event_source *timer;
};

/* Registration */

static void run_info(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        /* The names by which the kubelet knows the services: kubelet/pkg/apis/dra/v1/types.go and those beside it. */
        static const char *const versions[] = { "v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth",
                                                NULL };
        _cleanup_(wire_done) WireBuffer info = { 0 };
        Plugin *p = userdata;

        message_put_plugin_info(&info, "DRAPlugin", KUBE_DRIVER, p->plugin_path, versions);
        grpc_reply(call, &info);
}

static void run_status(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        WireBuffer empty = { 0 };
        bool registered = false;
        Plugin *p = userdata;
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
        publisher_kubelet_started(p->parts.publisher);
}

/* Health */

static void put_health(const Plugin *p, WireBuffer *b, uint64_t seconds) {
        _cleanup_json_ json_object *devices = slice_devices(facts_document(p->parts.facts));

        for (size_t i = 0; devices && i < json_object_array_length(devices); i++) {
                json_object *device = json_object_array_get_idx(devices, i);
                char name[DEVICE_NAME_SIZE];
                const char *reason;
                HealthStatus health = slice_health(device, &reason);

                slice_device_name(member_text(device, "address"), name);
                message_put_health(b, p->parts.node, name, health, seconds, reason);
        }
}

static void send_health(Plugin *p) {
        _cleanup_(wire_done) WireBuffer message = { 0 };

        put_health(p, &message, (uint64_t) time(NULL));
        for (size_t i = 0; i < WATCHERS_MAX; i++)
                if (p->watchers[i])
                        grpc_send(p->watchers[i], &message);
}

static void on_watcher_gone(GrpcCall *call, void *userdata) {
        Plugin *p = userdata;

        for (size_t i = 0; i < WATCHERS_MAX; i++)
                if (p->watchers[i] == call)
                        p->watchers[i] = NULL;
}

static void run_watch(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        Plugin *p = userdata;

        for (size_t i = 0; i < WATCHERS_MAX; i++)
                if (!p->watchers[i]) {
                        p->watchers[i] = call;
                        grpc_call_watch(call, on_watcher_gone, p);
                        if (facts_document(p->parts.facts))
                                send_health(p);
                        return;
                }
        grpc_fail(call, GRPC_RESOURCE_EXHAUSTED, "Too many programs watch the health of devices.");
}

void plugin_on_facts(Plugin *p) {
        _cleanup_(wire_done) WireBuffer now = { 0 };

        if (!facts_document(p->parts.facts))
                return;
        put_health(p, &now, 0);
        if (now.size == p->health.size && (now.size == 0 || memcmp(now.data, p->health.data, now.size) == 0))
                return;
        wire_done(&p->health);
        p->health = now;
        now = (WireBuffer) { 0 };
        send_health(p);
}

/* The kubelet takes health for unknown after 30 s without a message (pkg/kubelet/cm/dra/healthinfo.go), and a cleaner
 * of its directories may have removed a socket. */
static int on_renew(sd_event_source *source, uint64_t usec, void *userdata) {
        Plugin *p = userdata;
        bool is_watched = false;

        for (size_t i = 0; i < WATCHERS_MAX; i++)
                is_watched |= p->watchers[i] != NULL;
        if (is_watched && facts_document(p->parts.facts))
                send_health(p);
        if (!grpc_server_is_reachable(p->registration) || !grpc_server_is_reachable(p->plugin)) {
                log_error("The sockets in %s have gone.", p->parts.kubelet);
                return sd_event_exit(p->parts.event, -EIDRM);
        }
        if (sd_event_source_set_time_relative(p->timer, RENEW_USEC) < 0)
                return -EIO;
        return sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

/* DRAPlugin */

static void run_prepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        works_prepare(((Plugin *) userdata)->parts.works, call, data, size);
}

static void run_unprepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        works_unprepare(((Plugin *) userdata)->parts.works, call, data, size);
}

static const GrpcMethod registration_methods[] = {
        { "/pluginregistration.Registration/GetInfo", run_info },
        { "/pluginregistration.Registration/NotifyRegistrationStatus", run_status },
};

static const GrpcMethod plugin_methods[] = {
        { "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources", run_prepare },
        { "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources", run_unprepare },
        { "/v1alpha1.DRAResourceHealth/NodeWatchResources", run_watch },
        { "/v1.DRAResourceHealth/NodeWatchResources", run_watch },
};

/* The kubelet may call the plugin as soon as it sees the socket of the registration. */
static int listen_at_both(Plugin *p) {
        int r = grpc_server_new(p->parts.event, p->plugin_path, plugin_methods, ELEMENTSOF(plugin_methods), p,
                                &p->plugin);

        if (r < 0)
                return r;
        return grpc_server_new(p->parts.event, p->registration_path, registration_methods,
                               ELEMENTSOF(registration_methods), p, &p->registration);
}

int plugin_new(const PluginParts *parts, Plugin **ret) {
        Plugin *p = calloc(1, sizeof(*p));
        int r = -ENOMEM;

        if (p) {
                p->parts = *parts;
                p->plugin_path = string_format("%s/plugins/" KUBE_DRIVER "/dra.sock", parts->kubelet);
                p->registration_path = string_format("%s/plugins_registry/" KUBE_DRIVER "-reg.sock", parts->kubelet);
        }
        if (p && p->plugin_path && p->registration_path)
                r = sd_event_add_time_relative(parts->event, &p->timer, CLOCK_MONOTONIC, RENEW_USEC, RENEW_USEC / 10,
                                               on_renew, p);
        if (r < 0)
                log_error_errno(r, "Failed to prepare the plugin: %m");
        else
                r = listen_at_both(p);
        if (r < 0)
                plugin_free(p);
        else
                *ret = p;
        return r;
}

Plugin *plugin_free(Plugin *p) {
        if (!p)
                return NULL;
        grpc_server_free(p->registration);
        grpc_server_free(p->plugin);
        sd_event_source_disable_unref(p->timer);
        wire_done(&p->health);
        free(p->registration_path);
        free(p->plugin_path);
        free(p);
        return NULL;
}
