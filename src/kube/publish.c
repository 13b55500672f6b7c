/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "dra.h"

#include <errno.h>
#include <systemd/sd-daemon.h>

#include "util/log.h"

#define SECOND        UINT64_C(1000000)
#define FULL_USEC     (600 * SECOND) /* the longest time between full comparisons */
#define KUBELET_USEC  (10 * SECOND)  /* time between full comparisons after a start of the kubelet */
#define KUBELET_TRIES 4U  /* number of such comparisons; the kubelet removes slices of a missing plugin after 30 s */
#define WRITES_MAX    64U /* after more writes, a conflict counts as a failure */

static void forget_items(Publisher *p) {
        json_object_put(TAKE_PTR(p->items));
        p->generation = 0;
}

/* Sets the timer for the next try, and forgets the slices: another API server may reply to the next try, so that try
 * reads them again. */
static void try_later(Publisher *p) {
        uint64_t usec = retry_usec(&p->delay);

        forget_items(p);
        json_object_put(TAKE_PTR(p->written));
        (void) agent_set_timer(p->timer, usec);
        (void) sd_notifyf(false, "STATUS=ResourceSlices are not current: see the journal. The next try is in %.1f s.",
                          (double) usec / SECOND);
}

/* The take_*() functions handle a reply. They return NULL, or what failed, to be logged after "Cannot". */

static const char *take_node(Publisher *p, const HttpReply *reply) {
        const char *uid = member_text(member(reply->document, "metadata"), "uid");

        return reply->status == 200 && uid && string_copy(&p->node_uid, uid) >= 0 ? NULL : "read the Node";
}

static const char *name_of(json_object *slice) {
        return member_text(member(slice, "metadata"), "name") ?: "";
}

static const char *address_of(json_object *device) {
        return member_text(member(member(device, "attributes"), "resource.kubernetes.io/pciBusID"), "string");
}

static bool is_wanted(const Publisher *p, const char *address) {
        for (size_t i = 0; address && i < json_length(p->wanted); i++)
                for (size_t k = 0; k < json_length(member(json_at(p->wanted, i), "devices")); k++)
                        if (streq_ptr(address_of(json_at(member(json_at(p->wanted, i), "devices"), k)), address))
                                return true;
        return false;
}

/* Warns once for each wanted device that another DRA driver also offers. */
static void tell_rival(Publisher *p, json_object *spec) {
        const char *driver = member_text(spec, "driver") ?: "";

        for (size_t i = 0; i < json_length(member(spec, "devices")); i++) {
                const char *address = address_of(json_at(member(spec, "devices"), i));
                char key[320];

                if (!is_wanted(p, address))
                        continue;
                (void) snprintf(key, sizeof(key), "%s %s", driver, address);
                if (json_object_object_get_ex(p->told, key, NULL))
                        continue;
                (void) json_object_object_add(p->told, key, NULL);
                log_warning("Driver %s publishes %s too: two claims can get it. Take it from one of both.",
                            QUOTABLE(driver), address);
        }
}

static const char *take_list(Publisher *p, const HttpReply *reply) {
        _cleanup_json_ json_object *items = json_object_new_object();
        json_object *list = member(reply->document, "items");

        if (reply->status != 200 || !json_object_is_type(list, json_type_array) || !items)
                return "read the ResourceSlices";
        for (size_t i = 0; i < json_length(list); i++) {
                if (!streq_ptr(member_text(member(json_at(list, i), "spec"), "driver"), KUBE_DRIVER)) {
                        tell_rival(p, member(json_at(list, i), "spec"));
                        continue;
                }
                slice_remove_times(json_at(list, i));
                if (!member_add(items, name_of(json_at(list, i)), json_object_get(json_at(list, i))))
                        return "read the ResourceSlices";
        }
        p->items = TAKE_PTR(items);
        return NULL;
}

/* Keeps the spec that was sent and the spec that the API server stored. Warns once for each member that the API server
 * dropped. Returns false when out of memory. */
static bool note_written(Publisher *p, const char *name, json_object *sent, json_object *kept) {
        _cleanup_json_ json_object *both = json_object_new_object(), *dropped = json_object_new_object();

        if (!p->written)
                p->written = json_object_new_object();
        if (!p->written || !dropped || !member_add(both, "sent", json_object_get(sent)) ||
            !member_add(both, "kept", json_object_get(kept)) || slices_dropped(sent, kept, dropped) < 0)
                return false;
        json_object_object_foreach(dropped, key, unused) {
                (void) unused;
                if (json_object_object_get_ex(p->told, key, NULL))
                        continue;
                log_warning("The API server leaves '%s' out of the ResourceSlices: turn on the feature of Kubernetes "
                            "that has it, see passthrough-dra(8), and reload passthrough-dra.",
                            QUOTABLE(key));
                if (json_object_object_add(p->told, key, NULL) < 0)
                        return false;
        }
        return member_add(p->written, name, TAKE_PTR(both));
}

