/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "publish.h"

#include <errno.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>

#include "agent/retry.h"
#include "json.h"
#include "slices.h"
#include "util/log.h"
#include "util/strings.h"

#define SECOND        UINT64_C(1000000)
#define FULL_USEC     (600 * SECOND) /* between full comparisons, at most */
#define KUBELET_USEC  (10 * SECOND)  /* between those after a start of the kubelet */
#define KUBELET_TRIES 4U             /* 30 s: its grace for a plugin that is away */

struct Publisher {
        Api *api;
        const char *node;
        char *node_uid;         /* NULL: not read yet */
        sd_event_source *timer; /* the next full comparison, or the next try */
        json_object *wanted;    /* NULL: the daemon has not answered yet */
        json_object *items;     /* what the API server has; NULL: to be read */
        json_object *rivals;    /* "DRIVER ADDRESS" of devices that other drivers publish too */
        json_object *writes;    /* the requests still to be sent; their slices have one generation */
        json_object *write;     /* the one under way */
        bool is_busy;           /* a request is under way */
        uint64_t delay;         /* until the next try; 0: the last one succeeded */
        unsigned n_writes, kubelet_tries;
};

static void step(Publisher *p);

static void set_timer(Publisher *p, uint64_t usec) {
        if (sd_event_source_set_time_relative(p->timer, usec) < 0 ||
            sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT) < 0)
                log_error("Failed to set the timer of the ResourceSlices.");
}

static void set_next(Publisher *p) {
        if (p->kubelet_tries > 0)
                set_timer(p, KUBELET_USEC);
        else
                set_timer(p, FULL_USEC - random_usec(FULL_USEC / 10));
}

static void forget_items(Publisher *p) {
        json_object_put(TAKE_PTR(p->items));
        json_object_put(TAKE_PTR(p->writes));
}

static void try_later(Publisher *p) {
        uint64_t usec = retry_usec(&p->delay);

        forget_items(p);
        set_timer(p, usec);
        (void) sd_notifyf(false, "STATUS=ResourceSlices are not current: see the journal. The next try is in %.1f s.",
                          (double) usec / SECOND);
}

static void fail(Publisher *p, const char *what, const HttpReply *reply) {
        char sentence[512];

        log_warning("%s: %s", what, apiserver_reason(reply, sentence, sizeof(sentence)));
        try_later(p);
}

static void start(Publisher *p, const char *method, const char *path, json_object *body, http_done_t done) {
        p->is_busy = apiserver_start(p->api, method, path, body, done, p, NULL) >= 0;
        if (!p->is_busy)
                try_later(p);
}

static void on_node(HttpReply *reply, void *userdata) {
        Publisher *p = userdata;
        const char *uid = member_text(member(reply->document, "metadata"), "uid");

        p->is_busy = false;
        if (reply->status != 200 || !uid || string_copy(&p->node_uid, uid) < 0)
                fail(p, "Cannot read the Node", reply);
        else
                step(p);
}

static const char *device_address(json_object *device) {
        json_object *attributes = member(device, "attributes");

        return member_text(member(attributes, "resource.kubernetes.io/pciBusID"), "string");
}

static bool is_wanted(const Publisher *p, const char *address) {
        for (size_t i = 0; address && i < json_length(p->wanted); i++) {
                json_object *devices = member(json_object_array_get_idx(p->wanted, i), "devices");

                for (size_t k = 0; k < json_length(devices); k++)
                        if (streq_ptr(device_address(json_object_array_get_idx(devices, k)), address))
                                return true;
        }
        return false;
}

/* Each device that another driver gives out as well is told of once. */
static void tell_rival(Publisher *p, json_object *spec) {
        const char *driver = member_text(spec, "driver") ?: "";
        json_object *devices = member(spec, "devices");

        for (size_t i = 0; i < json_length(devices); i++) {
                const char *address = device_address(json_object_array_get_idx(devices, i));
                char key[320];

                if (!is_wanted(p, address))
                        continue;
                (void) snprintf(key, sizeof(key), "%s %s", driver, address);
                if (json_object_object_get_ex(p->rivals, key, NULL))
                        continue;
                (void) json_object_object_add(p->rivals, key, NULL);
                log_warning("Driver %s publishes %s too: two claims can get it. Take it from one of both.",
                            QUOTABLE(driver), address);
        }
}

static void on_list(HttpReply *reply, void *userdata) {
        Publisher *p = userdata;
        json_object *items = member(reply->document, "items");

        p->is_busy = false;
        if (reply->status != 200 || !json_object_is_type(items, json_type_array)) {
                fail(p, "Cannot read the ResourceSlices", reply);
                return;
        }
        p->items = json_object_new_array();
        for (size_t i = 0; i < json_length(items); i++) {
                json_object *item = json_object_array_get_idx(items, i), *spec = member(item, "spec");

                if (!streq_ptr(member_text(spec, "driver"), KUBE_DRIVER))
                        tell_rival(p, spec);
                else if (p->items && !json_append(p->items, json_object_get(item)))
                        forget_items(p);
        }
        if (p->items)
                step(p);
        else
                try_later(p);
}

