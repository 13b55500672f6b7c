/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The policy: the configuration applied to the inventory. It tells which pool a device is in and whether the device may
 * be allocated at all. (The ledger tells which allocation has a device.) The policy borrows the Config and the
 * Inventory, and is made again after each scan. */

#include "config/config.h"
#include "model/refusal.h"

typedef struct Policy {
        const Config *config;
        const Inventory *inventory;
        bool forced;       /* made by policy_new_forced(): the boot VGA and the console's device may be allocated too */
        int16_t *pools;    /* for each device of the inventory, the index of its pool in config->pools; -1: no pool */
        uint8_t *verdicts; /* Verdict of each device of the inventory */
        char **problems;   /* "file:line: sentence"; for example, that a device matches two pools */
        size_t n_problems;
        size_t n_unlisted; /* 0 or 1: all problems are in the list. Otherwise the number of problems that are not in it,
                              which the last entry of the list gives */
        /* VERDICT_INVALID_REQUEST when a pool offers a PF, and this or another pool offers a VF of the PF or has
         * VirtualFunctions= for the PF; the message names both pools. Otherwise VERDICT_NONE. The daemon refuses a new
         * configuration with a conflict. When the conflict appears later, requests for the PF are refused because the
         * PF has VFs: the hardware is never allocated twice. */
        Refusal conflict;
} Policy;

int policy_new(const Config *config, const Inventory *inv, Policy **ret);
/* As policy_new(), for a request with force. A device that the host needs (PciDevice.critical) stays blocked. */
int policy_new_forced(const Config *config, const Inventory *inv, Policy **ret);
Policy *policy_free(Policy *p);
DEFINE_CLEANUP(Policy *, policy_free)

/* Adds to inv the VFs that the daemon would create with this configuration (inventory_expect_vfs()), if their addresses
 * can be computed. inv: an inventory that was read outside the daemon, of this machine or of a recorded one, with
 * PciDevice.critical set. Returns 0 or -ENOMEM. */
int policy_expect_vfs(const Config *config, Inventory *inv);

/* Adds "file:line: sentence" to the problems of p, up to CONFIG_PROBLEMS_MAX. Returns 0 or -ENOMEM. */
int policy_add_problem(Policy *p, const ConfigPlace *place, const char *format, ...) _printf_(3, 4);

/* Computes the verdicts of dev, its IOMMU group and its VFs again. Call it when the driver of dev has changed. */
void policy_recheck(Policy *p, const PciDevice *dev);

/* Returns true when an [Exclude] line matches the device or, if it is a slot for a mediated device, its GPU. */
bool policy_is_excluded(const Policy *p, const PciDevice *dev);
/* Returns the pool of the device, or NULL. */
const Pool *policy_pool(const Policy *p, const PciDevice *dev);
/* Returns true when the device is in a pool with Fabric=yes. */
bool policy_has_fabric(const Policy *p, const PciDevice *dev);
/* Returns true when the host needs the device, or has memory of the device online. pool: if this pool has
 * StopServices=, online memory does not count, because the job that unbinds the device first stops the services that
 * use the memory; NULL: it counts. */
bool policy_host_needs(const PciDevice *dev, const Pool *pool);
/* Returns true when the device is in a pool and may leave the host: it is not excluded, not needed by the host, no
 * display (unless forced), in a PCI domain that can be assigned, and Config.block_reason is not set. Whether it can be
 * allocated is told by policy_check(). */
bool policy_offers(const Policy *p, const PciDevice *dev);

/* Returns VERDICT_NONE when the device may be allocated. Otherwise returns the most fundamental reason against it, and
 * describes it in *ret (ret may be NULL). */
Verdict policy_check(const Policy *p, const PciDevice *dev, Refusal *ret);
/* Returns the verdict that policy_check() returns, from the cache. */
Verdict policy_verdict(const Policy *p, const PciDevice *dev);
/* Returns the name of the kernel module of `driver`, which is a VFIO driver or pciback. */
const char *policy_driver_module(const char *driver);
/* Refuses with VERDICT_NO_VFIO_DRIVER: the VFIO driver for the device is not loaded. Returns that verdict. */
Verdict policy_refuse_driver(const PciAddress *device, const char *driver, Refusal *ret);

