/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The tree that Placement should have: made of the daemon's Describe document. Pure.
 *
 *     HOST                     the root; Nova's compute node, where there is one
 *     HOST_NUMA0               a NUMA node: PCPU, MEMORY_MB, CUSTOM_HUGEPAGES_SIZEKB
 *     HOST_SWITCH_ADDRESS      a PCIe switch with devices below it; ADDRESS is that of its upstream port
 *     HOST_ADDRESS             a device, or the PF of VFs in a pool: CUSTOM_PCI_VENDOR_DEVICE of the device or the VFs
 *     HOST_ENDPOINT            an endpoint of a service: CUSTOM_PASSTHROUGHD_SLOTS_SERVICE
 */

#include "tree.h"

typedef struct WantedOptions {
        const char *host;
        const char *root;  /* uuid of the root */
        bool devices_only; /* leave CPUs and memory out: Nova reports them */
} WantedOptions;

/* Makes the tree. 0, -ENOMEM, or -EBADMSG for a document that the daemon does not send. */
int tree_wanted(json_object *describe, const WantedOptions *options, Tree **ret);
