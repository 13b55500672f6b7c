/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Derives the module options of mlx4_core, and refuses VFs that need other options than the driver runs with. */

#include "plan/mlx4.h"

#include <errno.h>
#include <stdio.h>

#include "util/strings.h"

static bool same_ports(const Pool *a, const Pool *b) {
        bool same = a->n_port_types == b->n_port_types;

        for (size_t i = 0; same && i < a->n_port_types; i++)
                same = a->port_types[i] == b->port_types[i];
        return same;
}

/* Sets m->problem when the PF cannot have the VFs that the pool configures. Returns 0 or -ENOMEM. */
static int check_count(const Pool *pool, const PciDevice *pf, Mlx4 *m) {
        if (pool->virtual_functions <= MIN(MLX4_VFS_MAX, pf->total_vfs))
                return 0;
        m->place = pool->virtual_functions_place;
        if (pool->virtual_functions > MLX4_VFS_MAX)
                return string_replace(&m->problem,
                                      "Pool '%s' wants %u VFs on %s, but mlx4_core creates at most %u. Lower "
                                      "VirtualFunctions= to that.",
                                      pool->name, pool->virtual_functions, PCI_ADDRESS_STR(pf->address), MLX4_VFS_MAX);
        return string_replace(
                &m->problem,
                "Pool '%s' wants %u VF%s on %s, which can have %u; with a larger num_vfs, mlx4_core creates none. "
                "Lower VirtualFunctions=, or raise NUM_OF_VFS in the firmware configuration of the card.",
                pool->name, pool->virtual_functions, PLURAL(pool->virtual_functions), PCI_ADDRESS_STR(pf->address),
                pf->total_vfs);
}

/* Sets m->problem when two pools configure different options: all cards share one set. Returns 0 or -ENOMEM. */
static int check_same(const Pool *pool, const PciDevice *pf, const Pool *other, const PciDevice *other_pf, Mlx4 *m) {
        if (pool->virtual_functions != other->virtual_functions) {
                m->place = pool->virtual_functions_place;
                return string_replace(
                        &m->problem,
                        "mlx4_core creates the same number of VFs on all its cards, but pool '%s' wants %u on "
                        "%s and pool '%s' (%s:%u) wants %u on %s. Set VirtualFunctions= to the same number.",
                        pool->name, pool->virtual_functions, PCI_ADDRESS_STR(pf->address), other->name,
                        other->virtual_functions_place.file, other->virtual_functions_place.line,
                        other->virtual_functions, PCI_ADDRESS_STR(other_pf->address));
        }
        if (same_ports(pool, other))
                return 0;
        /* Either pool may lack a PortTypes= line. */
        m->place = pool->n_port_types > 0 ? pool->port_types_place : other->port_types_place;
        return string_replace(
                &m->problem,
                "mlx4_core has the same port types on all its cards, but pool '%s' wants others for %s than "
                "pool '%s' for %s. Set PortTypes= to the same value in both pools.",
                pool->name, PCI_ADDRESS_STR(pf->address), other->name, PCI_ADDRESS_STR(other_pf->address));
}

/* Formats a part of the sentences of tell_without(): why a card gets no VFs by the configuration, and a remedy. The
 * text ends so that the next remedy, " set VirtualFunctions=external ...", can follow. Returns 0 or -ENOMEM. */
static int describe_without(const Policy *p, const PciDevice *dev, char **ret) {
        const char *address = PCI_ADDRESS_STR(dev->address);
        const Pool *external = policy_external_pool(p, dev), *asking = policy_asking_pool(p, dev);
        _cleanup_refusal_ Refusal why = { 0 };

        if (policy_is_excluded(p, dev))
                return string_replace(ret, "%s is excluded. Take it out of [Exclude], or", address);
        if (external)
                return string_replace(ret,
                                      "pool '%s' (%s:%u) leaves the VFs of %s to others. Set its VirtualFunctions= to "
                                      "the same number, or for all of these cards",
                                      external->name, external->virtual_functions_place.file,
                                      external->virtual_functions_place.line, address);
        if (asking && policy_check_vfs(p, dev, asking, &why) != VERDICT_NONE)
                return string_replace(ret, "not all of them get VFs. %s %s Or", why.message ?: "", why.remedy ?: "");
        return string_replace(ret, "no pool wants VFs on %s. Configure a pool with as many VFs there, or", address);
}

/*
 * Sets m->problem: mlx4_core would also create VFs on a card without configured VFs. Such a card is the host's, goes to
 * guests as a whole, or gets its VFs from another program. Returns 0 or -ENOMEM.
 */
