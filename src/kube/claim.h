/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A claim as a record: {"namespace", "name", "uid", "node", "podClaimName", "devices": [{"request", "device"}]}, where
 * "request" may be REQUEST/SUBREQUEST and "device" is the name in the slices. "podClaimName" is there only if
 * Kubernetes made the claim from a template. The record is all that this program stores about a claim; it makes the
 * files of a container from the record and the daemon's document. Pure.
 */

#include "slices.h"

#define CLAIM_NAME_SIZE     (sizeof(CLAIM_PREFIX) - 1 + UUID_STRING_MAX)
#define CLAIM_DEVICES_MAX   32U /* AllocationResultsMaxSize of kubernetes/api, resource/v1/types.go */
#define CLAIM_CDI_ID_SIZE   128U
#define CLAIM_SENTENCE_SIZE 512U
#define CLAIM_METADATA_FILE "metadata.json"

/*
 * Makes the record from the API server's ResourceClaim. node: the name of the pool. -ENOENT: the claim with this UID no
 * longer exists; -EINVAL: it cannot be prepared, and ret_sentence says why; -ENOMEM.
 */
int claim_from_document(json_object *claim, const ClaimRef *ref, const char *node, json_object **ret,
                        char ret_sentence[static CLAIM_SENTENCE_SIZE]);
/*
 * Returns true when the reply of the API server shows that the claim no longer exists: no claim has the name, the claim
 * has another UID, or its devices were deallocated. Other replies, such as the page of a proxy, prove nothing.
 */
bool claim_has_gone(int status, json_object *reply, const ClaimRef *ref);
/* Returns 0 if the record has the form above and is that of the claim with this UID, else -EBADMSG. */
int claim_check_record(json_object *record, const char *uid);
/* Finds the claim of an allocation by the allocation's name, consumer and tag. Returns false if the allocation was not
 * made for a claim, or if its tag does not have the claim's name. */
bool claim_of_allocation(json_object *allocation, ClaimRef *ret);

/* Returns the name, as in the ResourceSlices, of device i of the record. */
const char *claim_device(json_object *record, size_t i);
/* Writes the name of the request of device i, without a subrequest: the part before the slash. */
void claim_request_name(json_object *record, size_t i, char ret[static NAME_SIZE]);
/* Returns true when device i is the first device of its request in the record. */
bool claim_is_first(json_object *record, size_t i);
/* Formats the CDI name of device i: "passthroughd.org/claim=UID_DEVICE". */
void claim_cdi_id(json_object *record, size_t i, char ret[static CLAIM_CDI_ID_SIZE]);

/* Makes the CDI document of all devices. Each device has its device nodes. The first device of each request also has
 * the metadata file of the request, which is in the directory UID/REQUEST below `metadata`. -ENOENT: a device or its
 * IOMMU group is missing; -ENOMEM. */
int claim_cdi(json_object *record, json_object *document, const char *metadata, json_object **ret);
/* Formats the metadata file of KEP-5304 for the request of device i, the first device of the request: one JSON object
 * for each version of the format, newest first. 0 or -ENOMEM. */
int claim_metadata(json_object *record, json_object *document, size_t i, char **ret);