static const char *take_written(Publisher *p, const HttpReply *reply) {
        _cleanup_json_ json_object *write = TAKE_PTR(p->write);
        const char *name = member_text(write, "name");
        json_object *sent = member(member(write, "body"), "spec"), *slice = reply->document;

        p->n_writes++;
        if (reply->status == 409 ||
            reply->status == 404) { /* 409: another program has changed the slice meanwhile; 404: removed it */
                forget_items(p);
                return p->n_writes > WRITES_MAX ? "write the ResourceSlices" : NULL;
        }
        if (reply->status / 100 != 2 || (sent && !streq(name_of(slice), name)))
                return "write a ResourceSlice";
        json_object_object_del(p->items, name);
        if (!sent)
                return NULL;
        slice_remove_times(slice);
        return note_written(p, name, sent, member(slice, "spec")) && member_add(p->items, name, json_object_get(slice))
                       ? NULL
                       : "write a ResourceSlice";
}

static void step(Manager *m);

static void on_reply(HttpReply *reply, void *userdata) {
        Manager *m = userdata;
        Publisher *p = &m->publisher;
        const char *failed = !p->node_uid ? take_node(p, reply)
                             : !p->items  ? take_list(p, reply)
                                          : take_written(p, reply);
        char sentence[512];

        p->is_busy = false;
        if (!failed) {
                step(m);
                return;
        }
        log_warning("Cannot %s: %s", failed, apiserver_reason(reply, sentence, sizeof(sentence)));
        try_later(p);
}

static void settle(Publisher *p) {
        int n = json_object_object_length(p->items);

        if (p->n_writes > 0)
                log_info("%u change%s of ResourceSlices; the node has %d.", p->n_writes, PLURAL(p->n_writes), n);
        p->generation = 0;
        p->n_writes = 0;
        p->delay = 0;
        (void) agent_set_timer(p->timer, p->kubelet_tries > 0 ? KUBELET_USEC : FULL_USEC - random_usec(FULL_USEC / 10));
        (void) sd_notifyf(false, "STATUS=%d ResourceSlice%s equal%s the node.", n, PLURAL(n), n == 1 ? "s" : "");
}

/* Starts the next request: reads the Node, then the slices, then makes one write at a time until the slices are as
 * wanted. */
static void step(Manager *m) {
        Publisher *p = &m->publisher;
        const char *method = "GET", *path;
        _cleanup_free_ char *text = NULL;
        int n;

        if (p->is_busy || !p->wanted)
                return;
        if (p->is_stale) {
                forget_items(p);
                /*
                 * A Node that was registered again has another UID. Kubernetes removes the slices of the former Node.
                 */
                free(TAKE_PTR(p->node_uid));
                p->is_stale = false;
        }
        json_object_put(TAKE_PTR(p->write));
        if (p->node_uid && p->items) {
                n = slices_difference(&(SliceOwner) { m->node, p->node_uid }, p->wanted, p->items, p->written,
                                      &p->generation, &p->write);
                if (n == 0) {
                        settle(p);
                        return;
                }
                method = member_text(p->write, "method");
                path = n > 0 ? member_text(p->write, "path") : NULL;
        } else if (p->node_uid)
                path = text = string_format(KUBE_SLICES_PATH "?fieldSelector=spec.nodeName%%3D%s", m->node);
        else
                path = text = string_format("/api/v1/nodes/%s", m->node);
        p->is_busy = path && apiserver_start(&m->api, method, path, member(p->write, "body"), on_reply, m, NULL) >= 0;
        if (!p->is_busy)
                try_later(p);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        m->publisher.kubelet_tries -= m->publisher.kubelet_tries > 0;
        m->publisher.is_stale = true;
        step(m);
        return 0;
}

void publisher_reread(Manager *m) {
        m->publisher.is_stale = true;
        json_object_put(TAKE_PTR(m->publisher.written));
        step(m);
}

void publisher_kubelet_started(Manager *m) {
        m->publisher.kubelet_tries = KUBELET_TRIES;
        publisher_reread(m);
}

void publisher_update(Manager *m) {
        _cleanup_json_ json_object *wanted = NULL;
        Publisher *p = &m->publisher;
        int r = m->facts.document ? slices_wanted(m->facts.document, &wanted) : 0;

        if (r < 0)
                log_error_errno(r, "Failed to make ResourceSlices of the document of passthroughd: %m");
        if (!wanted || json_object_equal(wanted, p->wanted))
                return;
        json_object_put(p->wanted);
        p->wanted = TAKE_PTR(wanted);
        /* After a failure the timer starts the next try. */
        if (p->delay == 0)
                step(m);
}

int publisher_init(Manager *m) {
        Publisher *p = &m->publisher;
        int r = agent_add_timer(m->event, &p->timer, on_timer, m);

        p->told = json_object_new_object();
        return r < 0 || !p->told ? log_error_errno(r < 0 ? r : -ENOMEM, "Failed to prepare ResourceSlices: %m") : 0;
}

void publisher_done(Publisher *p) {
        sd_event_source_disable_unref(p->timer);
        forget_items(p);
        json_object_put(p->wanted);
        json_object_put(p->written);
        json_object_put(p->told);
        json_object_put(p->write);
        free(p->node_uid);
}
