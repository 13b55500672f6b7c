/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "claim.h"

#include <errno.h>
#include <stdio.h>

#include "guest/cdi.h"

/* The directory in a container with the metadata files of KEP-5304 (kubernetes/dynamic-resource-allocation,
 * api/metadata/types.go). */
#define CONTAINER_DIRECTORY  "/var/run/kubernetes.io/dra-device-attributes"
/* Kubernetes sets this annotation on a claim that it made from a template (kubernetes/api, resource/v1/types.go:
 * PodResourceClaimAnnotation). */
#define POD_CLAIM_ANNOTATION "resource.kubernetes.io/pod-claim-name"

static bool member_is_name(json_object *o, const char *key) {
        return name_is_valid(member_text(o, key) ?: "");
}

/* Returns true when an entry of the record's "devices" is valid. "request" is a name, or two names with a slash between
 * them: the request and the chosen alternative. */
static bool device_is_valid(json_object *device) {
        const char *request = member_text(device, "request") ?: "", *slash = strchr(request, '/');
        char main_part[NAME_SIZE];

        (void) snprintf(main_part, sizeof(main_part), "%.*s", (int) strcspn(request, "/"), request);
        return strlen(request) < sizeof(main_part) && name_is_valid(main_part) &&
               (!slash || name_is_valid(slash + 1)) && member_is_name(device, "device");
}

int claim_from_document(json_object *claim, const ClaimRef *ref, const char *node, json_object **ret,
                        char ret_sentence[static CLAIM_SENTENCE_SIZE]) {
        json_object *results = member(member(member(member(claim, "status"), "allocation"), "devices"), "results");
        json_object *metadata = member(claim, "metadata"), *annotations = member(metadata, "annotations");
        _cleanup_json_ json_object *record =
                json_format("{'namespace': '%s', 'name': '%s', 'uid': '%s', 'node': '%s', 'devices': []}",
                            ref->namespace, ref->name, ref->uid, node);

        if (!streq_ptr(member_text(metadata, "uid"), ref->uid))
                return -ENOENT;
        if (!record ||
            (member_is_name(annotations, POD_CLAIM_ANNOTATION) &&
             !member_add(record, "podClaimName", json_object_get(member(annotations, POD_CLAIM_ANNOTATION)))))
                return -ENOMEM;
        *ret_sentence = '\0';
        for (size_t i = 0; i < json_length(results) && !*ret_sentence; i++) {
                json_object *result = json_at(results, i), *device;
                const char *pool = member_text(result, "pool") ?: "";

                if (!streq_ptr(member_text(result, "driver"), KUBE_DRIVER))
                        continue;
                if (!streq(pool, node))
                        (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE,
                                        "The claim has a device of pool '%s', not of '%s'.", QUOTABLE(pool), node);
                if (json_object_get_boolean(member(result, "adminAccess")))
                        (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE,
                                        "The claim asks for adminAccess, which " KUBE_DRIVER
                                        " does not have: one claim "
                                        "has a device alone.");
                device = json_object_new_object();
                if (!json_append(member(record, "devices"), device) ||
                    json_object_object_add(device, "request", json_object_get(member(result, "request"))) < 0 ||
                    json_object_object_add(device, "device", json_object_get(member(result, "device"))) < 0)
                        return -ENOMEM;
        }
        if (!*ret_sentence && json_length(member(record, "devices")) == 0)
                (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE, "The claim has no device of " KUBE_DRIVER ".");
        else if (!*ret_sentence && claim_check_record(record, ref->uid) < 0)
                (void) snprintf(ret_sentence, CLAIM_SENTENCE_SIZE, "The allocation of the claim is not valid.");
        if (*ret_sentence)
                return -EINVAL;
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
        json_object *devices = member(record, "devices");
        size_t n = json_length(devices);

        if (!streq_ptr(member_text(record, "uid"), uid) || !member_is_name(record, "node") ||
            !member_is_name(record, "namespace") || !member_is_name(record, "name") ||
            (member(record, "podClaimName") && !member_is_name(record, "podClaimName")) || n == 0 ||
            n > CLAIM_DEVICES_MAX)
                return -EBADMSG;
        for (size_t i = 0; i < n; i++)
                if (!device_is_valid(json_at(devices, i)))
                        return -EBADMSG;
        return 0;
}

bool claim_of_allocation(json_object *allocation, ClaimRef *ret) {
        const char *name = member_text(allocation, "name") ?: "", *tag = member_text(allocation, "tag") ?: "";
        const char *slash = strchr(tag, '/'), *uid = member_text(allocation, "consumer") ?: "";

        if (strncmp(name, CLAIM_PREFIX, strlen(CLAIM_PREFIX)) != 0 || !streq(name + strlen(CLAIM_PREFIX), uid) ||
            !text_is_uuid(uid) || !slash || (size_t) (slash - tag) >= sizeof(ret->namespace) ||
            strlen(slash + 1) >= sizeof(ret->name))
                return false;
        (void) snprintf(ret->uid, sizeof(ret->uid), "%s", uid);
        (void) snprintf(ret->namespace, sizeof(ret->namespace), "%.*s", (int) (slash - tag), tag);
        (void) snprintf(ret->name, sizeof(ret->name), "%s", slash + 1);
        return name_is_valid(ret->namespace) && name_is_valid(ret->name);
}