static int tell_without(const Policy *p, const Pool *pool, const PciDevice *pf, const PciDevice *without, Mlx4 *m) {
        _cleanup_free_ char *why = NULL;
        int r = describe_without(p, without, &why);

        m->place = pool->virtual_functions_place;
        return r < 0 ? r
                     : string_replace(
                               &m->problem,
                               "mlx4_core creates the same number of VFs on all its cards: pool '%s' wants %u on "
                               "%s, but %s set VirtualFunctions=external and write the options of mlx4_core "
                               "into modprobe.d yourself.",
                               pool->name, pool->virtual_functions, PCI_ADDRESS_STR(pf->address), why);
}

/* Finds the first pool with VFs on an mlx4 card; *ret_pool is NULL if there is none. Otherwise sets m->problem unless
 * all such pools have the same options, each of their cards can have the VFs, and each mlx4 card gets VFs. Returns 0 or
 * -ENOMEM. */
static int find_pool(const Policy *p, const Pool **ret_pool, Mlx4 *m) {
        const PciDevice *pf = NULL, *without = NULL;
        const Pool *first = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && !m->problem && i < p->inventory->n_devices; i++) {
                const PciDevice *dev = &p->inventory->devices[i];
                const Pool *pool = pci_device_is_mlx4_pf(dev) ? policy_vf_pool(p, dev) : NULL;

                if (pci_device_is_mlx4_pf(dev) && !pool)
                        without = without ?: dev;
                if (!pool)
                        continue;
                r = check_count(pool, dev, m);
                if (r >= 0 && !m->problem && first)
                        r = check_same(pool, dev, first, pf, m);
                pf = first ? pf : dev;
                first = first ?: pool;
        }
        if (r >= 0 && first && without && !m->problem)
                r = tell_without(p, first, pf, without, m);
        if (r >= 0)
                *ret_pool = first;
        return r;
}

/* Returns true when a pool wants VFs but no mlx4 card is present: the card may return, so keep the options. */
static bool may_come_back(const Policy *p) {
        bool wanted = false;

        for (size_t i = 0; i < p->inventory->n_devices; i++)
                if (pci_device_is_mlx4_pf(&p->inventory->devices[i]))
                        return false;
        for (size_t i = 0; i < p->config->n_pools; i++)
                wanted = wanted || p->config->pools[i].virtual_functions > 0;
        return wanted;
}

/* Formats port types as "ib,eth" or, with numbers, as mlx4_core's port_type_array takes them. *ret must be NULL before,
 * and stays NULL if the pool has no PortTypes=. 0 or -ENOMEM. */
static int format_ports(const Pool *pool, bool numbers, char **ret) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < pool->n_port_types; i++) {
                const char *before = *ret ?: "", *comma = i > 0 ? "," : "";

                r = numbers ? string_replace(ret, "%s%s%d", before, comma, pool->port_types[i])
                            : string_replace(ret, "%s%s%s", before, comma, port_type_to_string(pool->port_types[i]));
        }
        return r;
}

static bool wants_vfs(const Policy *p, const Pool *pool) {
        for (size_t i = 0; i < p->inventory->n_devices; i++)
                if (pci_device_is_mlx4_pf(&p->inventory->devices[i]) &&
                    policy_vf_pool(p, &p->inventory->devices[i]) == pool)
                        return true;
        return false;
}

/* Appends a comment that names the configuration lines behind the options. File names are QUOTABLE(): a newline in one
 * would end the comment. */
static int add_source(const Pool *pool, char **text) {
        const ConfigPlace *vfs = &pool->virtual_functions_place, *ports = &pool->port_types_place;
        _cleanup_free_ char *types = NULL;
        int r = string_replace(text, "%s# Pool '%s': VirtualFunctions=%u (%s:%u)", *text, pool->name,
                               pool->virtual_functions, QUOTABLE(vfs->file), vfs->line);

        if (r < 0)
                return r;
        r = format_ports(pool, false, &types);
        if (r >= 0 && types)
                r = string_replace(text, "%s, PortTypes=%s (%s:%u)", *text, types, QUOTABLE(ports->file), ports->line);
        return r < 0 ? r : string_replace(text, "%s.\n", *text);
}

int mlx4_format_options(const Pool *pool, char **ret) {
        _cleanup_free_ char *ports = NULL;
        int r = format_ports(pool, true, &ports);

        return r < 0 ? r
                     : string_replace(ret, "options mlx4_core num_vfs=%u probe_vf=0%s%s", pool->virtual_functions,
                                      ports ? " port_type_array=" : "", ports ?: "");
}

static int make_text(const Policy *p, const Pool *pool, char **ret) {
        _cleanup_free_ char *text = NULL, *options = NULL;
        int r = string_replace(&text, MLX4_MARK "(8), which writes it anew or removes it: do not edit.\n"
                                                "# It counts when mlx4_core is loaded, and for all of its cards.\n");

        for (size_t i = 0; r >= 0 && i < p->config->n_pools; i++)
                if (wants_vfs(p, &p->config->pools[i]))
                        r = add_source(&p->config->pools[i], &text);
        if (r < 0)
                return r;
        r = mlx4_format_options(pool, &options);
        if (r < 0)
                return r;
        r = string_replace(&text, "%s%s\n", text, options);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(text);
        return 0;
}

