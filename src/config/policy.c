/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pool of each device, conflicts between pools, and the cache of verdicts. */

#include "policy-internal.h"

#include <errno.h>

#include "config/policy.h"
#include "model/mdev-slots.h"
#include "model/vgpu.h"
#include "util/strings.h"

int policy_add_problem(Policy *p, const ConfigPlace *place, const char *format, ...) {
        _cleanup_free_ char *text = NULL;

        if (p->n_problems >= CONFIG_PROBLEMS_MAX - 1 && p->n_unlisted++ > 0)
                return string_replace(&p->problems[p->n_problems - 1], "%zu more problems are not listed.",
                                      p->n_unlisted);
        text = FORMAT_ARGUMENTS(format);
        if (!text || ARRAY_RESERVE(p->problems, p->n_problems) < 0)
                return -ENOMEM;
        p->problems[p->n_problems] = string_format("%s:%u: %s", place->file, place->line, text);
        if (!p->problems[p->n_problems])
                return -ENOMEM;
        p->n_problems++;
        return 0;
}

/* Puts the device into the first pool that matches it. If another pool matches it too, adds a problem. */
static int assign_pool(Policy *p, size_t index) {
        const PciDevice *dev = &p->inventory->devices[index];
        int r;

        p->pools[index] = -1;
        if (pci_device_is_slot(dev))
                return 0;
        if (dev->is_bridge || pci_device_is_platform(dev))
                return 0;
        for (size_t i = 0; i < p->config->n_pools; i++) {
                const Pool *pool = &p->config->pools[i];
                const Match *m = match_any(pool->matches, pool->n_matches, dev);

                if (!m)
                        continue;
                if (p->pools[index] < 0) {
                        p->pools[index] = (int16_t) i;
                        continue;
                }
                const Pool *first = &p->config->pools[p->pools[index]];
                r = policy_add_problem(p, &m->place, "Pool '%s' also matches %s, which stays in pool '%s' (%s:%u).",
                                       pool->name, PCI_ADDRESS_STR(dev->address), first->name, first->place.file,
                                       first->place.line);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* If a pool with VgpuType= has a GPU with mediated devices, puts slots of the GPU into the pool in place of the GPU, as
 * many as an idle GPU has room for; MDEV_SLOTS_UNKNOWN if that number is unknown. */
static void offer_slots(Policy *p, size_t index) {
        const PciDevice *gpu = &p->inventory->devices[index];
        const Pool *pool = p->pools[index] >= 0 ? &p->config->pools[p->pools[index]] : NULL;
        unsigned capacity;

        if (!pool || !pool->vgpu_type || !pci_device_has_slots(gpu))
                return;
        capacity = vgpu_types_capacity(gpu->mdev_types, pool->vgpu_type) ?: MDEV_SLOTS_UNKNOWN;
        for (size_t i = 0; i < MIN(gpu->n_vfs, capacity); i++) {
                const PciDevice *slot = inventory_find(p->inventory, gpu->vfs[i]);

                if (slot)
                        p->pools[inventory_device_index(p->inventory, slot)] = p->pools[index];
        }
        p->pools[index] = -1;
}

/* A slot for a mediated device is excluded when a line of [Exclude] matches its GPU. */
const Match *policy_find_exclude(const Policy *p, const PciDevice *dev) {
        const PciDevice *gpu = pci_device_is_slot(dev) ? inventory_find(p->inventory, dev->physfn) : NULL;

        return match_any(p->config->excludes, p->config->n_excludes, gpu ?: dev);
}

bool policy_is_excluded(const Policy *p, const PciDevice *dev) {
        return policy_find_exclude(p, dev);
}

const Pool *policy_pool(const Policy *p, const PciDevice *dev) {
        int pool = p->pools[inventory_device_index(p->inventory, dev)];

        return pool < 0 ? NULL : &p->config->pools[pool];
}

bool policy_has_fabric(const Policy *p, const PciDevice *dev) {
        const Pool *pool = policy_pool(p, dev);

        return pool && pool->fabric;
}

/* A request with force may allocate the display, because the host still runs without it. */
bool policy_is_display(const Policy *p, const PciDevice *dev) {
        return !p->forced && pci_device_is_display(dev);
}

bool policy_host_needs(const PciDevice *dev, const Pool *pool) {
        return dev->critical || (dev->online_memory > 0 && (!pool || pool->n_stop_services == 0));
}

/* An untouchable device keeps its driver, whichever IOMMU group it is in. While block_reason is set, all devices are
 * untouchable. */
bool policy_is_untouchable(const Policy *p, const PciDevice *dev) {
        return p->config->block_reason || policy_is_display(p, dev) || policy_host_needs(dev, policy_pool(p, dev)) ||
               pci_device_is_platform(dev) || !pci_address_is_assignable(dev->address) || policy_is_excluded(p, dev);
}

bool policy_offers(const Policy *p, const PciDevice *dev) {
        return policy_pool(p, dev) && !policy_is_untouchable(p, dev);
}

const PciDevice *policy_find_offered_vf(const Policy *p, const PciDevice *pf) {
        for (size_t i = 0; i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(p->inventory, pf->vfs[i]);

                if (vf && policy_offers(p, vf))
                        return vf;
        }
        return NULL;
}

/* Finds a PF that is offered although its VFs are offered too, or will be when VirtualFunctions= creates them. */
static void find_conflict(Policy *p) {
        const Inventory *inv = p->inventory;

        for (size_t i = 0; i < inv->n_devices && p->conflict.verdict == VERDICT_NONE; i++) {
                const PciDevice *pf = &inv->devices[i];
                const Pool *pool = policy_pool(p, pf), *vf_pool;
                const PciDevice *vf;

                if (pf->type != PCI_TYPE_PF || !policy_offers(p, pf))
                        continue;
                vf = policy_find_offered_vf(p, pf);
                if (vf) {
                        vf_pool = policy_pool(p, vf);
                        refuse(&p->conflict, VERDICT_INVALID_REQUEST, &pf->address,
                               "Offer the PF or its VFs: add type=pf or type=vf to a Match= line.",
                               "Pool '%s' (%s:%u) offers the PF %s and pool '%s' (%s:%u) its own VF %s: the same "
                               "hardware twice.",
                               pool->name, pool->place.file, pool->place.line, PCI_ADDRESS_STR(pf->address),
                               vf_pool->name, vf_pool->place.file, vf_pool->place.line, PCI_ADDRESS_STR(vf->address));
                        return;
                }
                vf_pool = policy_vf_pool(p, pf);
                if (vf_pool)
                        refuse(&p->conflict, VERDICT_INVALID_REQUEST, &pf->address,
                               "Offer the PF or its VFs: add type=pf or type=vf to a Match= line.",
                               "Pool '%s' (%s:%u) offers the PF %s and VirtualFunctions= of pool '%s' (%s:%u) would "
                               "create VFs on it: the same hardware twice.",
                               pool->name, pool->place.file, pool->place.line, PCI_ADDRESS_STR(pf->address),
                               vf_pool->name, vf_pool->place.file, vf_pool->place.line);
        }
}

/* Returns true when the pool has a device, or a PF on which the daemon creates VFs for the pool. */
static bool pool_gets_devices(const Policy *p, const Pool *pool) {
        for (size_t i = 0; i < p->inventory->n_devices; i++)
                if (policy_pool(p, &p->inventory->devices[i]) == pool ||
                    policy_vf_pool(p, &p->inventory->devices[i]) == pool)
                        return true;
        return false;
}

/*
 * Adds a problem for each pool with a PF on which VirtualFunctions= asks for VFs and policy_check_vfs() refuses them.
 * If [Exclude] is the reason, there is a problem only if the pool gets no devices at all, because an admin may exclude
 * one PF of several. Another reason, such as RoCE LAG, is always a problem, because the admin may expect VFs there. A
 * pool gets one problem at most, and none while block_reason is set, which is reported by itself.
 */
static int find_withheld(Policy *p) {
        const Inventory *inv = p->inventory;
        int r = 0;

        for (size_t i = 0; i < p->config->n_pools && !p->config->block_reason; i++) {
                const Pool *pool = &p->config->pools[i];
                _cleanup_refusal_ Refusal why = { 0 };
                bool gets;

                if (pool->virtual_functions == 0)
                        continue;
                gets = pool_gets_devices(p, pool);
                for (size_t k = 0; k < inv->n_devices && !why.message; k++)
                        if (policy_asking_pool(p, &inv->devices[k]) == pool &&
                            policy_check_vfs(p, &inv->devices[k], pool, &why) == VERDICT_EXCLUDED && gets)
                                refusal_done(&why);
                if (why.message)
                        r = policy_add_problem(p, &pool->virtual_functions_place, "%s %s", why.message,
                                               why.remedy ?: "");
                if (r < 0)
                        return r;
        }
        return r;
}

static int make(const Config *config, const Inventory *inv, bool forced, Policy **ret) {
        _cleanup_(cleanup_policy_free) Policy *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        p->config = config;
        p->inventory = inv;
        p->forced = forced;
        p->pools = calloc(inv->n_devices + 1, sizeof(*p->pools));
        p->verdicts = calloc(inv->n_devices + 1, sizeof(*p->verdicts));
        if (!p->pools || !p->verdicts)
                return -ENOMEM;
        for (size_t i = 0; i < inv->n_devices; i++) {
                r = assign_pool(p, i);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < inv->n_devices; i++)
                offer_slots(p, i);
        /* Compute the verdicts after the pools of all devices, because the viability of a group depends on the pools of
         * all its members. */
        for (size_t i = 0; i < inv->n_devices; i++)
                p->verdicts[i] = (uint8_t) policy_check_uncached(p, &inv->devices[i], NULL);
        find_conflict(p);
        r = find_withheld(p);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

int policy_new(const Config *config, const Inventory *inv, Policy **ret) {
        return make(config, inv, false, ret);
}

int policy_new_forced(const Config *config, const Inventory *inv, Policy **ret) {
        return make(config, inv, true, ret);
}

Policy *policy_free(Policy *p) {
        if (!p)
                return NULL;
        for (size_t i = 0; i < p->n_problems; i++)
                free(p->problems[i]);
        free(p->problems);
        free(p->pools);
        free(p->verdicts);
        refusal_done(&p->conflict);
        free(p);
        return NULL;
}

void policy_recheck(Policy *p, const PciDevice *dev) {
        const IommuGroup *group = inventory_find_group(p->inventory, dev->iommu_group);
        size_t index = inventory_device_index(p->inventory, dev);

        p->verdicts[index] = (uint8_t) policy_check_uncached(p, dev, NULL);
        for (size_t i = 0; group && i < group->n_members; i++) {
                index = group->members[i];
                p->verdicts[index] = (uint8_t) policy_check_uncached(p, &p->inventory->devices[index], NULL);
        }
        for (size_t i = 0; i < dev->n_vfs; i++) {
                const PciDevice *vf = inventory_find(p->inventory, dev->vfs[i]);

                if (vf)
                        p->verdicts[inventory_device_index(p->inventory, vf)] =
                                (uint8_t) policy_check_uncached(p, vf, NULL);
        }
}

Verdict policy_verdict(const Policy *p, const PciDevice *dev) {
        return (Verdict) p->verdicts[inventory_device_index(p->inventory, dev)];
}

/* ret: the refusal of a PF that the host uses. Such use does not prevent VFs. If a pool asks for VFs on the PF and gets
 * none, adds the reason to ret. */
static void tell_why_no_vfs(const Policy *p, const PciDevice *pf, Refusal *ret) {
        const Pool *pool = pf->n_vfs == 0 ? policy_asking_pool(p, pf) : NULL;
        _cleanup_refusal_ Refusal why = { 0 };

        if (!pool || policy_check_vf_number(p, pf, pool, &why) == VERDICT_NONE || !why.message || !ret->message)
                return;
        (void) string_replace(&ret->message, "%s %s", ret->message, why.message);
        if (!ret->remedy)
                (void) string_copy(&ret->remedy, why.remedy);
}

/* ret: the refusal of a PF. If the PF has VFs and its bond would have RoCE LAG without them, adds that the host has no
 * RDMA device for the bond as long as the VFs exist. */
static void tell_roce_lag(const Policy *p, const PciDevice *pf, Refusal *ret) {
        if (pf->n_virtfns > 0 && ret->message && policy_pf_has_roce_lag(p, pf))
                (void) string_replace(&ret->message,
                                      "%s While it has VFs, %s has no RoCE LAG: the host has an RDMA device for each "
                                      "port, and none for the bond.",
                                      ret->message, QUOTABLE(pf->bond));
}

Verdict policy_check(const Policy *p, const PciDevice *dev, Refusal *ret) {
        Verdict v;

        if (policy_verdict(p, dev) == VERDICT_NONE)
                return VERDICT_NONE;
        v = policy_check_uncached(p, dev, ret);
        if (ret && (v == VERDICT_HOST_CRITICAL || v == VERDICT_BOOT_VGA))
                tell_why_no_vfs(p, dev, ret);
        if (ret)
                tell_roce_lag(p, dev, ret);
        return v;
}

/* Returns a model of the PF's VFs, made from the properties of the PF, because the VFs may not exist yet. */
static PciDevice derive_vf(const PciDevice *pf) {
        PciDevice vf = *pf;

        vf.type = PCI_TYPE_VF;
        vf.physfn = pf->address;
        vf.device = pf->vf_device;
        vf.is_bridge = false;
        return vf;
}

/* Returns the first pool with VirtualFunctions= that matches the model of the PF's VFs; NULL: none. */
static const Pool *find_vf_pool(const Policy *p, const PciDevice *pf) {
        const PciDevice vf = derive_vf(pf);

        for (size_t i = 0; i < p->config->n_pools; i++) {
                const Pool *pool = &p->config->pools[i];

                if ((pool->virtual_functions > 0 || pool->external) && match_any(pool->matches, pool->n_matches, &vf))
                        return pool;
        }
        return NULL;
}

const Match *policy_find_vf_exclude(const Policy *p, const PciDevice *pf) {
        const PciDevice vf = derive_vf(pf);

        return policy_find_exclude(p, pf) ?: match_any(p->config->excludes, p->config->n_excludes, &vf);
}

static bool has_external_pool(const Config *config) {
        for (size_t i = 0; i < config->n_pools; i++)
                if (config->pools[i].external)
                        return true;
        return false;
}

const Pool *policy_external_pool(const Policy *p, const PciDevice *pf) {
        const Pool *pool;

        /* Most configurations have no pool with VirtualFunctions=external, and then the VFs need not be compared. */
        if (pf->type != PCI_TYPE_PF || !has_external_pool(p->config))
                return NULL;
        /* A real VF has an address of its own, whereas the model of the VFs has that of the PF. So the VF may match a
         * line that the model does not match. */
        for (size_t i = 0; i < pf->n_vfs; i++) {
                const PciDevice *vf = inventory_find(p->inventory, pf->vfs[i]);

                pool = vf ? policy_pool(p, vf) : NULL;
                if (pool && pool->external)
                        return pool;
        }
        pool = find_vf_pool(p, pf);
        return pool && pool->external ? pool : NULL;
}

const Pool *policy_asking_pool(const Policy *p, const PciDevice *pf) {
        if (pf->type != PCI_TYPE_PF || pci_device_is_platform(pf) || policy_external_pool(p, pf))
                return NULL;
        return find_vf_pool(p, pf);
}

const Pool *policy_vf_pool(const Policy *p, const PciDevice *pf) {
        const Pool *pool = policy_asking_pool(p, pf);

        return pool && policy_check_vfs(p, pf, pool, NULL) == VERDICT_NONE ? pool : NULL;
}

/* Adds the VFs that the daemon would create to the inventory of a recorded machine. */

typedef struct Wish {
        PciAddress pf;
        unsigned n;
} Wish;

static bool is_wanted(const Policy *p, const PciDevice *pf) {
        const Pool *pool = pf->n_virtfns == 0 ? policy_asking_pool(p, pf) : NULL;

        return pool && policy_check_vf_number(p, pf, pool, NULL) == VERDICT_NONE;
}

static int list_wishes(const Policy *p, Wish **ret, size_t *ret_n) {
        const Inventory *inv = p->inventory;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *pf = &inv->devices[i];

                if (!is_wanted(p, pf))
                        continue;
                if (ARRAY_RESERVE(*ret, *ret_n) < 0)
                        return -ENOMEM;
                (*ret)[(*ret_n)++] = (Wish) { pf->address, policy_vf_pool(p, pf)->virtual_functions };
        }
        return 0;
}

int policy_expect_vfs(const Config *config, Inventory *inv) {
        _cleanup_(cleanup_policy_free) Policy *p = NULL;
        _cleanup_free_ Wish *wishes = NULL;
        size_t n = 0;
        int r = policy_new(config, inv, &p);

        if (r < 0)
                return r;
        r = list_wishes(p, &wishes, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                r = inventory_expect_vfs(inv, wishes[i].pf, wishes[i].n);
                if (r == -ENODATA || r == -ERANGE)
                        r = 0;
                if (r < 0)
                        return r;
        }
        return r;
}
