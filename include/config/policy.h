/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The policy: the configuration applied to the inventory. It tells which pool a device is in and whether the device may
 * be allocated at all. Whether another allocation has the device is the ledger's concern. Rebuilt after each scan;
 * borrows the Config and the Inventory.
 */

#include "config/config.h"
#include "model/refusal.h"

typedef struct Policy {
        const Config *config;
        const Inventory *inventory;
        bool forced;       /* the boot VGA and the console's device may be allocated too */
        int16_t *pools;    /* by device index: index into config->pools, or -1 */
        uint8_t *verdicts; /* by device index: Verdict */
        char **problems;   /* "file:line: sentence": for example, a device that matches two pools stays in the first */
        size_t n_problems;
        size_t n_unlisted; /* further ones, which the last problem counts */
        /*
         * VERDICT_INVALID_REQUEST when a PF and its own VF are both offered; the message names both. A new
         * configuration with a conflict is refused. When a conflict appears later, the PF is refused because it has
         * VFs, so the hardware is never allocated twice.
         */
        Refusal conflict;
} Policy;

int policy_new(const Config *config, const Inventory *inv, Policy **ret);
/* As policy_new(), for a request with force. A device that the host cannot lose (PciDevice.critical) stays blocked. */
int policy_new_forced(const Config *config, const Inventory *inv, Policy **ret);
Policy *policy_free(Policy *p);
DEFINE_CLEANUP(Policy *, policy_free)

/*
 * Adds the VFs to inv that the daemon would create with this configuration (inventory_expect_vfs()), as far as their
 * addresses are known. inv: of a recorded machine, with PciDevice.critical set. 0 or -ENOMEM.
 */
int policy_expect_vfs(const Config *config, Inventory *inv);

/* Adds "file:line: sentence" to problems, up to CONFIG_PROBLEMS_MAX. 0 or -ENOMEM. */
int policy_add_problem(Policy *p, const ConfigPlace *place, const char *format, ...) _printf_(3, 4);

/* To be called when the driver of dev changed: checks dev, its IOMMU group and its VFs again. */
void policy_recheck(Policy *p, const PciDevice *dev);

/* An [Exclude] line matches the device. */
bool policy_is_excluded(const Policy *p, const PciDevice *dev);
/* NULL when the device is in no pool. */
const Pool *policy_pool(const Policy *p, const PciDevice *dev);
/* The device is in a pool with Fabric=yes. */
bool policy_has_fabric(const Policy *p, const PciDevice *dev);
/* The host needs the device, or has its memory online. pool: the services that the job stops take that memory offline;
 * NULL: it stops none. */
bool policy_host_needs(const PciDevice *dev, const Pool *pool);
/*
 * The device is in a pool and neither excluded nor needed by the host. policy_check() tells whether it can be
 * allocated.
 */
bool policy_offers(const Policy *p, const PciDevice *dev);

/*
 * VERDICT_NONE when the device may be allocated. Otherwise the most fundamental reason against it, in ret too (or
 * NULL).
 */
Verdict policy_check(const Policy *p, const PciDevice *dev, Refusal *ret);
/* The verdict of policy_check(), from the cache. */
Verdict policy_verdict(const Policy *p, const PciDevice *dev);
/* The kernel module that has a driver for guests. */
const char *policy_driver_module(const char *driver);
/* Returns VERDICT_NO_VFIO_DRIVER: the VFIO driver for the device is not loaded. */
Verdict policy_refuse_driver(const PciAddress *device, const char *driver, Refusal *ret);

/*
 * How an allocation of dev treats another member of its IOMMU group. Another function of the same card is passed along
 * when it is in a pool, when its driver is harmless (pci_device_driver_is_harmless()), or when it is an auxiliary
 * function of a GPU (audio, USB-C). Otherwise it blocks the group, because the host may be using it (the second port of
 * a NIC). A blocking member gives policy_check(dev) VERDICT_GROUP_NOT_VIABLE.
 */
typedef enum GroupRole {
        GROUP_ROLE_LEAVE, /* not touched: a bridge, part of the platform, or a device in no pool with a harmless driver
                           */
        GROUP_ROLE_COMPANION, /* passed to the guest as another function of the same card */
        GROUP_ROLE_HOLD,      /* bound to the VFIO driver, not passed to the guest */
        GROUP_ROLE_BLOCK,     /* keeps its host driver, so no device of the group can be allocated */
} GroupRole;
GroupRole policy_group_role(const Policy *p, const PciDevice *dev, const PciDevice *member);

/*
 * VirtualFunctions= and PFs that stay with the host. To create VFs on a PF without VFs takes nothing from the host, so
 * the daemon also creates them on a PF that the host needs: one with a default route, a mounted disk, or the display of
 * the host. An exception is the RDMA device of a bond (RoCE LAG), which the host loses: then a line of the pool must
 * name the PF. The daemon creates none on a PF that [Exclude] matches, none whose VFs [Exclude] would match, and none
 * while a line of [Exclude] is unreadable. VFs that exist are devices like any other: of an excluded PF, too, they are
 * offered unless [Exclude] matches them as well (pf=).
 */

/* The pool whose VirtualFunctions= asks for VFs on this PF and gets them, or NULL. */
const Pool *policy_vf_pool(const Policy *p, const PciDevice *pf);
/* The pool whose VirtualFunctions= asks for VFs on this PF, which may be excluded; or NULL. */
const Pool *policy_asking_pool(const Policy *p, const PciDevice *pf);
/* pool: policy_asking_pool(). VERDICT_NONE when the daemon may create VFs on the PF; else why not, in ret (or NULL). */
Verdict policy_check_vfs(const Policy *p, const PciDevice *pf, const Pool *pool, Refusal *ret);
/* Whether a Match= line of the pool names the PF by its whole address (pf=). */
bool policy_names_pf(const Pool *pool, const PciDevice *pf);
/*
 * Whether mlx5 makes one RDMA device of the ports of the PF's card, which are in one bond (RoCE LAG), while this PF has
 * no VFs: no other port has any. While it has VFs, each port has an RDMA device of its own.
 */
bool policy_pf_has_roce_lag(const Policy *p, const PciDevice *pf);
/*
 * As policy_check_vfs(), and whether the PF can have as many as the pool asks for: VERDICT_NOT_SUPPORTED, or
 * VERDICT_PF_ABSENT without a host driver.
 */
Verdict policy_check_vf_number(const Policy *p, const PciDevice *pf, const Pool *pool, Refusal *ret);
/* The pool that leaves the VFs of this PF to another program (VirtualFunctions=external), or NULL. */
const Pool *policy_external_pool(const Policy *p, const PciDevice *pf);