const char *claim_device(json_object *record, size_t i) {
        return member_text(json_at(member(record, "devices"), i), "device");
}

static const char *request_of(json_object *record, size_t i) {
        return member_text(json_at(member(record, "devices"), i), "request");
}

void claim_request_name(json_object *record, size_t i, char ret[static NAME_SIZE]) {
        const char *request = request_of(record, i);

        (void) snprintf(ret, NAME_SIZE, "%.*s", (int) strcspn(request, "/"), request);
}

bool claim_is_first(json_object *record, size_t i) {
        for (size_t k = 0; k < i; k++)
                if (streq(request_of(record, k), request_of(record, i)))
                        return false;
        return true;
}

void claim_cdi_id(json_object *record, size_t i, char ret[static CLAIM_CDI_ID_SIZE]) {
        (void) snprintf(ret, CLAIM_CDI_ID_SIZE, KUBE_DRIVER "/claim=%s_%.40s", member_text(record, "uid"),
                        claim_device(record, i));
}

/* Adds the device nodes: for iommufd if the configuration has Iommufd=yes and the device has a VFIO character device,
 * else for the IOMMU group. All devices of a pod use the same kind, because a kernel has character devices for all
 * devices or for none. */
static int add_nodes(json_object *edits, json_object *document, json_object *device) {
        const char *cdev = member_text(device, "vfio_device");

        return cdev && streq_ptr(member_text(document, "iommufd"), "yes")
                       ? cdi_add_cdev(edits, cdev)
                       : cdi_add_group(edits, (int) member_number(device, "iommu_group"));
}

int claim_cdi(json_object *record, json_object *document, const char *metadata, json_object **ret) {
        const char *uid = member_text(record, "uid"), *pod = member_text(record, "podClaimName");
        _cleanup_json_ json_object *cdi = cdi_new(KUBE_DRIVER "/claim");

        for (size_t i = 0; i < json_length(member(record, "devices")); i++) {
                json_object *device = slice_find_device(document, claim_device(record, i)), *edits;
                _cleanup_free_ char *host = NULL, *path = NULL;
                char id[CLAIM_CDI_ID_SIZE], request[NAME_SIZE];

                if (!member(device, "iommu_group"))
                        return -ENOENT;
                claim_cdi_id(record, i, id);
                claim_request_name(record, i, request);
                host = string_format("%s/%s/%s/" CLAIM_METADATA_FILE, metadata, uid, request);
                path = string_format(CONTAINER_DIRECTORY "/%s/%s/%s/" KUBE_DRIVER "-metadata.json",
                                     pod ? "resourceclaimtemplates" : "resourceclaims",
                                     pod ?: member_text(record, "name"), request);
                edits = cdi ? cdi_add_device(cdi, strchr(id, '=') + 1) : NULL;
                if (!host || !path || !edits || add_nodes(edits, document, device) < 0 ||
                    (claim_is_first(record, i) && cdi_add_mount(edits, host, path) < 0))
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(cdi);
        return *ret ? 0 : -ENOMEM;
}

int claim_metadata(json_object *record, json_object *document, size_t i, char **ret) {
        /* KubeVirt 1.9 reads v1alpha1 only (kubevirt/kubevirt, pkg/dra/metadata/types.go). */
        static const char *const versions[] = { "v1beta1", "v1alpha1" };
        _cleanup_json_ json_object *o = json_format(
                "{'kind': 'DeviceMetadata', 'metadata': {'name': '%s', 'namespace': '%s', 'uid': '%s', 'generation': "
                "1}, 'requests': [{'name': '%s', 'devices': []}]}",
                member_text(record, "name"), member_text(record, "namespace"), member_text(record, "uid"),
                request_of(record, i));
        json_object *pod = member(record, "podClaimName"), *devices = member(member_at(o, "requests", 0), "devices");
        _cleanup_free_ char *text = NULL;

        if (!o || (pod && !member_add(o, "podClaimName", json_object_get(pod))))
                return -ENOMEM;
        for (size_t k = i; k < json_length(member(record, "devices")); k++) {
                json_object *device = slice_find_device(document, claim_device(record, k)), *one;

                if (!streq(request_of(record, k), request_of(record, i)))
                        continue;
                one = json_format("{'driver': '" KUBE_DRIVER "', 'pool': '%s', 'name': '%s'}",
                                  member_text(record, "node"), claim_device(record, k));
                if (!json_append(devices, one) || !member_add(one, "attributes", slice_attributes(document, device)))
                        return -ENOMEM;
        }
        for (size_t k = 0; k < ELEMENTSOF(versions); k++) {
                _cleanup_free_ char *one = NULL;

                if (!member_add(o, "apiVersion", json_format("'metadata.resource.k8s.io/%s'", versions[k])))
                        return -ENOMEM;
                one = json_text(o);
                if (!one || string_append(&text, "", "%s\n", one) < 0)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(text);
        return 0;
}
