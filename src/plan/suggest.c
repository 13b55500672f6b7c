/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the pools of a suggested configuration, and the CPUs of the host. */

#include "plan/suggest.h"

#include <errno.h>
#include <stdio.h>

#include "model/cmdline.h"
#include "model/cores.h"
#include "model/mdev-slots.h"
#include "suggest-internal.h"
#include "util/strings.h"

#define CLASS_DISPLAY 0x03
#define CLASS_NVME    0x0108
#define CLASS_BRIDGE  0x0680 /* PCI class and subclass of an NVSwitch */
#define CLASS_IB      0x0207

/* VFs on each PF: enough for small guests, few enough for the memory windows of most firmware. */
#define VFS_MAX    8U
#define MODELS_MAX 32U /* the most pools of one kind: GPUs, accelerators or NICs */
#define SLUG_MAX   32U

static void suggestion_done(Suggestion *s) {
        for (size_t i = 0; i < s->n_choices; i++)
                free(s->choices[i].devices);
        for (size_t i = 0; i < s->n_omissions; i++) {
                free(s->omissions[i].why);
                free(s->omissions[i].devices);
        }
        free(s->choices);
        free(s->omissions);
}

static int leave_out(Suggestion *s, const PciDevice *dev, const char *why) {
        Omission *o = NULL;

        for (size_t i = 0; i < s->n_omissions && !o; i++)
                if (streq(s->omissions[i].why, why))
                        o = &s->omissions[i];
        if (!o) {
                if (ARRAY_RESERVE(s->omissions, s->n_omissions) < 0)
                        return -ENOMEM;
                o = &s->omissions[s->n_omissions];
                *o = (Omission) { 0 };
                if (string_copy(&o->why, why) < 0)
                        return -ENOMEM;
                s->n_omissions++;
        }
        return pci_address_append(&o->devices, &o->n, dev->address);
}

/* Returns whether the VFs of the GPU are for vGPUs. VFs of AMD and Intel GPUs are GPUs themselves. */
static bool has_vgpus(const Inventory *inv, const PciDevice *gpu) {
        for (size_t i = 0; i < gpu->n_vfs; i++) {
                const PciDevice *vf = inventory_find(inv, gpu->vfs[i]);

                if (vf && (vf->vendor == PCI_VENDOR_NVIDIA || vf->vgpu_types))
                        return true;
        }
        return false;
}

/* Returns sentences: why the host keeps the accelerator. NULL: a pool shall offer it. */
static const char *why_not_accelerator(const Inventory *inv, const PciDevice *dev) {
        if (pci_device_is_display(dev))
                return "It is the display of the host. 'allocate --force' gives it to a guest if a pool has it.";
        if (has_vgpus(inv, dev))
                return "It has VFs (vGPU), which another program manages: see VirtualFunctions=external and "
                       "VgpuType= in passthroughd.conf(5).";
        if (dev->mdev_types)
                return "Its driver offers vGPUs. A pool with Match=address=ADDRESS offers the whole GPU, and with "
                       "VgpuType= its vGPUs: see passthroughd.conf(5).";
        return NULL;
}

static const char *why_not_nic(const PciDevice *dev) {
        if (dev->type != PCI_TYPE_PF && pci_device_is_connectx(dev))
                return "It has no SR-IOV capability, which its firmware can turn on: mlxconfig -d ADDRESS set "
                       "SRIOV_EN=1 "
                       "NUM_OF_VFS=8, reboot, and run suggest again.";
        if (dev->type != PCI_TYPE_PF)
                return "It has no SR-IOV capability. Match=address=ADDRESS in a pool gives the whole NIC to a guest.";
        if (pci_device_driver_is_harmless(dev))
                return "It has no host driver, and only a driver creates VFs. Load the driver, and run suggest again.";
        return NULL;
}

static int leave_out_critical(Suggestion *s, const PciDevice *dev) {
        bool has_vfs = pci_device_is_nic(dev) && dev->type == PCI_TYPE_PF;
        _cleanup_free_ char *why = string_format(
                "The host needs it: %s.%s", dev->critical,
                has_vfs ? " A pool with Match=type=vf pf=ADDRESS and VirtualFunctions= gives its VFs to guests." : "");

        return why ? leave_out(s, dev, why) : -ENOMEM;
}

static bool is_of_vfs(const PciDevice *dev, ChoiceKind kind) {
        return kind == CHOICE_NIC || pci_device_has_vfs(dev);
}

static bool is_same_model(const Choice *c, const PciDevice *dev, ChoiceKind kind) {
        return c->kind == kind && c->of_vfs == is_of_vfs(dev, kind) && c->vendor == dev->vendor &&
               c->device == dev->device && c->type == dev->type &&
               (kind != CHOICE_NIC || c->base_class == dev->class >> 8);
}

static size_t count_choices(const Suggestion *s, ChoiceKind kind) {
        size_t n = 0;

        for (size_t i = 0; i < s->n_choices; i++)
                n += s->choices[i].kind == kind;
        return n;
}

