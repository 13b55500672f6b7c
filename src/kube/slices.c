/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "slices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "model/inventory.h"

#define PATH_SIZE 1024U /* for the path of a device in sysfs, about 13 bytes for each bus; a longer path is cut off */

void slice_device_name(const char *address, char ret[static DEVICE_NAME_SIZE]) {
        (void) snprintf(ret, DEVICE_NAME_SIZE, "pci-%s", address);
        for (char *c = ret; *c; c++)
                if (*c == ':' || *c == '.')
                        *c = '-';
}

json_object *slice_find_device(json_object *document, const char *name) {
        json_object *devices = member(document, "devices");

        for (size_t i = 0; i < json_length(devices); i++) {
                char own[DEVICE_NAME_SIZE];

                slice_device_name(member_text(json_at(devices, i), "address") ?: "", own);
                if (streq(own, name))
                        return json_at(devices, i);
        }
        return NULL;
}

static json_object *find_pool(json_object *document, const char *name) {
        return name ? json_find(member(document, "pools"), "name", name) : NULL;
}

bool slice_has_pool(json_object *document, const char *pool) {
        return streq_ptr(member_text(find_pool(document, pool), "scheduler"), "kubernetes");
}

static bool add_text(json_object *attributes, const char *name, const char *value) {
        json_object *o;

        if (!value)
                return true;
        o = json_object_new_object();
        return member_add(attributes, name, o) &&
               member_add(o, "string", json_object_new_string_len(value, (int) text_prefix(value, ATTRIBUTE_SIZE - 1)));
}

static bool add_number(json_object *attributes, const char *name, json_object *value) {
        return !value || member_add(attributes, name, json_format("{'int': %s}", json_object_get_string(value)));
}

/* Adds the device's place in the PCI tree: the root and, below a switch, the upstream port of the nearest switch. The
 * path must be the root, a root port, an upstream and a downstream port for each switch, and the device. Other devices
 * may precede the root. */
static bool add_place(json_object *attributes, const char *path) {
        char text[PATH_SIZE];
        const char *root;
        size_t end, n = 0;

        (void) snprintf(text, sizeof(text), "%s", path ?: "");
        end = pci_path_host_length(text);
        if (end == 0)
                return true;
        for (const char *c = text + end; *c; c++)
                n += *c == '/';
        for (int i = 0; n >= 4 && i < 2; i++) /* cuts off the device and the downstream port above it */
                *strrchr(text, '/') = '\0';
        if (n >= 4 && !add_text(attributes, "switch", strrchr(text, '/') + 1))
                return false;
        text[end] = '\0';
        root = strrchr(text, '/');
        return add_text(attributes, "resource.kubernetes.io/pcieRoot", root ? root + 1 : text);
}

static bool add_link(json_object *attributes, json_object *link) {
        char text[32];

        if (!member(link, "max_generation") || !member(link, "max_width"))
                return true;
        (void) snprintf(text, sizeof(text), "gen%dx%d", (int) member_number(link, "max_generation"),
                        (int) member_number(link, "max_width"));
        return add_text(attributes, "link", text);
}

/* Adds an attribute "partitionN" for each size N of the configured NVLink partitions that have the GPU: the id of the
 * partition of N GPUs. */
static bool add_partitions(json_object *attributes, json_object *document, json_object *device) {
        json_object *partitions = member(document, "partitions"), *module = member(device, "module");
        char name[32];

        for (size_t i = 0; module && i < json_length(partitions); i++) {
                json_object *p = json_at(partitions, i), *modules = member(p, "modules");

                (void) snprintf(name, sizeof(name), "partition%zu", json_length(modules));
                for (size_t k = 0; k < json_length(modules); k++)
                        if (json_object_equal(json_at(modules, k), module) &&
                            !add_number(attributes, name, member(p, "id")))
                                return false;
        }
        return true;
}

