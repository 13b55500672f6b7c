/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "claim.h"

#include <errno.h>
#include <stdio.h>

#include "guest/cdi.h"
#include "json.h"
#include "slices.h"

/* kubernetes/dynamic-resource-allocation, api/metadata/types.go: where containers find the files of KEP-5304. */
#define CONTAINER_DIRECTORY  "/var/run/kubernetes.io/dra-device-attributes"
/* kubernetes/api, resource/v1/types.go: PodResourceClaimAnnotation. Claims made of a template have it. */
#define POD_CLAIM_ANNOTATION "resource.kubernetes.io/pod-claim-name"

static json_object *device_at(json_object *record, size_t i) {
        return json_object_array_get_idx(member(record, "devices"), i);
}

static bool member_is_name(json_object *o, const char *key) {
        return name_is_valid(member_text(o, key) ?: "");
}

/* Request names are DNS labels, with one more behind a slash where the claim has alternatives. */
static bool device_is_valid(json_object *device) {
        const char *request = member_text(device, "request") ?: "", *slash = strchr(request, '/');
        char main_part[NAME_SIZE];

        (void) snprintf(main_part, sizeof(main_part), "%.*s", (int) strcspn(request, "/"), request);
        return strlen(request) < sizeof(main_part) && name_is_valid(main_part) &&
               (!slash || name_is_valid(slash + 1)) && member_is_name(device, "device");
}

/* The record */

static int add_device(json_object *devices, json_object *result, const char *node,
                      char ret_sentence[static CLAIM_SENTENCE_SIZE]) {
        if (!streq_ptr(member_text(result, "pool"), node)) {
                (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE, "The claim has a device of pool '%s', not of '%s'.",
                                QUOTABLE(member_text(result, "pool") ?: ""), node);
                return -EINVAL;
        }
        if (json_object_get_boolean(member(result, "adminAccess"))) {
                (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE,
                                "The claim asks for adminAccess, which " KUBE_DRIVER " does not have: one claim has a "
                                "device alone.");
                return -EINVAL;
        }
        if (!device_is_valid(result) || json_length(devices) == CLAIM_DEVICES_MAX) {
                (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE, "The allocation of the claim is not valid.");
                return -EINVAL;
        }
        return json_append(devices, json_format("{'request': '%s', 'device': '%s'}", member_text(result, "request"),
                                                member_text(result, "device")))
                       ? 0
                       : -ENOMEM;
}

int claim_from_document(json_object *claim, const ClaimRef *ref, const char *node, json_object **ret,
                        char ret_sentence[static CLAIM_SENTENCE_SIZE]) {
        json_object *results = member(member(member(member(claim, "status"), "allocation"), "devices"), "results");
        json_object *metadata = member(claim, "metadata"), *annotations = member(metadata, "annotations"), *devices;
        _cleanup_json_ json_object *record =
                json_format("{'namespace': '%s', 'name': '%s', 'uid': '%s', 'node': '%s', 'devices': []}",
                            ref->namespace, ref->name, ref->uid, node);

        if (!streq_ptr(member_text(metadata, "uid"), ref->uid))
                return -ENOENT;
        if (!record ||
            (member_is_name(annotations, POD_CLAIM_ANNOTATION) &&
             !member_add(record, "podClaimName", json_object_get(member(annotations, POD_CLAIM_ANNOTATION)))))
                return -ENOMEM;
        devices = member(record, "devices");
        for (size_t i = 0; i < json_length(results); i++) {
                json_object *result = json_object_array_get_idx(results, i);
                int r = streq_ptr(member_text(result, "driver"), KUBE_DRIVER)
                                ? add_device(devices, result, node, ret_sentence)
                                : 0;

                if (r < 0)
                        return r;
        }
        if (json_length(devices) == 0) {
                (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE, "The claim has no device of " KUBE_DRIVER ".");
                return -EINVAL;
        }
        *ret = TAKE_PTR(record);
        return 0;
}

bool claim_has_gone(int status, json_object *reply, const ClaimRef *ref) {
        const char *kind = member_text(reply, "kind"), *uid = member_text(member(reply, "metadata"), "uid");
        json_object *details = member(reply, "details");

        if (status == 404)
                return streq_ptr(kind, "Status") && streq_ptr(member_text(reply, "reason"), "NotFound") &&
                       streq_ptr(member_text(details, "kind"), "resourceclaims") &&
                       streq_ptr(member_text(details, "name"), ref->name);
        return status == 200 && streq_ptr(kind, "ResourceClaim") && uid &&
               (!streq(uid, ref->uid) || !member(member(reply, "status"), "allocation"));
}

int claim_check_record(json_object *record, const char *uid) {
        size_t n = json_length(member(record, "devices"));

        if (!streq_ptr(member_text(record, "uid"), uid) || !member_is_name(record, "node") ||
            !member_is_name(record, "namespace") || !member_is_name(record, "name") ||
            (member(record, "podClaimName") && !member_is_name(record, "podClaimName")) || n == 0 ||
            n > CLAIM_DEVICES_MAX)
                return -EBADMSG;
        for (size_t i = 0; i < n; i++)
                if (!device_is_valid(device_at(record, i)))
                        return -EBADMSG;
        return 0;
}

