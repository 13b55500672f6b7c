/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The NUMA policy of a request or pool: on which NUMA nodes a device may be, compared with the guest's. Pure. */

#include <stdbool.h>

/* As in OpenStack Nova, which has all but single. */
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

/* Return whether a device may be on an unknown node, on another node of the guest's socket, or on any node. */
bool numa_policy_allows_unknown(NumaPolicy p);
bool numa_policy_allows_socket(NumaPolicy p);
bool numa_policy_allows_remote(NumaPolicy p);
/* Returns whether shared memory, too, must be on the guest's nodes. */
bool numa_policy_requires_nodes(NumaPolicy p);
/* Returns whether the guest may be on several nodes. */
bool numa_policy_allows_several(NumaPolicy p);

/* Returns the policy that allows what both allow. It is the stricter one of the two, except that
 * NUMA_POLICY_LEGACY and NUMA_POLICY_SOCKET together give NUMA_POLICY_REQUIRED. */
NumaPolicy numa_policy_stricter(NumaPolicy a, NumaPolicy b);