json_object *slice_attributes(json_object *document, json_object *device) {
        const char *pool = member_text(device, "pool");
        _cleanup_json_ json_object *o =
                json_format("{'isVF': {'bool': %s}}", streq_ptr(member_text(device, "type"), "vf") ? "true" : "false");

        return o && add_text(o, "resource.kubernetes.io/pciBusID", member_text(device, "address")) &&
                               add_place(o, member_text(device, "path")) && add_text(o, "pool", pool) &&
                               add_text(o, "model", member_text(device, "name")) &&
                               add_text(o, "vgpuType", member_text(find_pool(document, pool), "vgpu_type")) &&
                               add_number(o, "numaNode", member(device, "numa_node")) &&
                               add_number(o, "iommuGroup", member(device, "iommu_group")) &&
                               add_link(o, member(device, "link")) && add_partitions(o, document, device)
                       ? TAKE_PTR(o)
                       : NULL;
}

static bool is_vgpu(json_object *document, json_object *device) {
        return member_text(find_pool(document, member_text(device, "pool")), "vgpu_type") &&
               member(device, "physical_function");
}

/* Returns true when the device is allocated to a claim of Kubernetes: the name of the allocation is CLAIM_PREFIX and
 * its consumer, which is the UID of the claim. */
static bool is_claimed(json_object *document, json_object *device) {
        const char *name = member_text(device, "allocation");
        const char *consumer = member_text(json_find(member(document, "allocations"), "name", name), "consumer");

        return name && consumer && strncmp(name, CLAIM_PREFIX, strlen(CLAIM_PREFIX)) == 0 &&
               streq(name + strlen(CLAIM_PREFIX), consumer);
}

static bool add_taint(json_object *o, const char *key, const char *value) {
        return member_add(
                o, "taints",
                json_format("[{'key': '" KUBE_DRIVER "/%s', 'value': '%s', 'effect': 'NoSchedule'}]", key, value));
}

/* Adds a taint to a device that is out of service or allocated outside of Kubernetes, so that the scheduler skips it. A
 * vGPU that its GPU has no room for needs no taint: the GPU's counter already excludes it. */
static bool add_taints(json_object *o, json_object *document, json_object *device) {
        const char *state = member_text(device, "state") ?: "", *verdict = member_text(device, "verdict") ?: "none";

        if (member(device, "fault"))
                return add_taint(o, "out-of-service", "fault");
        if (streq(state, "available") || (streq(verdict, "no-vgpu") && is_vgpu(document, device)))
                return true;
        if (!streq(state, "allocated") && !streq(state, "reserved"))
                return add_taint(o, "out-of-service", streq(verdict, "none") ? state : verdict);
        return is_claimed(document, device) || add_taint(o, "in-use", "allocation");
}

HealthStatus slice_health(json_object *device, const char **ret_reason) {
        const char *state = member_text(device, "state") ?: "";
        const char *fault = member_text(device, "fault");

        *ret_reason = fault ?: member_text(device, "reason");
        if (!fault && (streq(state, "available") || streq(state, "allocated") || streq(state, "reserved"))) {
                *ret_reason = NULL;
                return HEALTH_HEALTHY;
        }
        return streq(state, "host") ? HEALTH_UNKNOWN : HEALTH_UNHEALTHY;
}

json_object *slice_devices(json_object *document) {
        _cleanup_json_ json_object *groups = json_object_new_object(), *found = json_object_new_array();
        json_object *devices = member(document, "devices");

        for (size_t i = 0; i < json_length(devices); i++) {
                json_object *device = json_at(devices, i);
                const char *group = member_text(device, "iommu_group");

                /* A pod cannot use a mediated device: its IOMMU group is another one than its GPU's, and the document
                 * does not have it. */
                if (!member_text(device, "address") || !slice_has_pool(document, member_text(device, "pool")) ||
                    json_object_get_boolean(member(member(device, "vgpu"), "mediated")) ||
                    (group && json_object_object_get_ex(groups, group, NULL)))
                        continue;
                if ((group && json_object_object_add(groups, group, NULL) < 0) ||
                    !json_append(found, json_object_get(device)))
                        return NULL;
        }
        return TAKE_PTR(found);
}

