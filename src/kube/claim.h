/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A claim as a record: {"namespace", "name", "uid", "node", "podClaimName", "devices": [{"request", "device"}]}, where
 * "request" may be REQUEST/SUBREQUEST and "device" is the name in the slices. The record is all that this program keeps
 * of a claim; the files of a container are made of it and of the daemon's document. Pure.
 */

#include "slices.h"

#define CLAIM_NAME_SIZE     (sizeof(CLAIM_PREFIX) - 1 + UUID_STRING_MAX)
#define CLAIM_DEVICES_MAX   32U /* AllocationResultsMaxSize of kubernetes/api, resource/v1/types.go */
#define CLAIM_CDI_ID_SIZE   128U
#define CLAIM_SENTENCE_SIZE 512U
#define CLAIM_METADATA_FILE "metadata.json"

/*
 * Makes the record of a ResourceClaim, as the API server has it. node: the name of the pool. -ENOENT: the claim of this
 * UID has gone; -EINVAL: it cannot be prepared, and ret_sentence says why; -ENOMEM.
 */
int claim_from_document(json_object *claim, const ClaimRef *ref, const char *node, json_object **ret,
                        char ret_sentence[static CLAIM_SENTENCE_SIZE]);
/*
 * The API server says that the claim has gone: it has none of this name, one of another UID, or one whose devices were
 * taken from it. Anything else, like the page of a proxy, says nothing.
 */
bool claim_has_gone(int status, json_object *reply, const ClaimRef *ref);
/* A record that this program has written. 0 or -EBADMSG. */
int claim_check_record(json_object *record, const char *uid);
/* The claim of an allocation, by its name and tag. False: it is of no claim. */
bool claim_of_allocation(json_object *allocation, ClaimRef *ret);

/* The name of a device of the record in slices. */
const char *claim_device(json_object *record, size_t i);
/* The part of the name of a device's request that names files: before the slash. */
void claim_request_name(json_object *record, size_t i, char ret[static NAME_SIZE]);
/* The device is the first one of its request. */
bool claim_is_first(json_object *record, size_t i);
/* "passthroughd.org/claim=UID_DEVICE". */
void claim_cdi_id(json_object *record, size_t i, char ret[static CLAIM_CDI_ID_SIZE]);

/* The CDI document of all devices: their device nodes, and with the first device of a request its metadata, which is in
 * metadata/UID/REQUEST. -ENOENT: a device or its IOMMU group is not there; -ENOMEM. */
int claim_cdi(json_object *record, json_object *document, const char *metadata, json_object **ret);
/* The text of KEP-5304 for the request of a device: an object for each version of the format, the newest first. */
int claim_metadata(json_object *record, json_object *document, size_t i, char **ret);