/* Takes the slice of the reply instead of the one that was there. */
static int take_item(Publisher *p, json_object *slice, const char *name) {
        for (size_t i = 0; i < json_length(p->items); i++)
                if (streq_ptr(member_text(member(json_object_array_get_idx(p->items, i), "metadata"), "name"), name))
                        return slice ? json_object_array_put_idx(p->items, i, json_object_get(slice))
                                     : json_object_array_del_idx(p->items, i, 1);
        return slice ? json_object_array_add(p->items, json_object_get(slice)) : 0;
}

/* A conflict, or a slice that has gone: another program wrote meanwhile. */
static void on_written(HttpReply *reply, void *userdata) {
        Publisher *p = userdata;
        _cleanup_json_ json_object *write = TAKE_PTR(p->write);
        bool is_removal = streq(member_text(write, "method"), "DELETE");
        const char *name = is_removal ? strrchr(member_text(write, "path"), '/') + 1
                                      : member_text(member(member(write, "body"), "metadata"), "name");

        p->is_busy = false;
        if (reply->status == 409 || reply->status == 404) {
                forget_items(p);
                if (p->n_writes++ > 64)
                        fail(p, "Cannot write the ResourceSlices", reply);
                else
                        step(p);
                return;
        }
        if (reply->status / 100 != 2) {
                fail(p, "Cannot write a ResourceSlice", reply);
                return;
        }
        p->n_writes++;
        /* An API server leaves out what it does not know. What was sent is not sent again. */
        if (!is_removal)
                (void) member_add(reply->document, "spec", json_object_get(member(member(write, "body"), "spec")));
        if (take_item(p, is_removal ? NULL : reply->document, name) < 0)
                forget_items(p);
        step(p);
}

static void settle(Publisher *p) {
        size_t n = json_length(p->items);

        if (p->n_writes > 0)
                log_info("%u change%s of ResourceSlices; the node has %zu.", p->n_writes, PLURAL(p->n_writes), n);
        p->n_writes = 0;
        p->delay = 0;
        set_next(p);
        (void) sd_notifyf(false, "STATUS=%zu ResourceSlice%s equal%s the node.", n, PLURAL(n), n == 1 ? "s" : "");
}

/* The next request, if one is needed. */
static void step(Publisher *p) {
        SliceOwner owner = { p->node, p->node_uid };
        _cleanup_free_ char *path = NULL;
        json_object *first;

        if (p->is_busy || !p->wanted)
                return;
        path = p->node_uid ? string_format(KUBE_SLICES_PATH "?fieldSelector=spec.nodeName%%3D%s", p->node)
                           : string_format("/api/v1/nodes/%s", p->node);
        if (!path || !p->node_uid || !p->items) {
                if (!path)
                        try_later(p);
                else
                        start(p, "GET", path, NULL, p->node_uid ? on_list : on_node);
                return;
        }
        if (json_length(p->writes) == 0) {
                json_object_put(TAKE_PTR(p->writes));
                if (slices_difference(&owner, p->wanted, p->items, &p->writes) < 0) {
                        try_later(p);
                        return;
                }
        }
        first = json_object_array_get_idx(p->writes, 0);
        if (!first) {
                settle(p);
                return;
        }
        json_object_put(p->write);
        p->write = json_object_get(first);
        (void) json_object_array_del_idx(p->writes, 0, 1);
        start(p, member_text(p->write, "method"), member_text(p->write, "path"), member(p->write, "body"), on_written);
}

void publisher_reread(Publisher *p) {
        if (p->is_busy)
                return;
        forget_items(p);
        /* A Node that was deleted and registered again has another one, and slices of the old one are removed. */
        free(TAKE_PTR(p->node_uid));
        step(p);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Publisher *p = userdata;

        p->kubelet_tries -= p->kubelet_tries > 0;
        publisher_reread(p);
        return 0;
}

void publisher_kubelet_started(Publisher *p) {
        p->kubelet_tries = KUBELET_TRIES;
        publisher_reread(p);
}

void publisher_update(Publisher *p, json_object *document) {
        _cleanup_json_ json_object *wanted = NULL;
        int r = document ? slices_wanted(document, &wanted) : 0;

        if (r < 0)
                log_error_errno(r, "Failed to make ResourceSlices of the document of passthroughd: %m");
        if (!wanted || json_object_equal(wanted, p->wanted))
                return;
        json_object_put(p->wanted);
        p->wanted = TAKE_PTR(wanted);
        /* While the API server does not answer, the timer decides about the next try. */
        if (p->delay == 0)
                step(p);
}

int publisher_new(sd_event *event, Api *api, const char *node, Publisher **ret) {
        Publisher *p = calloc(1, sizeof(*p));
        int r = -ENOMEM;

        if (p) {
                *p = (Publisher) { .api = api, .node = node, .rivals = json_object_new_object() };
                r = sd_event_add_time(event, &p->timer, CLOCK_MONOTONIC, UINT64_MAX, SECOND / 10, on_timer, p);
        }
        if (r < 0) {
                publisher_free(p);
                return log_error_errno(r, "Failed to prepare ResourceSlices: %m");
        }
        *ret = p;
        return 0;
}

Publisher *publisher_free(Publisher *p) {
        if (!p)
                return NULL;
        sd_event_source_disable_unref(p->timer);
        json_object_put(p->wanted);
        json_object_put(p->items);
        json_object_put(p->rivals);
        json_object_put(p->writes);
        json_object_put(p->write);
        free(p->node_uid);
        free(p);
        return NULL;
}
