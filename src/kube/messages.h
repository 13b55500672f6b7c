/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The messages between the kubelet and this driver, in the wire format of Protocol Buffers
 * (protobuf.dev/programming-guides/encoding): a message is a sequence of fields, each with a number and a type. The
 * numbers are those of kubernetes/kubernetes 1.36 below staging/src/k8s.io/kubelet/pkg/apis:
 * pluginregistration/v1/api.proto, dra/v1/api.proto, dra-health/v1alpha1/api.proto and dra-health/v1/api.proto. Pure.
 * Reading never exceeds the given bytes, even if they are no message.
 */

#include "util/strings.h"

/* A message that is being written. Out of memory sets is_failed, and later calls write nothing. */
typedef struct WireBuffer {
        uint8_t *data;
        size_t size, capacity;
        bool is_failed;
} WireBuffer;

void wire_done(WireBuffer *b);
void wire_append(WireBuffer *b, const void *data, size_t size);
/* Write a field, unless its value is 0, "" or NULL: proto3 leaves out such fields. */
void wire_put_number(WireBuffer *b, uint32_t number, uint64_t value);
void wire_put_text(WireBuffer *b, uint32_t number, const char *text);
/* Writes a nested message as a field, even if the message is empty. */
void wire_put_message(WireBuffer *b, uint32_t number, const WireBuffer *message);

#define CLAIMS_MAX 64U /* the most claims of a call; the kubelet sends the claims of one pod in a call */

/* Sizes of the longest names that Kubernetes permits, with the NUL: a DNS label for a namespace, a DNS subdomain for a
 * claim. */
#define NAMESPACE_SIZE 64U
#define NAME_SIZE      254U

typedef struct ClaimRef {
        char namespace[NAMESPACE_SIZE], uid[UUID_STRING_MAX], name[NAME_SIZE];
} ClaimRef;

/* Returns true when the name has only lower-case letters, digits, '-' and '.', and a letter or digit at both ends. Such
 * a name is safe in a URL and in a file name. */
bool name_is_valid(const char *name);

/* Parses a NodePrepareResourcesRequest or NodeUnprepareResourcesRequest. 0, -EBADMSG for bytes that are no such
 * message, -EINVAL for names that Kubernetes does not allow, -E2BIG for more than CLAIMS_MAX claims, or -ENOMEM. The
 * caller frees *ret. */
int message_parse_claims(const uint8_t *data, size_t size, ClaimRef **ret, size_t *ret_n);
/* Parses a RegistrationStatus. error: the kubelet's message, cut to error_size - 1 bytes; "" if there is none. 0 or
 * -EBADMSG. */
int message_parse_status(const uint8_t *data, size_t size, bool *ret_registered, char *error, size_t error_size);

/* Writes a Device of dra/v1/api.proto. */
void message_put_device(WireBuffer *b, const char *request, const char *pool, const char *device, const char *cdi_id);
/* Writes the result for one claim. devices: the output of message_put_device(), for a NodePrepareResourcesResponse;
 * NULL for a NodeUnprepareResourcesResponse. error: NULL or "" for success. */
void message_put_claim(WireBuffer *b, const char *uid, const WireBuffer *devices, const char *error);

/* Writes a PluginInfo; versions ends with NULL. */
void message_put_plugin_info(WireBuffer *b, const char *type, const char *name, const char *endpoint,
                             const char *const *versions);

typedef enum HealthStatus {
        HEALTH_UNKNOWN,
        HEALTH_HEALTHY,
        HEALTH_UNHEALTHY,
} HealthStatus;

/* Writes a device of NodeWatchResourcesResponse. message: why the device is not healthy, or NULL. v1alpha1 does not
 * have this field. */
void message_put_health(WireBuffer *b, const char *pool, const char *device, HealthStatus health, uint64_t seconds,
                        const char *message);
