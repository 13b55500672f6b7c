/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* How near to the guest's NUMA nodes a device has to be: what a request and a pool say of it. Pure. */

#include <stdbool.h>

/* Nova's words and meaning (scenarios A1 to A9). */
typedef enum NumaPolicy {
        NUMA_POLICY_LEGACY,    /* a device with a known node must be on the guest's nodes; unknown is accepted (the
                                  default of a request) */
        NUMA_POLICY_PREFERRED, /* as close as possible, anywhere (the default of a pool, which adds nothing) */
        NUMA_POLICY_SOCKET,    /* on a socket of the guest's nodes; unknown is refused */
        NUMA_POLICY_REQUIRED,  /* on the guest's nodes; unknown is refused */
        _NUMA_POLICY_MAX,
        _NUMA_POLICY_INVALID = -22,
} NumaPolicy;
const char *numa_policy_to_string(NumaPolicy p);
NumaPolicy numa_policy_from_string(const char *s);

/* Devices whose node is not known; devices off the nodes but on their sockets; and devices elsewhere. */
bool numa_policy_allows_unknown(NumaPolicy p);
bool numa_policy_allows_socket(NumaPolicy p);
bool numa_policy_allows_remote(NumaPolicy p);

/* The policy that allows what both allow: the stricter one, and required for legacy and socket, of which neither is. */
NumaPolicy numa_policy_stricter(NumaPolicy a, NumaPolicy b);
