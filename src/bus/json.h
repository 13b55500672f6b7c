/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Devices, allocations, plans and refusals as JSON, for the replies and errors of D-Bus. org.passthroughd1(5) documents
 * the keys. Pure. */

#include "model/json-value.h"
#include "plan/device-state.h"

/* The functions below return an object that the caller owns (json_object_put()), or NULL when out of memory. */
json_object *json_device(const HostView *view, const PciDevice *dev);
json_object *json_explain(const HostView *view, const PciDevice *dev);
/* Makes the object of an allocation. reader: the uid of the caller. Only the owner of the allocation and root get the
 * attributes of its VFs; others get null. */
json_object *json_allocation(const HostView *view, const Allocation *a, uint32_t reader);
json_object *json_plan(const HostView *view, const Plan *p);
json_object *json_repeat(const Repeat *r);
json_object *json_refusal(const Refusal *r);
/* Makes an array of the problems of the configuration, as texts. */
json_object *json_config_problems(const HostView *view);
/* Makes an array of sentences, one for each endpoint that accepts no connection. */
json_object *json_endpoint_problems(const HostView *view);
/* Makes an array of the withdrawn devices (config/withdrawn.h), each with its address and the last pool that offered
 * it. */
json_object *json_withdrawn(const HostView *view);
/* Returns the text of the whole host: devices, pools, NUMA nodes, allocations, notes. version: the version of the
 * program. reader: as in json_allocation(). The caller frees the text; NULL when out of memory. */
char *json_describe(const HostView *view, const char *version, uint32_t reader);
/* Makes the topology of the host: NUMA nodes, devices below their bridges, and the distance matrix of GPUs, other
 * accelerators and NICs. The matrix is null when it would have more than TOPOLOGY_MATRIX_MAX functions. Its list of
 * the pairs below the same root port is null when there are more than TOPOLOGY_PAIRS_MAX pairs. */
#define TOPOLOGY_MATRIX_MAX 512U
#define TOPOLOGY_PAIRS_MAX  1024U
json_object *json_topology(const HostView *view);