static json_object *wanted_device(json_object *document, json_object *device) {
        _cleanup_json_ json_object *o = NULL;
        char name[DEVICE_NAME_SIZE];

        slice_device_name(member_text(device, "address"), name);
        o = json_format("{'name': '%s'}", name);
        if (!o || !member_add(o, "attributes", slice_attributes(document, device)) || !add_taints(o, document, device))
                return NULL;
        if (!is_vgpu(document, device))
                return TAKE_PTR(o);
        slice_device_name(member_text(device, "physical_function"), name);
        return member_add(o, "consumesCounters",
                          json_format("[{'counterSet': '%s', 'counters': {'slots': {'value': '1'}}}]", name))
                       ? TAKE_PTR(o)
                       : NULL;
}

/* Returns the array `key` of the last slice. Appends a new slice first if the last slice has no such array, or if the
 * array has max elements. NULL when out of memory. */
static json_object *room_for(json_object *slices, const char *key, size_t max) {
        size_t n = json_length(slices);
        json_object *slice = n > 0 ? json_at(slices, n - 1) : NULL, *array = member(slice, key);

        if (array && json_length(array) < max)
                return array;
        slice = json_object_new_object();
        array = json_object_new_array();
        return json_append(slices, slice) && member_add(slice, key, array) ? array : NULL;
}