int mlx4_decide(Policy *p, Mlx4 *ret) {
        Mlx4 m = { .unknown = p->config->block_reason || p->conflict.verdict != VERDICT_NONE || may_come_back(p) };
        const Pool *pool = NULL;
        int r = m.unknown ? 0 : find_pool(p, &pool, &m);

        if (r >= 0 && pool && !m.problem) {
                m.num_vfs = pool->virtual_functions;
                r = make_text(p, pool, &m.text);
        }
        if (r >= 0 && m.problem)
                r = policy_add_problem(p, &m.place, "%s", m.problem);
        if (r < 0) {
                mlx4_done(&m);
                return r;
        }
        *ret = m;
        return 0;
}

void mlx4_done(Mlx4 *m) {
        free(m->text);
        free(m->problem);
        free(m->file);
        *m = (Mlx4) { 0 };
}

bool mlx4_needs_options(const Policy *p, const PciDevice *pf) {
        const Pool *pool = pci_device_is_mlx4_pf(pf) ? policy_vf_pool(p, pf) : NULL;

        return pool && pf->n_virtfns != pool->virtual_functions;
}

/* Returns true when a reload of mlx4_core removes the device: it is a card with this driver, or a VF of an mlx4 card.
 */
static bool is_of_driver(const Inventory *inv, const Claim *claim) {
        const AllocationDevice *d = allocation_find_device(claim->allocation, claim->address);
        const PciDevice *dev = inventory_find(inv, d->is_vf ? d->physfn : claim->address);

        return dev && pci_device_is_mlx4_pf(dev) && (d->is_vf || streq_ptr(dev->driver, "mlx4_core"));
}

/* Returns true when the host needs an mlx4 card. A reload of mlx4_core takes all cards away. */
static bool host_needs_driver(const Inventory *inv) {
        for (size_t i = 0; i < inv->n_devices; i++)
                if (pci_device_is_mlx4_pf(&inv->devices[i]) && inv->devices[i].critical)
                        return true;
        return false;
}

static int format_remedy(const Policy *p, const Ledger *l, char **ret) {
        const Claim *first = NULL;
        size_t n = 0;
        int r = string_replace(ret,
                               "%s If mlx4_core is in the initramfs, first regenerate the initramfs (update-initramfs "
                               "-u or dracut -f).",
                               host_needs_driver(p->inventory)
                                       ? "Reboot."
                                       : "Reload the driver while its cards are idle (modprobe -r mlx4_ib mlx4_en "
                                         "mlx4_core, modprobe mlx4_core), or reboot.");

        for (size_t i = 0; i < l->n_claims; i++)
                if (is_of_driver(p->inventory, &l->claims[i])) {
                        first = first ?: &l->claims[i];
                        n++;
                }
        if (r < 0 || !first)
                return r;
        r = string_replace(ret, "%s Not while '%s' holds %s", *ret, first->allocation->name,
                           PCI_ADDRESS_STR(first->address));
        if (r < 0)
                return r;
        return n > 1 ? string_replace(ret, "%s, and %zu more of its VFs %s held.", *ret, n - 1, ARE(n - 1))
                     : string_replace(ret, "%s.", *ret);
}

Verdict mlx4_refuse(const Mlx4 *m, const Policy *p, const Ledger *l, const PciDevice *pf, unsigned count,
                    Refusal *ret) {
        const char *address = PCI_ADDRESS_STR(pf->address);
        _cleanup_free_ char *remedy = NULL;

#define HAS           "%s has %zu VF%s, %u %s wanted; its driver mlx4_core creates VFs only when it is loaded"
#define HAS_ARGUMENTS address, pf->n_virtfns, PLURAL(pf->n_virtfns), count, ARE(count)
        if (!ret)
                return VERDICT_NOT_SUPPORTED;
        if (m->problem)
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address, "Then reload the configuration.",
                              HAS ", and its option num_vfs is not written: %s", HAS_ARGUMENTS, m->problem);
        if (count == 0 || count != m->num_vfs)
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address,
                              "Set VirtualFunctions= in the pool that matches its VFs, and reload the configuration.",
                              HAS ", with its option num_vfs, which follows VirtualFunctions=.", HAS_ARGUMENTS);
        (void) format_remedy(p, l, &remedy);
        if (!m->file)
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address, remedy, HAS ", with its option num_vfs=%u.",
                              HAS_ARGUMENTS, count);
        return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address, remedy, HAS ", and %s asks for num_vfs=%u.",
                      HAS_ARGUMENTS, m->file, count);
#undef HAS_ARGUMENTS
#undef HAS
}
