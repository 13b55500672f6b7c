/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * ResourceSlices of this node: makes the wanted slices from the daemon's document, and compares them with those of the
 * API server. Limits and names are those of kubernetes/api, resource/v1/types.go. Pure.
 */

#include "messages.h"
#include "model/json-value.h"

#define KUBE_DRIVER      "passthroughd.org"
#define KUBE_SLICES_PATH "/apis/resource.k8s.io/v1/resourceslices"
#define CLAIM_PREFIX     "claim-" /* the name of a claim's allocation is this prefix and the claim's UID */

/* ResourceSliceMaxDevicesWithAdvancedFeatures, the limit for slices with taints or counters. Here it applies to all
 * slices, so that a device stays in its slice when a taint is added. */
#define SLICE_DEVICES_MAX  64U
/* ResourceSliceMaxCounterSets */
#define SLICE_COUNTERS_MAX 8U
/* DeviceAttributeMaxValueLength, and a NUL */
#define ATTRIBUTE_SIZE     65U

#define DEVICE_NAME_SIZE 24U
/* Formats the name of a device in slices: "pci-0000-13-00-0". */
void slice_device_name(const char *address, char ret[static DEVICE_NAME_SIZE]);
/* Finds the device with this slice_device_name() in the daemon's document. NULL: there is none. */
json_object *slice_find_device(json_object *document, const char *name);
/* Makes the attributes of a device in a slice. The caller frees; NULL when out of memory. */
json_object *slice_attributes(json_object *document, json_object *device);
/* Lists the devices to publish: those of pools that Kubernetes manages, except mediated devices. If several such
 * devices are in one IOMMU group, lists only the first. NULL when out of memory. The caller owns the list. */
json_object *slice_devices(json_object *document);
/* Returns true when Kubernetes manages the devices of this pool. */
bool slice_has_pool(json_object *document, const char *pool);
/* Returns the health of the device: HEALTH_HEALTHY if it is available, allocated or reserved and has no fault,
 * HEALTH_UNKNOWN if its state is "host", else HEALTH_UNHEALTHY. *ret_reason is a sentence, owned by the document; NULL
 * for a healthy device, and if the document has no reason. */
HealthStatus slice_health(json_object *device, const char **ret_reason);

/* Makes the wanted slices: an array with one object for each slice. The object has the part of the slice's spec that
 * depends on the devices: "devices" or "sharedCounters". 0; -EBADMSG: the document has no devices or pools; -ENOMEM. */
int slices_wanted(json_object *document, json_object **ret);

typedef struct SliceOwner {
        const char *node, *node_uid;
} SliceOwner;

/*
 * Compares the wanted slices with `items`, an object with the API server's slices by name, without times. Returns the
 * number of writes that make them equal, or -ENOMEM. *ret must be NULL before. Sets *ret to the first write, {"name",
 * "method", "path", "body"}; a DELETE has no "body"; *ret stays NULL if no write is needed. If a single write is
 * enough, the generation of the pool stays, as in kubernetes/dynamic-resource-allocation,
 * resourceslice/resourceslicecontroller.go. *generation: the caller sets it to 0 before the first write, and then
 * passes the value that the function has set until no write is left. written: an object with {"sent", "kept"} by the
 * name of a slice, or NULL. An API server drops members of features that are off. So a slice needs no write if the
 * wanted spec equals "sent" and the API server's spec equals "kept".
 */
int slices_difference(const SliceOwner *owner, json_object *wanted, json_object *items, json_object *written,
                      int64_t *generation, json_object **ret);
/* Removes the times that the API server adds to taints. */
void slice_remove_times(json_object *slice);
/* Adds to `dropped` the names of the members that `sent` has and `kept` does not have: the API server has dropped them.
 * 0 or -ENOMEM. */
int slices_dropped(json_object *sent, json_object *kept, json_object *dropped);