static int choose(Suggestion *s, const PciDevice *dev, ChoiceKind kind) {
        Choice *c = NULL;

        for (size_t i = 0; i < s->n_choices && !c; i++)
                if (is_same_model(&s->choices[i], dev, kind))
                        c = &s->choices[i];
        if (!c && count_choices(s, kind) >= MODELS_MAX)
                return leave_out(s, dev, "There are too many models for a suggestion.");
        if (!c) {
                if (ARRAY_RESERVE(s->choices, s->n_choices) < 0)
                        return -ENOMEM;
                c = &s->choices[s->n_choices++];
                *c = (Choice) { .kind = kind,
                                .of_vfs = is_of_vfs(dev, kind),
                                .vendor = dev->vendor,
                                .device = dev->device,
                                .base_class = (uint16_t) (dev->class >> 8),
                                .type = dev->type };
        }
        return pci_address_append(&c->devices, &c->n, dev->address);
}

static int consider(Suggestion *s, const Inventory *inv, const PciDevice *dev) {
        bool accelerator = pci_device_is_accelerator(dev), nic = pci_device_is_nic(dev);
        const char *why = accelerator ? why_not_accelerator(inv, dev) : nic ? why_not_nic(dev) : NULL;

        if (dev->class >> 8 == CLASS_NVME)
                why = "Storage is not offered unasked. Match=address=ADDRESS in a pool gives it to guests.";
        else if (dev->class >> 8 == CLASS_BRIDGE && dev->vendor == PCI_VENDOR_NVIDIA)
                why = "It is an NVSwitch, which Fabric Manager on the host drives for all guests. Guests have NVLink "
                      "with a section [Fabric] and Fabric=yes in the pool of the GPUs: see passthroughd-fabric(7).";
        else if (dev->class >> 16 == CLASS_DISPLAY && !accelerator)
                why = "It only shows a console.";
        else if (!accelerator && !nic)
                return 0;
        if (dev->critical)
                return leave_out_critical(s, dev);
        if (why)
                return leave_out(s, dev, why);
        return choose(s, dev, nic ? CHOICE_NIC : pci_device_is_gpu(dev) ? CHOICE_GPU : CHOICE_ACCELERATOR);
}

/* Appends a model's name in lower case, as far as whole words fit; if it has a part in brackets, only that:
 * "tesla-v100-sxm3-32gb". */