/*
 * How an allocation of the device `dev` treats another member of its IOMMU group. A member that the host needs, or that
 * is the host's display, blocks the group. A member of a kind that GROUP_ROLE_LEAVE lists is left alone if its driver
 * is harmless (pci_device_driver_is_harmless()), and otherwise blocks the group. Of the other members, a function of
 * the same card is passed to the guest too when it is in a pool, when its driver is harmless, or when it is an
 * auxiliary function (audio, USB-C) of the GPU `dev`. A device of another card is held when it is in a pool, when its
 * driver is harmless, or when it is an auxiliary function of a GPU that a pool offers. Any member that is left blocks
 * the group, because the host may be using it: it may be the second port of a NIC, for example. With a blocking member,
 * policy_check() returns VERDICT_GROUP_NOT_VIABLE.
 */
typedef enum GroupRole {
        GROUP_ROLE_LEAVE,     /* not touched, and its driver is harmless: a bridge, a part of the platform, an excluded
                                 device, a PF with VFs, or another device that cannot be held */
        GROUP_ROLE_COMPANION, /* passed to the guest as another function of the same card */
        GROUP_ROLE_HOLD,      /* bound to the VFIO driver, not passed to the guest */
        GROUP_ROLE_BLOCK,     /* stays with the host, so `dev` cannot be allocated */
} GroupRole;
GroupRole policy_group_role(const Policy *p, const PciDevice *dev, const PciDevice *member);

/*
 * VirtualFunctions= and PFs that stay with the host. Creating VFs on a PF without VFs takes nothing from the host. So
 * the daemon also creates them on a PF that the host needs: one with a default route, a mounted disk, or the display of
 * the host. An exception is a PF in a bond with RoCE LAG, because the host would lose the bond's RDMA device: then a
 * Match= line of the pool must name the PF. The daemon creates no VFs on a PF that [Exclude] matches, on a PF whose VFs
 * [Exclude] would match, on a PF in a PCI domain that cannot be assigned, or while Config.block_reason is set. Existing
 * VFs are devices like any other: a pool can offer them, even on an excluded PF, unless [Exclude] matches the VFs too
 * (pf=).
 */

/* Returns the pool whose VirtualFunctions= asks for VFs on this PF, if the daemon may create them; otherwise NULL. */
const Pool *policy_vf_pool(const Policy *p, const PciDevice *pf);
/* Returns the pool whose VirtualFunctions= asks for VFs on this PF, even if the PF is excluded. NULL: no pool does, or
 * another program creates the VFs (policy_external_pool()). */
const Pool *policy_asking_pool(const Policy *p, const PciDevice *pf);
/* Returns VERDICT_NONE when the daemon may create VFs on the PF, otherwise the reason, also in *ret (ret may be NULL).
 * pool: the result of policy_asking_pool(), which must not be NULL. */
Verdict policy_check_vfs(const Policy *p, const PciDevice *pf, const Pool *pool, Refusal *ret);
/* Returns true when a Match= line of the pool has pf= with the whole address of the PF. */
bool policy_names_pf(const Pool *pool, const PciDevice *pf);
/* Returns true when the PF is a port of a bond whose mlx5 ports share one RDMA device (RoCE LAG), or would share one if
 * the PF had no VFs. While any port of the bond has VFs, each port has an RDMA device of its own; so returns false if
 * another port has VFs. */
bool policy_pf_has_roce_lag(const Policy *p, const PciDevice *pf);
/* As policy_check_vfs(), and also checks whether the PF can have as many VFs as the pool asks for. Returns
 * VERDICT_NOT_SUPPORTED if not, VERDICT_PF_ABSENT if the PF has no host driver. */
Verdict policy_check_vf_number(const Policy *p, const PciDevice *pf, const Pool *pool, Refusal *ret);
/* Returns the pool with VirtualFunctions=external for the VFs of this PF, which another program creates; NULL: none. */
const Pool *policy_external_pool(const Policy *p, const PciDevice *pf);
