/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * ResourceSlices of this node: what the API server should have, from the document of the daemon, and what has to change
 * in what it has. Limits and names are those of kubernetes/api, resource/v1/types.go. Pure.
 */

#include "messages.h"
#include "model/json-value.h"

#define KUBE_DRIVER      "passthroughd.org"
#define KUBE_SLICES_PATH "/apis/resource.k8s.io/v1/resourceslices"
#define CLAIM_PREFIX     "claim-" /* of the name of a claim's allocation, before the UID */

/* ResourceSliceMaxDevicesWithAdvancedFeatures: taints and counters come and go, and the slice of a device should not.
 */
#define SLICE_DEVICES_MAX  64U
/* ResourceSliceMaxCounterSets */
#define SLICE_COUNTERS_MAX 8U
/* DeviceAttributeMaxValueLength */
#define ATTRIBUTE_SIZE     65U

#define DEVICE_NAME_SIZE 24U
/* The name of a device in slices: "pci-0000-13-00-0". */
void slice_device_name(const char *address, char ret[static DEVICE_NAME_SIZE]);
/* The device of the daemon's document that has this name in slices; NULL: there is none. */
json_object *slice_find_device(json_object *document, const char *name);
/* The attributes of a device, as a slice has them; NULL when out of memory. The caller owns them. */
json_object *slice_attributes(json_object *document, json_object *device);
/* The devices that slices have, one of each IOMMU group, as an array; NULL when out of memory. */
json_object *slice_devices(json_object *document);
/* Kubernetes gives out the devices of this pool. */
bool slice_has_pool(json_object *document, const char *pool);
/* The pod of a claim can use the device; ret_reason is a sentence of the document otherwise. */
HealthStatus slice_health(json_object *device, const char **ret_reason);

/* An array of the part of each spec that depends on the devices: "devices" or "sharedCounters". -ENOMEM or -EBADMSG. */
int slices_wanted(json_object *document, json_object **ret);

typedef struct SliceOwner {
        const char *node, *node_uid;
} SliceOwner;

/*
 * Compares the wanted slices with the items: what the API server has, as an object of slices by their names, without
 * times. Returns how many writes make them equal, or -ENOMEM. ret: the first one, {"name", "method", "path", "body"};
 * NULL: none. As few writes as possible: the generation of the pool, which is 0 before the first write and then the
 * same until none is left, stays when one write is enough, as in kubernetes/dynamic-resource-allocation,
 * resourceslice/resourceslicecontroller.go. written: {"sent", "kept"} by the names of slices: an API server leaves out
 * members of features that are off, and what it has kept of a spec is as good as the spec.
 */
int slices_difference(const SliceOwner *owner, json_object *wanted, json_object *items, json_object *written,
                      int64_t *generation, json_object **ret);
/* The API server adds times to taints. */
void slice_remove_times(json_object *slice);
/* Adds the names of members that the API server has left out to the object. -ENOMEM. */
int slices_dropped(json_object *sent, json_object *kept, json_object *dropped);
