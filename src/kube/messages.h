/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The messages between the kubelet and this driver. The numbers of their fields are those of kubernetes/kubernetes 1.36
 * below staging/src/k8s.io/kubelet/pkg/apis: pluginregistration/v1/api.proto, dra/v1/api.proto,
 * dra-health/v1alpha1/api.proto and dra-health/v1/api.proto. Pure.
 */

#include "util/strings.h"
#include "wire.h"

#define CLAIMS_MAX 64U /* of a call: the kubelet sends those of a pod */

/* The largest names that Kubernetes permits: a DNS label for a namespace, a DNS subdomain for a claim. */
#define NAMESPACE_SIZE 64U
#define NAME_SIZE      254U

typedef struct ClaimRef {
        char namespace[NAMESPACE_SIZE], uid[UUID_STRING_MAX], name[NAME_SIZE];
} ClaimRef;

/* Lower-case letters, digits, '-' and '.', with a letter or digit at both ends: fit for a URL and for a file name. */
bool name_is_valid(const char *name);

/* NodePrepareResourcesRequest and NodeUnprepareResourcesRequest. 0, -EBADMSG for bytes that are no such message,
 * -EINVAL for names that Kubernetes does not give, -E2BIG for too many claims, or -ENOMEM. The caller frees. */
int message_parse_claims(const uint8_t *data, size_t size, ClaimRef **ret, size_t *ret_n);

/* Device of dra/v1. */
typedef struct MessageDevice {
        const char *request, *pool, *device, *cdi_id;
} MessageDevice;

/* A claim of NodePrepareResourcesResponse; error: NULL or "" for none. */
void message_put_prepared(WireBuffer *b, const char *uid, const MessageDevice *devices, size_t n, const char *error);
/* A claim of NodeUnprepareResourcesResponse. */
void message_put_unprepared(WireBuffer *b, const char *uid, const char *error);

/* PluginInfo; versions ends with NULL. */
void message_put_plugin_info(WireBuffer *b, const char *type, const char *name, const char *endpoint,
                             const char *const *versions);
/* RegistrationStatus. 0 or -EBADMSG. The error is cut to fit. */
int message_parse_status(const uint8_t *data, size_t size, bool *ret_registered, char *error, size_t error_size);

typedef enum HealthStatus {
        HEALTH_UNKNOWN,
        HEALTH_HEALTHY,
        HEALTH_UNHEALTHY,
} HealthStatus;

/* A device of NodeWatchResourcesResponse. v1alpha1 has no message: NULL. */
void message_put_health(WireBuffer *b, const char *pool, const char *device, HealthStatus health, uint64_t seconds,
                        const char *message);
