/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the configuration makes of this node: which pool a device is in, and whether it may be handed out at all,
 * leaving aside who has it now (that is the ledger's). Made anew after each scan; borrows the Config and the Inventory
 * it was made from.
 */

#include "config/config.h"
#include "model/refusal.h"

typedef struct Policy {
        const Config *config;
        const Inventory *inventory;
        bool forced;       /* the boot VGA and the console's card may go as well */
        int16_t *pools;    /* by device index: index into config->pools, or -1 */
        uint8_t *verdicts; /* by device index: Verdict */
        char **problems;   /* "file:line: sentence": a device in two pools stays in the first */
        size_t n_problems;
        /*
         * VERDICT_INVALID_REQUEST, naming both, when the same hardware would be on offer twice: a PF and its own VF.
         * Such a config is not to be taken; where it came about later the PF is refused for having VFs, so nothing is
         * given away twice.
         */
        Refusal conflict;
} Policy;

int policy_new(const Config *config, const Inventory *inv, Policy **ret);
/* For a request with force. What is fatal to lose, PciDevice.critical, is blocked all the same. */
int policy_new_forced(const Config *config, const Inventory *inv, Policy **ret);
Policy *policy_free(Policy *p);
DEFINE_CLEANUP(Policy *, policy_free)

/* Adds "file:line: sentence" to problems, of which there are at most CONFIG_PROBLEMS_MAX. 0 or -ENOMEM. */
int policy_add_problem(Policy *p, const ConfigPlace *place, const char *format, ...) _printf_(3, 4);

/* After the device got another driver: what its group may do hangs on that. The cost is that of the group. */
void policy_recheck(Policy *p, const PciDevice *dev);

/* An [Exclude] line has it. */
bool policy_is_excluded(const Policy *p, const PciDevice *dev);
/* NULL when the device is in no pool. */
const Pool *policy_pool(const Policy *p, const PciDevice *dev);
/* In a pool, and neither excluded nor the host's own. Whether it can be had is policy_check()'s to say. */
bool policy_offers(const Policy *p, const PciDevice *dev);

/* VERDICT_NONE: may be handed out. Else the first reason why not, the most fundamental one; ret (or NULL) gets the
 * sentence. */
Verdict policy_check(const Policy *p, const PciDevice *dev, Refusal *ret);
/* The same, from the cache. */
Verdict policy_verdict(const Policy *p, const PciDevice *dev);
/* VERDICT_NO_VFIO_DRIVER: the kernel does not have the driver that the device is to be bound to. */
Verdict policy_refuse_driver(const PciAddress *device, const char *driver, Refusal *ret);

/*
 * What an allocation of dev does with another member of its IOMMU group. Bridges, parts of the platform and members
 * that are left alone are not taken; another function of the same card goes along when a pool has it, when its driver
 * is harmless, or when it is one that a GPU has beside the GPU itself (audio, USB-C): the second port of a NIC may be
 * the host's, and then blocks; members that make the group unusable give policy_check(dev) VERDICT_GROUP_NOT_VIABLE.
 */
typedef enum GroupRole {
        GROUP_ROLE_LEAVE,     /* a bridge, part of the platform, or nobody's and harmless */
        GROUP_ROLE_COMPANION, /* goes to the guest as another function of the same card */
        GROUP_ROLE_HOLD,      /* held on the VFIO driver */
        GROUP_ROLE_BLOCK,     /* its host driver stays, so nothing of the group can be given away */
} GroupRole;
GroupRole policy_group_role(const Policy *p, const PciDevice *dev, const PciDevice *member);

/* The pool that wants VFs on this PF and how many (VirtualFunctions=), or NULL. */
const Pool *policy_vf_pool(const Policy *p, const PciDevice *pf);
/* The one that would, did the host not need the PF now; NULL for one that is excluded, which it does not want. */
const Pool *policy_critical_vf_pool(const Policy *p, const PciDevice *pf);
/* The pool that leaves the VFs of this PF to somebody else (VirtualFunctions=external), or NULL. */
const Pool *policy_external_pool(const Policy *p, const PciDevice *pf);
