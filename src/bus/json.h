/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The program's objects as JSON, for Describe and --json. Keys are documented in
 * org.passthroughd1(5). Pure. */

#include "model/json-value.h"
#include "plan/device-state.h"

/* All constructors return NULL when out of memory; the caller owns the object (json_object_put). */
json_object *json_device(const HostView *c, const PciDevice *dev);
json_object *json_explain(const HostView *c, const PciDevice *dev);
json_object *json_allocation(const Inventory *inv, const Allocation *a);
json_object *json_plan(const HostView *c, const Plan *p);
json_object *json_repeat(const Repeat *r);
json_object *json_refusal(const Refusal *r);
/*
 * The node: devices, pools, nodes, allocations, notes. version is the program's. The array of devices has no elements:
 * the devices are read from c when the object is made into text, so what c points to has to outlive the object.
 */
json_object *json_describe(const HostView *c, const char *version);
/* The node as a tree, for people: NUMA nodes, devices below bridges, distances of GPUs and NICs up to so many. */
#define TOPOLOGY_MATRIX_MAX 512U
#define TOPOLOGY_PAIRS_MAX  1024U
json_object *json_topology(const HostView *c);