static void append_slug(const char *name, char *pool, size_t size) {
        const char *bracket = name ? strrchr(name, '[') : NULL, *c = bracket ? bracket + 1 : name ?: "";
        size_t n = strlen(pool);

        for (; *c && *c != ']' && n + 1 < size; c++) {
                char lower = (char) (*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);

                if ((lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9'))
                        pool[n++] = lower;
                else if (pool[n - 1] != '-')
                        pool[n++] = '-';
        }
        /* The name did not fit: remove its last, truncated word. */
        while (*c && *c != ']' && pool[n - 1] != '-')
                n--;
        while (pool[n - 1] == '-')
                n--;
        pool[n] = '\0';
}

static bool is_taken(const Suggestion *s, const Choice *choice) {
        for (const Choice *c = s->choices; c < choice; c++)
                if (streq(c->pool, choice->pool))
                        return true;
        return false;
}

/* Names the pool after its kind, "gpu", "accelerator" or "nic". If there are several pools of the kind, adds the model:
 * "nic-connectx-6-ib". */
static void name_pool(const Suggestion *s, const Inventory *inv, Choice *c) {
        static const char *const names[_CHOICE_KIND_MAX] = { "gpu", "accelerator", "nic" };
        const PciDevice *dev = inventory_find(inv, c->devices[0]);
        char first[SLUG_MAX];
        size_t n = 1;

        (void) snprintf(c->pool, sizeof(c->pool), "%s-", names[c->kind]);
        if (count_choices(s, c->kind) > 1)
                append_slug(dev->name, c->pool, SLUG_MAX - strlen("-ib"));
        else
                append_slug("", c->pool, SLUG_MAX);
        if (count_choices(s, c->kind) > 1 && c->kind == CHOICE_NIC && c->base_class == CLASS_IB)
                (void) stpcpy(c->pool + strlen(c->pool), "-ib");
        memcpy(first, c->pool, sizeof(first));
        while (is_taken(s, c))
                (void) snprintf(c->pool, sizeof(c->pool), "%s-%zu", first, ++n);
}

static bool has_device(const Choice *c, PciAddress address) {
        return pci_addresses_have(c->devices, c->n, address);
}

/* Returns whether no PF outside the pool has the ID of the pool's devices or, for a pool of VFs, has VFs with the ID of
 * the pool's VFs. Returns false if the ID of the VFs is unknown. VFs of different models often share an ID. */
static bool id_is_enough(const Inventory *inv, const Choice *c) {
        uint16_t vf = inventory_find(inv, c->devices[0])->vf_device;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *pf = &inv->devices[i];

                if (pf->type == PCI_TYPE_PF && pf->vendor == c->vendor &&
                    (c->of_vfs ? pf->vf_device == vf : pf->device == c->device) && !has_device(c, pf->address))
                        return false;
        }
        return !c->of_vfs || vf != 0;
}

/* Returns the number of VFs to suggest: the present number of the first PF that has VFs, because a change would remove
 * these; else VFS_MAX, or less if a PF cannot have so many. */
static unsigned choose_vfs(const Inventory *inv, const Choice *c) {
        unsigned n = VFS_MAX;

        for (size_t i = 0; i < c->n; i++) {
                const PciDevice *pf = inventory_find(inv, c->devices[i]);

                if (pf->n_vfs > 0)
                        return (unsigned) pf->n_vfs;
                n = MIN(n, pf->total_vfs);
        }
        return n;
}

/* Adds the first n cores of the node to the set, with all their threads. */
static void add_cores(const Inventory *inv, const NumaNode *node, unsigned n, CpuSet *cpus) {
        unsigned core = 0;

        for (size_t i = 0; i < inv->n_cpus && n > 0; i++) {
                core = inv->cpus[i].id;
                if (!cpuset_has(&node->cpus, core) || inv->cpus[i].core != core)
                        continue;
                for (size_t k = 0; k < inv->n_cpus; k++)
                        if (inv->cpus[k].core == core)
                                cpuset_add(cpus, inv->cpus[k].id);
                n--;
        }
}

/* Returns the CPUs for the host: n cores of each NUMA node that has more than 4 * n cores; one core of each smaller
 * node that has several. */
static CpuSet first_cores(const Inventory *inv, unsigned n) {
        CpuSet cpus = { 0 };

        for (size_t i = 0; i < inv->n_nodes; i++) {
                unsigned cores = cpuset_count(&inv->nodes[i].cpus) / cores_threads(inv);

                add_cores(inv, &inv->nodes[i], cores > 4 * n ? n : cores > 1, &cpus);
        }
        return cpus;
}

static bool fits_line(const CpuSet *cpus) {
        _cleanup_free_ char *line = suggestion_cpus(cpus);

        return line && strlen(line) <= CONFIG_LINE_MAX;
}

static void choose_cpus(Suggestion *s, const Inventory *inv, const char *cmdline) {
        CpuSet isolated = { 0 };

        for (size_t i = 0; i < inv->n_cpus; i++)
                cpuset_add(&s->housekeeping, inv->cpus[i].id);
        s->housekeeping_why = "The CPUs that the kernel command line does not isolate (isolcpus=) stay with the host.";
        if (cmdline_isolated(cmdline, &isolated) >= 0 && cpuset_intersects(&s->housekeeping, &isolated)) {
                cpuset_subtract(&s->housekeeping, &isolated);
                if (fits_line(&s->housekeeping))
                        return;
        }
        s->housekeeping_why = "The first cores of each NUMA node, with their SMT threads, stay with the host. Give it "
                              "more if it runs storage or network services.";
        for (unsigned n = 2; n > 0; n--) {
                s->housekeeping = first_cores(inv, n);
                if (fits_line(&s->housekeeping))
                        return;
        }
        s->housekeeping = (CpuSet) { 0 };
        s->housekeeping_why = inv->n_cpus > 0 ? "This node has too few or too many cores to suggest some for the host."
                                              : "The CPUs of this node are not known.";
}

static int make(Suggestion *s, const Inventory *inv, const char *cmdline) {
        for (int nics = 0; nics <= 1; nics++)
                for (size_t i = 0; i < inv->n_devices; i++) {
                        const PciDevice *dev = &inv->devices[i];

                        if (dev->type != PCI_TYPE_VF && !dev->is_bridge && pci_device_is_nic(dev) == nics &&
                            consider(s, inv, dev) < 0)
                                return -ENOMEM;
                }
        for (size_t i = 0; i < s->n_choices; i++) {
                Choice *c = &s->choices[i];

                name_pool(s, inv, c);
                c->by_id = id_is_enough(inv, c);
                c->virtual_functions = c->kind == CHOICE_NIC ? choose_vfs(inv, c) : 0;
        }
        choose_cpus(s, inv, cmdline);
        return 0;
}

/* Formats the suggestion twice: the first text, as a configuration, tells which devices could not be allocated, and the
 * second one has comments about them. */
static int write_with_verdicts(const Suggestion *s, Inventory *inv, char **ret) {
        _cleanup_(cleanup_policy_free) Policy *policy = NULL;
        _cleanup_(cleanup_config_free) Config *config = NULL;
        _cleanup_free_ char *sections = suggestion_write(s, inv, NULL);
        int r = sections ? config_parse("suggestion", sections, strlen(sections), &config) : -ENOMEM;

        if (r < 0)
                return r;
        r = policy_expect_vfs(config, inv);
        if (r < 0)
                return r;
        r = policy_new(config, inv, &policy);
        if (r < 0)
                return r;
        *ret = suggestion_write(s, inv, policy);
        return *ret ? 0 : -ENOMEM;
}

int suggest_configuration(Inventory *inv, const char *cmdline, char **ret) {
        _cleanup_(suggestion_done) Suggestion s = { 0 };
        int r = make(&s, inv, cmdline);

        return r < 0 ? r : write_with_verdicts(&s, inv, ret);
}
