/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "claim.h"

#include <errno.h>
#include <stdio.h>

#include "agent/member.h"
#include "model/json-value.h"
#include "slices.h"

/* kubernetes/dynamic-resource-allocation, api/metadata/types.go: where containers find the files of KEP-5304. */
#define CONTAINER_DIRECTORY  "/var/run/kubernetes.io/dra-device-attributes"
/* kubernetes/api, resource/v1/types.go: PodResourceClaimAnnotation. Claims made of a template have it. */
#define POD_CLAIM_ANNOTATION "resource.kubernetes.io/pod-claim-name"

static size_t length(json_object *array) {
        return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

static bool append(json_object *array, json_object *value) {
        if (value && json_object_array_add(array, value) == 0)
                return true;
        (void) json_object_put(value);
        return false;
}

static bool add_text(json_object *o, const char *key, const char *value) {
        return member_add(o, key, json_object_new_string(value));
}

static json_object *device_at(json_object *record, size_t i) {
        return json_object_array_get_idx(member(record, "devices"), i);
}

/* Request names are DNS labels, with one more behind a slash where the claim has alternatives. */
static bool request_is_valid(const char *request) {
        char part[2 * NAMESPACE_SIZE];
        const char *slash = strchr(request, '/');

        if (strlen(request) >= sizeof(part))
                return false;
        (void) snprintf(part, sizeof(part), "%.*s", slash ? (int) (slash - request) : (int) strlen(request), request);
        return name_is_valid(part) && (!slash || name_is_valid(slash + 1));
}

/* The record */

static int add_device(json_object *devices, json_object *result, const char *node, char ret_sentence[static 1]) {
        const char *request = member_text(result, "request") ?: "", *device = member_text(result, "device") ?: "";
        json_object *o;

        if (!streq_ptr(member_text(result, "pool"), node)) {
                (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE, "The claim has a device of pool '%s', not of '%s'.",
                                QUOTABLE(member_text(result, "pool") ?: ""), node);
                return -EINVAL;
        }
        if (!request_is_valid(request) || !name_is_valid(device) || length(devices) == CLAIM_DEVICES_MAX) {
                (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE, "The allocation of the claim is not valid.");
                return -EINVAL;
        }
        o = json_object_new_object();
        return append(devices, o) && add_text(o, "request", request) && add_text(o, "device", device) ? 0 : -ENOMEM;
}

static json_object *new_record(json_object *metadata, const ClaimRef *ref, const char *node, json_object *devices) {
        const char *pod = member_text(member(metadata, "annotations"), POD_CLAIM_ANNOTATION);
        _cleanup_json_ json_object *o = json_object_new_object();

        return o && add_text(o, "namespace", ref->namespace) && add_text(o, "name", ref->name) &&
                               add_text(o, "uid", ref->uid) && add_text(o, "node", node) &&
                               (!pod || !name_is_valid(pod) || add_text(o, "podClaimName", pod)) &&
                               member_add(o, "devices", json_object_get(devices))
                       ? TAKE_PTR(o)
                       : NULL;
}

int claim_from_document(json_object *claim, const ClaimRef *ref, const char *node, json_object **ret,
                        char ret_sentence[static CLAIM_SENTENCE_SIZE]) {
        json_object *results = member(member(member(member(claim, "status"), "allocation"), "devices"), "results");
        _cleanup_json_ json_object *devices = json_object_new_array();
        json_object *metadata = member(claim, "metadata");

        if (!streq_ptr(member_text(metadata, "uid"), ref->uid))
                return -ENOENT;
        for (size_t i = 0; i < length(results); i++) {
                json_object *result = json_object_array_get_idx(results, i);
                int r;

                if (!streq_ptr(member_text(result, "driver"), KUBE_DRIVER))
                        continue;
                r = devices ? add_device(devices, result, node, ret_sentence) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        if (length(devices) == 0) {
                (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE, "The claim has no device of " KUBE_DRIVER ".");
                return -EINVAL;
        }
        *ret = new_record(metadata, ref, node, devices);
        return *ret ? 0 : -ENOMEM;
}

int claim_check_record(json_object *record, const char *uid) {
        json_object *devices = member(record, "devices");
        const char *pod = member_text(record, "podClaimName");

        if (!streq_ptr(member_text(record, "uid"), uid) || !member(record, "node") || !name_is_valid(member_text(record, "namespace") ?: "") ||
            !name_is_valid(member_text(record, "name") ?: "") || (pod && !name_is_valid(pod)) || length(devices) == 0 ||
            length(devices) > CLAIM_DEVICES_MAX)
                return -EBADMSG;
        for (size_t i = 0; i < length(devices); i++)
                if (!request_is_valid(member_text(device_at(record, i), "request") ?: "") ||
                    !name_is_valid(member_text(device_at(record, i), "device") ?: ""))
                        return -EBADMSG;
        return 0;
}

void claim_request_name(json_object *device, char ret[static NAME_SIZE]) {
        const char *request = member_text(device, "request");

        (void) snprintf(ret, NAME_SIZE, "%.*s", (int) strcspn(request, "/"), request);
}

bool claim_is_first(json_object *record, size_t i) {
        for (size_t k = 0; k < i; k++)
                if (streq(member_text(device_at(record, k), "request"), member_text(device_at(record, i), "request")))
                        return false;
        return true;
}

/* Files */

void claim_cdi_id(json_object *record, size_t i, char ret[static CLAIM_CDI_ID_SIZE]) {
        (void) snprintf(ret, CLAIM_CDI_ID_SIZE, KUBE_DRIVER "/claim=%s_%.40s", member_text(record, "uid"),
                        member_text(device_at(record, i), "device"));
}

char *claim_metadata_directory(json_object *record, const char *directory) {
        return string_format("%s/dra-device-metadata/%s", directory, member_text(record, "uid"));
}

char *claim_metadata_file(json_object *record, size_t i, const char *directory) {
        _cleanup_free_ char *own = claim_metadata_directory(record, directory);
        char request[NAME_SIZE];

        claim_request_name(device_at(record, i), request);
        return own ? string_format("%s/%s/metadata.json", own, request) : NULL;
}

static bool add_node(json_object *nodes, const char *path) {
        json_object *o = json_object_new_object();

        return append(nodes, o) && add_text(o, "path", path) && add_text(o, "permissions", "rw");
}

/* The mount of the metadata of a request. */
static bool add_mount(json_object *edits, json_object *record, size_t i, const char *directory) {
        const char *pod = member_text(record, "podClaimName");
        _cleanup_free_ char *host = claim_metadata_file(record, i, directory), *path = NULL;
        json_object *mounts = json_object_new_array(), *mount, *options;
        char request[NAME_SIZE];

        claim_request_name(device_at(record, i), request);
        path = string_format(CONTAINER_DIRECTORY "/%s/%s/%s/" KUBE_DRIVER "-metadata.json",
                             pod ? "resourceclaimtemplates" : "resourceclaims", pod ?: member_text(record, "name"),
                             request);
        if (!member_add(edits, "mounts", mounts) || !host || !path)
                return false;
        mount = json_object_new_object();
        options = json_object_new_array();
        return append(mounts, mount) && add_text(mount, "hostPath", host) && add_text(mount, "containerPath", path) &&
               member_add(mount, "options", options) && append(options, json_object_new_string("ro")) &&
               append(options, json_object_new_string("bind"));
}

/* Both nodes of VFIO: the group, and the container that groups are put into. */
static json_object *cdi_device(json_object *record, size_t i, const char *group, const char *directory) {
        _cleanup_json_ json_object *o = json_object_new_object();
        json_object *edits = json_object_new_object(), *nodes;
        char id[CLAIM_CDI_ID_SIZE], path[64];

        claim_cdi_id(record, i, id);
        (void) snprintf(path, sizeof(path), "/dev/vfio/%s", group);
        if (!o || !add_text(o, "name", strchr(id, '=') + 1) || !member_add(o, "containerEdits", edits))
                return NULL;
        nodes = json_object_new_array();
        return member_add(edits, "deviceNodes", nodes) && add_node(nodes, "/dev/vfio/vfio") && add_node(nodes, path) &&
                               (!claim_is_first(record, i) || add_mount(edits, record, i, directory))
                       ? TAKE_PTR(o)
                       : NULL;
}

int claim_cdi(json_object *record, json_object *document, const char *directory, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();
        json_object *devices = json_object_new_array();

        if (!o || !add_text(o, "cdiVersion", "0.5.0") || !add_text(o, "kind", KUBE_DRIVER "/claim") ||
            !member_add(o, "devices", devices))
                return -ENOMEM;
        for (size_t i = 0; i < length(member(record, "devices")); i++) {
                json_object *device = slice_find_device(document, member_text(device_at(record, i), "device"));
                const char *group = member_text(device, "iommu_group");

                if (!group)
                        return -ENOENT;
                if (!append(devices, cdi_device(record, i, group, directory)))
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(o);
        return 0;
}

static bool add_metadata_devices(json_object *devices, json_object *record, json_object *document,
                                 const char *request, const char *node) {
        for (size_t i = 0; i < length(member(record, "devices")); i++) {
                json_object *o, *device = device_at(record, i);
                const char *name = member_text(device, "device");

                if (!streq(member_text(device, "request"), request))
                        continue;
                o = json_object_new_object();
                if (!append(devices, o) || !add_text(o, "driver", KUBE_DRIVER) || !add_text(o, "pool", node) ||
                    !add_text(o, "name", name) ||
                    !member_add(o, "attributes", slice_attributes(document, slice_find_device(document, name))))
                        return false;
        }
        return true;
}

static json_object *metadata_object(json_object *record, json_object *document, const char *request) {
        _cleanup_json_ json_object *o = json_object_new_object();
        json_object *metadata = json_object_new_object(), *requests, *entry, *devices;

        if (!o || !add_text(o, "kind", "DeviceMetadata") || !member_add(o, "metadata", metadata) ||
            !add_text(metadata, "name", member_text(record, "name")) ||
            !add_text(metadata, "namespace", member_text(record, "namespace")) ||
            !add_text(metadata, "uid", member_text(record, "uid")) ||
            !member_add(metadata, "generation", json_object_new_int(1)) ||
            (member(record, "podClaimName") && !add_text(o, "podClaimName", member_text(record, "podClaimName"))))
                return NULL;
        requests = json_object_new_array();
        if (!member_add(o, "requests", requests))
                return NULL;
        entry = json_object_new_object();
        if (!append(requests, entry) || !add_text(entry, "name", request))
                return NULL;
        devices = json_object_new_array();
        return member_add(entry, "devices", devices) &&
                               add_metadata_devices(devices, record, document, request, member_text(record, "node"))
                       ? TAKE_PTR(o)
                       : NULL;
}

int claim_metadata(json_object *record, json_object *document, size_t i, char **ret) {
        /* KubeVirt 1.9 reads the second only (kubevirt/kubevirt, pkg/dra/metadata/types.go). */
        static const char *const versions[] = { "v1beta1", "v1alpha1" };
        _cleanup_json_ json_object *o =
                metadata_object(record, document, member_text(device_at(record, i), "request"));
        _cleanup_free_ char *text = NULL;

        for (size_t k = 0; k < ELEMENTSOF(versions); k++) {
                char version[64];
                _cleanup_free_ char *one = NULL;

                (void) snprintf(version, sizeof(version), "metadata.resource.k8s.io/%s", versions[k]);
                if (!o || !add_text(o, "apiVersion", version))
                        return -ENOMEM;
                one = json_text(o);
                if (!one || string_append(&text, "", "%s\n", one) < 0)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(text);
        return 0;
}