void claim_request_name(json_object *record, size_t i, char ret[static NAME_SIZE]) {
        const char *request = member_text(device_at(record, i), "request");

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

char *claim_metadata_directory(json_object *record, size_t i, const char *directory) {
        char request[NAME_SIZE];

        claim_request_name(record, i, request);
        return string_format("%s/" CLAIM_METADATA "/%s/%s", directory, member_text(record, "uid"), request);
}

static int add_mount(json_object *edits, json_object *record, size_t i, const char *directory) {
        _cleanup_free_ char *own = claim_metadata_directory(record, i, directory), *host = NULL, *path = NULL;
        const char *pod = member_text(record, "podClaimName");
        char request[NAME_SIZE];

        claim_request_name(record, i, request);
        host = own ? string_format("%s/" CLAIM_METADATA_FILE, own) : NULL;
        path = string_format(CONTAINER_DIRECTORY "/%s/%s/%s/" KUBE_DRIVER "-metadata.json",
                             pod ? "resourceclaimtemplates" : "resourceclaims", pod ?: member_text(record, "name"),
                             request);
        return host && path ? cdi_add_mount(edits, host, path) : -ENOMEM;
}

/* All devices of a pod have the same: a kernel has VFIO character devices for all or for none. */
static int add_nodes(json_object *edits, json_object *document, json_object *device) {
        const char *cdev = member_text(device, "vfio_device");

        return cdev && streq_ptr(member_text(document, "iommufd"), "yes")
                       ? cdi_add_cdev(edits, cdev)
                       : cdi_add_group(edits, json_object_get_int(member(device, "iommu_group")));
}

int claim_cdi(json_object *record, json_object *document, const char *directory, json_object **ret) {
        _cleanup_json_ json_object *cdi = cdi_new(KUBE_DRIVER "/claim");

        for (size_t i = 0; i < json_length(member(record, "devices")); i++) {
                json_object *device = slice_find_device(document, member_text(device_at(record, i), "device")), *edits;
                char id[CLAIM_CDI_ID_SIZE];

                if (!member(device, "iommu_group"))
                        return -ENOENT;
                claim_cdi_id(record, i, id);
                edits = cdi ? cdi_add_device(cdi, strchr(id, '=') + 1) : NULL;
                if (!edits || add_nodes(edits, document, device) < 0 ||
                    (claim_is_first(record, i) && add_mount(edits, record, i, directory) < 0))
                        return -ENOMEM;
        }
        if (!cdi)
                return -ENOMEM;
        *ret = TAKE_PTR(cdi);
        return 0;
}

/* The devices of the request of device i. */
static bool add_metadata_devices(json_object *devices, json_object *record, json_object *document, size_t i) {
        for (size_t k = i; k < json_length(member(record, "devices")); k++) {
                const char *name = member_text(device_at(record, k), "device");
                json_object *o;

                if (!json_object_equal(member(device_at(record, k), "request"),
                                       member(device_at(record, i), "request")))
                        continue;
                o = json_format("{'driver': '" KUBE_DRIVER "', 'pool': '%s', 'name': '%s'}",
                                member_text(record, "node"), name);
                if (!json_append(devices, o) ||
                    !member_add(o, "attributes", slice_attributes(document, slice_find_device(document, name))))
                        return false;
        }
        return true;
}

int claim_metadata(json_object *record, json_object *document, size_t i, char **ret) {
        /* KubeVirt 1.9 reads the second only (kubevirt/kubevirt, pkg/dra/metadata/types.go). */
        static const char *const versions[] = { "v1beta1", "v1alpha1" };
        _cleanup_json_ json_object *o = json_format(
                "{'kind': 'DeviceMetadata', 'metadata': {'name': '%s', 'namespace': '%s', 'uid': '%s', 'generation': "
                "1}, 'requests': [{'name': '%s', 'devices': []}]}",
                member_text(record, "name"), member_text(record, "namespace"), member_text(record, "uid"),
                member_text(device_at(record, i), "request"));
        _cleanup_free_ char *text = NULL;
        json_object *pod = member(record, "podClaimName");

        if (!o || (pod && !member_add(o, "podClaimName", json_object_get(pod))) ||
            !add_metadata_devices(member(member_first(o, "requests"), "devices"), record, document, i))
                return -ENOMEM;
        for (size_t k = 0; k < ELEMENTSOF(versions); k++) {
                _cleanup_free_ char *version = string_format("metadata.resource.k8s.io/%s", versions[k]), *one = NULL;

                if (!version || !member_add(o, "apiVersion", json_object_new_string(version)))
                        return -ENOMEM;
                one = json_text(o);
                if (!one || string_append(&text, "", "%s\n", one) < 0)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(text);
        return 0;
}
