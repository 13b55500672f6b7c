/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/numapolicy.h"

#include "util/stringtable.h"

static const char *const numa_policy_table[_NUMA_POLICY_MAX] = {
        [NUMA_POLICY_LEGACY] = "legacy",     [NUMA_POLICY_PREFERRED] = "preferred", [NUMA_POLICY_SOCKET] = "socket",
        [NUMA_POLICY_REQUIRED] = "required", [NUMA_POLICY_SINGLE] = "single",
};

DEFINE_STRING_TABLE(numa_policy, NumaPolicy, _NUMA_POLICY_MAX)

bool numa_policy_allows_unknown(NumaPolicy p) {
        return p == NUMA_POLICY_LEGACY || p == NUMA_POLICY_PREFERRED;
}

bool numa_policy_allows_socket(NumaPolicy p) {
        return p == NUMA_POLICY_SOCKET || p == NUMA_POLICY_PREFERRED;
}

bool numa_policy_allows_remote(NumaPolicy p) {
        return p == NUMA_POLICY_PREFERRED;
}

bool numa_policy_requires_nodes(NumaPolicy p) {
        return p == NUMA_POLICY_REQUIRED || p == NUMA_POLICY_SINGLE;
}

bool numa_policy_allows_several(NumaPolicy p) {
        return p != NUMA_POLICY_SINGLE;
}

NumaPolicy numa_policy_stricter(NumaPolicy a, NumaPolicy b) {
        bool unknown = numa_policy_allows_unknown(a) && numa_policy_allows_unknown(b);
        bool socket = numa_policy_allows_socket(a) && numa_policy_allows_socket(b);

        if (!numa_policy_allows_several(a) || !numa_policy_allows_several(b))
                return NUMA_POLICY_SINGLE;
        if (unknown && socket)
                return NUMA_POLICY_PREFERRED;
        return unknown ? NUMA_POLICY_LEGACY : socket ? NUMA_POLICY_SOCKET : NUMA_POLICY_REQUIRED;
}