int slices_wanted(json_object *document, json_object **ret) {
        _cleanup_json_ json_object *slices = json_object_new_array(), *counts = json_object_new_object(),
                                   *devices = slice_devices(document);

        if (!member_array(document, "devices") || !member_array(document, "pools"))
                return -EBADMSG;
        if (!slices || !counts || !devices)
                return -ENOMEM;
        for (size_t i = 0; i < json_length(devices); i++) {
                json_object *device = json_at(devices, i);
                json_object *array = room_for(slices, "devices", SLICE_DEVICES_MAX);
                const char *pf = member_text(device, "physical_function");
                /* The counter of a GPU is the number of vGPUs that claims can have: its available VFs, and the VFs that
                 * claims have now. */
                int room = json_object_get_int(member(counts, pf ?: "")) +
                           (streq_ptr(member_text(device, "state"), "available") || is_claimed(document, device));

                if (!array || !json_append(array, wanted_device(document, device)) ||
                    (is_vgpu(document, device) && json_object_object_add(counts, pf, json_object_new_int(room)) < 0))
                        return -ENOMEM;
        }
        json_object_object_foreach(counts, pf, room) {
                json_object *array = room_for(slices, "sharedCounters", SLICE_COUNTERS_MAX);
                char name[DEVICE_NAME_SIZE];

                slice_device_name(pf, name);
                if (!array || !json_append(array, json_format("{'name': '%s', 'counters': {'slots': {'value': '%s'}}}",
                                                              name, json_object_get_string(room))))
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(slices);
        return 0;
}

/* Makes the slice to be sent. item: the present slice of the API server; NULL if there is none. */
static json_object *make_slice(const SliceOwner *owner, const char *name, json_object *part, size_t count,
                               int64_t generation, json_object *item) {
        json_object *version = member(member(item, "metadata"), "resourceVersion");
        _cleanup_json_ json_object *o = json_format(
                "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceSlice', 'metadata': {'name': '%s', "
                "'ownerReferences': [{'apiVersion': 'v1', 'kind': 'Node', 'name': '%s', 'uid': '%s', 'controller': "
                "true}]}, 'spec': {'driver': '" KUBE_DRIVER "', 'nodeName': '%s', 'pool': {'name': '%s', "
                "'resourceSliceCount': %zu, 'generation': %" PRId64 "}}}",
                name, owner->node, owner->node_uid, owner->node, owner->node, count, generation);

        if (!o || (version && !member_add(member(o, "metadata"), "resourceVersion", json_object_get(version))))
                return NULL;
        json_object_object_foreach(part, key, value) {
                if (!member_add(member(o, "spec"), key, json_object_get(value)))
                        return NULL;
        }
        return TAKE_PTR(o);
}

void slice_remove_times(json_object *slice) {
        json_object *devices = member(member(slice, "spec"), "devices");

        for (size_t i = 0; i < json_length(devices); i++) {
                json_object *taints = member(json_at(devices, i), "taints");

                for (size_t k = 0; k < json_length(taints); k++)
                        json_object_object_del(json_at(taints, k), "timeAdded");
        }
}

/* Sets *ret to this write, unless *ret is an earlier write. body: the slice; NULL to remove it. Returns false when out
 * of memory. */
static bool note_write(json_object **ret, const char *method, const char *name, json_object *body) {
        bool is_new = streq(method, "POST");

        if (*ret)
                return true;
        *ret = json_format("{'name': '%s', 'method': '%s', 'path': '" KUBE_SLICES_PATH "%s%s'}", name, method,
                           is_new ? "" : "/", is_new ? "" : name);
        return *ret && (!body || member_add(*ret, "body", json_object_get(body)));
}

static int find_writes(const SliceOwner *owner, json_object *wanted, json_object *items, json_object *written,
                       int64_t generation, json_object **ret) {
        _cleanup_json_ json_object *names = json_object_new_object();
        size_t n = json_length(wanted);
        int n_writes = 0;

        for (size_t i = 0; i < n; i++) {
                _cleanup_json_ json_object *slice = NULL;
                json_object *item, *spec, *have;
                char name[300];

                (void) snprintf(name, sizeof(name), "%s-" KUBE_DRIVER "-%zu", owner->node, i);
                item = member(items, name);
                slice = make_slice(owner, name, json_at(wanted, i), n, generation, item);
                if (!slice || !names || json_object_object_add(names, name, NULL) < 0)
                        return -ENOMEM;
                spec = member(slice, "spec");
                have = member(item, "spec");
                if (json_object_equal(have, spec) || (json_object_equal(member(member(written, name), "sent"), spec) &&
                                                      json_object_equal(member(member(written, name), "kept"), have)))
                        continue;
                n_writes++;
                if (!note_write(ret, item ? "PUT" : "POST", name, slice))
                        return -ENOMEM;
        }
        /* Remove slices of the API server that are no longer wanted. */
        json_object_object_foreach(items, name, item) {
                (void) item;
                if (json_object_object_get_ex(names, name, NULL))
                        continue;
                n_writes++;
                if (!note_write(ret, "DELETE", name, NULL))
                        return -ENOMEM;
        }
        return n_writes;
}

int slices_difference(const SliceOwner *owner, json_object *wanted, json_object *items, json_object *written,
                      int64_t *generation, json_object **ret) {
        int64_t last = 0;
        int n;

        json_object_object_foreach(items, name, item) {
                (void) name;
                last = MAX(last, member_number(member(member(item, "spec"), "pool"), "generation"));
        }
        n = find_writes(owner, wanted, items, written, *generation ?: MAX(last, INT64_C(1)), ret);
        if (n < 0 || *generation > 0)
                return n;
        *generation = n > 1 ? last + 1 : MAX(last, INT64_C(1));
        if (n <= 1)
                return n;
        json_object_put(TAKE_PTR(*ret));
        return find_writes(owner, wanted, items, written, *generation, ret);
}

int slices_dropped(json_object *sent, json_object *kept, json_object *dropped) {
        for (size_t i = 0; i < json_length(sent); i++)
                if (slices_dropped(json_at(sent, i), json_at(kept, i), dropped) < 0)
                        return -ENOMEM;
        if (!json_object_is_type(sent, json_type_object))
                return 0;
        json_object_object_foreach(sent, key, value) {
                json_object *other = NULL;
                int r = json_object_object_get_ex(kept, key, &other) ? slices_dropped(value, other, dropped)
                                                                     : json_object_object_add(dropped, key, NULL);

                if (r < 0)
                        return -ENOMEM;
        }
        return 0;
}
