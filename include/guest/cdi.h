/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Documents of CDI, the Container Device Interface (cncf-tags/container-device-interface, SPEC.md 0.5.0): they say
 * which device nodes, variables and files a container gets with a device. A virtual machine in a container opens its
 * devices by VFIO: with /dev/vfio/vfio and a node for each IOMMU group, or with /dev/iommu and a node for each device,
 * never both. Pure.
 */

#include <json-c/json.h>

#include "config/config.h"
#include "ledger/allocation.h"
#include "model/refusal.h"

#define CDI_DOMAIN     "passthroughd.org"
#define CDI_ALLOCATION CDI_DOMAIN "/allocation" /* kind of the documents that cdi_make() makes */

/* Returns a document without devices; NULL when out of memory. kind: "vendor/class". */
json_object *cdi_new(const char *kind);
/* Adds a device, and returns its container edits, which the functions below extend. The document owns them. NULL when
 * out of memory. */
json_object *cdi_add_device(json_object *cdi, const char *name);

/* cdi_add_group() adds the device node of an IOMMU group, and /dev/vfio/vfio. For iommufd, cdi_add_cdev() adds the node
 * of a VFIO character device ("vfio3"), and /dev/iommu. A node that the edits have already is not added again. 0 or
 * -ENOMEM. */
int cdi_add_group(json_object *edits, int group);
int cdi_add_cdev(json_object *edits, const char *name);
int cdi_add_env(json_object *edits, const char *variable, const char *value);
/* Adds a file or directory of the host, read-only in the container. 0 or -ENOMEM. */
int cdi_add_mount(json_object *edits, const char *host, const char *container);

/*
 * Makes the document of an allocation, as text. It has one device, with the allocation's name and all device nodes.
 * Returns VERDICT_NONE and sets *ret, which the caller frees. Otherwise VERDICT_WRONG_STATE: a device is not bound to a
 * VFIO driver; VERDICT_NOT_SUPPORTED on a node with Xen, and for a device that a container cannot get;
 * VERDICT_INVALID_REQUEST: CDI does not allow the name, or the allocation has no device; or a refusal of Iommufd=yes;
 * or VERDICT_LIMIT: out of memory.
 */
Verdict cdi_make(const Inventory *inv, const Config *config, const Allocation *a, char **ret, Refusal *ret_refusal);
