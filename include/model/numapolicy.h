/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* NUMA policy of a request or pool: how close to the guest's NUMA nodes a device must be. Pure. */

#include <stdbool.h>

/* Names and meaning as in OpenStack Nova, except single, which Nova does not have. */
typedef enum NumaPolicy {
        NUMA_POLICY_LEGACY, /* a device with a known node must be on the guest's nodes; a device with an unknown node is
                               accepted (the default of a request) */
        NUMA_POLICY_PREFERRED, /* as close as possible, on any node (the default of a pool: no restriction) */
        NUMA_POLICY_SOCKET,    /* on a socket of the guest's nodes; an unknown node is refused */
        NUMA_POLICY_REQUIRED,  /* on the guest's nodes, of which there may be several; an unknown node is refused */
        NUMA_POLICY_SINGLE,    /* as required, and the guest is on exactly one node */
        _NUMA_POLICY_MAX,
        _NUMA_POLICY_INVALID = -22,
} NumaPolicy;
const char *numa_policy_to_string(NumaPolicy p);
NumaPolicy numa_policy_from_string(const char *s);

/* Return whether the policy accepts devices on an unknown node, on another node of the same socket, and on any other
 * node. */
bool numa_policy_allows_unknown(NumaPolicy p);
bool numa_policy_allows_socket(NumaPolicy p);
bool numa_policy_allows_remote(NumaPolicy p);
/* Returns whether the policy also requires the guest's shared memory on the guest's nodes. */
bool numa_policy_requires_nodes(NumaPolicy p);
/* Returns whether the policy allows a guest on several nodes. */
bool numa_policy_allows_several(NumaPolicy p);

/*
 * Returns the policy that accepts only what both accept: the stricter one. For legacy and socket, neither of which is
 * stricter, returns required.
 */
NumaPolicy numa_policy_stricter(NumaPolicy a, NumaPolicy b);
