/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Documents of CDI, the Container Device Interface (cncf-tags/container-device-interface, SPEC.md 0.5.0): which device
 * nodes, variables and files a container gets with a device. A guest in a container opens its devices by VFIO: with
 * /dev/vfio/vfio and a node for each IOMMU group, or with /dev/iommu and a node for each device, never both. Pure.
 */

#include <json-c/json.h>

#include "config/config.h"
#include "ledger/allocation.h"
#include "model/refusal.h"

#define CDI_DOMAIN     "passthroughd.org"
#define CDI_ALLOCATION CDI_DOMAIN "/allocation" /* the kind of the documents of cdi_make() */

/* A document without devices; NULL when out of memory. kind: "vendor/class". */
json_object *cdi_new(const char *kind);
/* Adds a device and returns what it adds to a container, for the functions below; the document owns it. NULL when out
 * of memory. */
json_object *cdi_add_device(json_object *cdi, const char *name);

/* 0 or -ENOMEM. What the device has already is not added again. */
int cdi_add_group(json_object *edits, int group);       /* an IOMMU group */
int cdi_add_cdev(json_object *edits, const char *name); /* a character device, for iommufd: "vfio3" */
int cdi_add_env(json_object *edits, const char *variable, const char *value);
/* A file or directory of the host, which the container cannot write. */
int cdi_add_mount(json_object *edits, const char *host, const char *container);

/*
 * The document of an allocation, as text: one device of its name with all nodes. Returns VERDICT_NONE and sets *ret,
 * which the caller frees. Otherwise VERDICT_WRONG_STATE: a device is not bound to a VFIO driver; VERDICT_NOT_SUPPORTED
 * on a node with Xen, and for what a container cannot get; VERDICT_INVALID_REQUEST: its name cannot be one of CDI, or
 * it has no device; or a refusal of Iommufd=yes.
 */
Verdict cdi_make(const Inventory *inv, const Config *config, const Allocation *a, char **ret, Refusal *ret_refusal);
