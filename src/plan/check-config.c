/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of the configuration, of libvirt, and of the running daemon. */
#include <stdio.h>

#include "check-internal.h"
#include "guest/confidential.h"
#include "guest/iommufd.h"
#include "model/vgpu.h"
#include "util/strings.h"

static void check_problems(const Config *config, CheckReport *report) {
        for (size_t i = 0; i < config->n_problems; i++) {
                _cleanup_free_ char *problem = NULL;

                if (config_problem_format(&config->problems[i], &problem) < 0)
                        report->failed = true;
                else
                        check_add(report, CHECK_WARNING, "Correct the line; see passthroughd.conf(5).", "%s", problem);
        }
}

void check_configuration(const CheckFacts *facts, CheckReport *report) {
        const Policy *policy = facts->policy;

        if (policy->config->block_reason)
                check_add(report, CHECK_FAILURE, "Correct the configuration; no device is offered until then.", "%s",
                          policy->config->block_reason);
        if (policy->conflict.verdict != VERDICT_NONE)
                check_add(report, CHECK_FAILURE, policy->conflict.remedy, "%s", policy->conflict.message);
        check_problems(policy->config, report);
        for (size_t i = 0; i < policy->n_problems; i++)
                check_add(report, CHECK_WARNING, NULL, "%s", policy->problems[i]);
}

/* Check: the configuration has pools with devices, or services, and each device of a pool can be allocated. */

/* Returns the name of the check that already reports why the verdict holds for all devices; NULL: none does. */
static const char *common_cause(const Policy *policy, Verdict verdict) {
        const Inventory *inv = policy->inventory;

        if (verdict == VERDICT_NO_IOMMU && !inv->iommu)
                return "iommu";
        if (verdict == VERDICT_HOST_CRITICAL && inv->critical_error)
                return "facts";
        if (verdict == VERDICT_NO_VFIO_DRIVER && !inventory_may_have_driver(inv, policy->config->vfio_driver))
                return "vfio";
        return NULL;
}

/* Adds one finding for all devices of pools that have this verdict of the policy. */
static void check_verdict(const Policy *policy, Verdict verdict, CheckReport *report) {
        const char *cause = common_cause(policy, verdict);
        const Inventory *inv = policy->inventory;
        _cleanup_refusal_ Refusal why = { 0 };
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (policy_pool(policy, &inv->devices[i]) && policy_verdict(policy, &inv->devices[i]) == verdict) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (!first)
                return;
        if (cause) {
                check_add(report, CHECK_WARNING, NULL, "%s%s of pool '%s' cannot be allocated: see '%s' above.",
                          PCI_ADDRESS_STR(first->address), AND_MORE(n - 1), policy_pool(policy, first)->name, cause);
                return;
        }
        (void) policy_check(policy, first, &why);
        if (!why.message)
                report->failed = true;
        else
                check_add(report, CHECK_WARNING, why.remedy, "%s%s of pool '%s' cannot be allocated. %s",
                          PCI_ADDRESS_STR(first->address), AND_MORE(n - 1), policy_pool(policy, first)->name,
                          why.message);
}

/* Returns true when pool_of() returns this pool for a device of the node. */
static bool pool_has_device(const Policy *policy, const Pool *(*pool_of)(const Policy *p, const PciDevice *dev),
                            const Pool *pool) {
        const Inventory *inv = policy->inventory;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (pool_of(policy, &inv->devices[i]) == pool)
                        return true;
        return false;
}

/* Returns true when no device of the pool can have a vGPU of its VgpuType=. A device with a vGPU of any type counts as
 * one that can: the list of types shrinks as the GPU fills up. */
static bool lacks_type(const Policy *policy, const Pool *pool) {
        const Inventory *inv = policy->inventory;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (policy_pool(policy, &inv->devices[i]) == pool &&
                    (inv->devices[i].vgpu_type > 0 || vgpu_types_find(inv->devices[i].vgpu_types, pool->vgpu_type) > 0))
                        return false;
        return true;
}

/*
 * Collects the module ids of the GPUs of a pool with Fabric=yes or, if `pool` is NULL, of all such pools. False: a
 * GPU's id is unknown.
 */
static bool find_modules(const Policy *policy, const Pool *pool, uint64_t *ret) {
        const Inventory *inv = policy->inventory;

        *ret = 0;
        for (size_t i = 0; i < inv->n_devices; i++) {
                const Pool *has = policy_pool(policy, &inv->devices[i]);
                unsigned module = config_module(policy->config, &inv->devices[i]);

                if (!has || !has->fabric || (pool && has != pool))
                        continue;
                if (module == 0)
                        return false;
                *ret |= fabric_bit(module);
        }
        return true;
}

/* Returns true when each partition with a GPU of the pool also has a module without a GPU in a pool with Fabric=yes, or
 * when no partition has a GPU of the pool. False while the module id of a GPU is unknown. */
static bool lacks_partition(const Policy *policy, const Pool *pool) {
        const FabricTable *table = &policy->config->fabric;
        uint64_t all, own;

        if (table->n > 0 && (!find_modules(policy, NULL, &all) || !find_modules(policy, pool, &own)))
                return false;
        for (size_t i = 0; i < table->n; i++)
                if ((table->partitions[i].modules & ~all) == 0 && table->partitions[i].modules & own)
                        return false;
        return true;
}

static void check_offer(const Policy *policy, const Pool *pool, CheckReport *report) {
        if (pool->vgpu_type && lacks_type(policy, pool))
                check_add(report, CHECK_WARNING,
                          "Correct VgpuType= of the pool; 'passthroughctl explain DEVICE' lists the types of a device.",
                          "Pool '%s' has no vGPU to give: no device in it can have one of type '%s'.", pool->name,
                          pool->vgpu_type);
        if (pool->fabric && lacks_partition(policy, pool))
                check_add(report, CHECK_WARNING, "Correct Partitions=, Partition= or Module= in [Fabric].",
                          "Pool '%s' has no GPU to give without fabric=off: [Fabric] has %s.", pool->name,
                          policy->config->fabric.n == 0
                                  ? "no partitions"
                                  : "no partition of GPUs that this node has, with one of the pool");
}

void check_pools(const CheckFacts *facts, CheckReport *report) {
        const Config *config = facts->policy->config;

        if (config->n_pools == 0 && config->n_services == 0)
                check_add(report, CHECK_FAILURE,
                          "'passthroughctl suggest' prints pools for this node; see passthroughd.conf(5).",
                          "The configuration has no pool and no service, so no device can be allocated.");
        for (size_t i = 0; i < config->n_pools; i++)
                if (pool_has_device(facts->policy, policy_pool, &config->pools[i]))
                        check_offer(facts->policy, &config->pools[i], report);
                /* check_sriov() reports VFs that do not exist yet, check_configuration() pools without valid Match=. */
                else if (!pool_has_device(facts->policy, policy_asking_pool, &config->pools[i]) &&
                         config->pools[i].n_matches > 0)
                        check_add(report, CHECK_WARNING, "Compare its Match= lines with 'passthroughctl list --all'.",
                                  "No device of this node is in pool '%s'.", config->pools[i].name);
        /* Skip EXCLUDED: the admin who excludes a device knows that it cannot be allocated. */
        for (Verdict v = VERDICT_NONE + 1; v < _VERDICT_MAX; v++)
                if (v != VERDICT_EXCLUDED)
                        check_verdict(facts->policy, v, report);
}

void check_libvirt(const CheckFacts *facts, CheckReport *report) {
        const DaemonReport *d = facts->daemon;
        const char *features;

        if (!d || d->unreachable) {
                check_add(report, CHECK_UNKNOWN, NULL,
                          d ? "libvirt and QEMU are not known, because passthroughd, which asks them, does not answer."
                            : "libvirt and QEMU are not known for a recorded node.");
                return;
        }
        if (!d->asks_libvirt)
                return;
        if (d->libvirt_reason) {
                check_add(report, CHECK_WARNING,
                          "Start libvirtd, or install libvirt-daemon-system, or set Libvirt= to the libvirt that "
                          "starts the guests. "
                          "passthroughd looks again by itself.",
                          "The running domains are not known: %s", d->libvirt_reason);
                return;
        }
        features = d->libvirt_features ?: "";
        if (d->libvirt_version && !strstr(features, "maxphysaddr"))
                check_add(report, CHECK_WARNING, "Update libvirt to 8.7 or later.",
                          "libvirt %s cannot set the width of guest addresses, so large BARs of GPUs may not fit.",
                          d->libvirt_version);
        else
                check_add(report, CHECK_OK, NULL, "libvirt %s with QEMU %s can do: %s.",
                          d->libvirt_version ?: "(unknown)", d->qemu_version ?: "(unknown)",
                          *features ? features : "nothing that is optional");
}

/* Check: whether guests get their devices by iommufd. The answer can differ for guests with one and with several
 * devices. */

/* Converts a version, "11.3.0", to libvirt's number. 0: unknown. */
static unsigned read_version(const char *text) {
        unsigned major, minor, micro;

        if (!text || sscanf(text, "%3u.%3u.%3u", &major, &minor, &micro) != 3)
                return 0;
        return major * 1000000 + minor * 1000 + micro;
}

/* Returns true when the daemon's list of features, such as "maxphysaddr sev sev-snp", has this word. */
static bool has_feature(const DaemonReport *d, const char *name) {
        _cleanup_free_ char *copy = strdup(d->libvirt_features ?: "");
        char *rest = copy, *word;

        while (copy && (word = string_next_word(&rest)))
                if (streq(word, name))
                        return true;
        return false;
}

static LibvirtFeatures read_features(const DaemonReport *d) {
        LibvirtFeatures f = { .known = true,
                              .iommufd = has_feature(d, "iommufd"),
                              .libvirt = read_version(d->libvirt_version),
                              .qemu = read_version(d->qemu_version) };

        for (Confidential c = CONFIDENTIAL_NONE + 1; c < _CONFIDENTIAL_MAX; c++) {
                _cleanup_free_ char *firmware = string_format("%s" FIRMWARE_SUFFIX, confidential_libvirt_name(c));

                f.security[c] = has_feature(d, confidential_libvirt_name(c));
                f.firmware[c] = firmware && has_feature(d, firmware);
        }
        return f;
}

void check_iommufd(const CheckFacts *facts, CheckReport *report) {
        const DaemonReport *d = facts->daemon;
        const Config *config = facts->policy->config;
        IommufdFacts f = { .mode = config->iommufd,
                           .kernel = facts->policy->inventory->kernel,
                           .xen = config->hypervisor == HYPERVISOR_XEN,
                           .n_devices = 2 };
        IommufdReason several, one;
        _cleanup_free_ char *why = NULL;

        if (!d || d->unreachable || !d->libvirt_version) {
                if (!f.xen && config->iommufd != IOMMUFD_MODE_NO)
                        check_add(
                                report, CHECK_UNKNOWN, NULL,
                                config->iommufd == IOMMUFD_MODE_YES
                                        ? "Iommufd=yes: documents use iommufd. Whether libvirt and QEMU have it is not "
                                          "known."
                                        : "libvirt and QEMU are not known, so documents use no iommufd yet.");
                return;
        }
        f.libvirt = read_features(d);
        iommufd_find_cdevs(facts->policy->inventory, &f);
        several = iommufd_choose(&f);
        why = iommufd_explain(&f, several);
        if (!why || !iommufd_is_told(several))
                return;
        if (f.mode == IOMMUFD_MODE_YES && !iommufd_is_used(several))
                return check_add(report, CHECK_WARNING, "Set Iommufd=auto.",
                                 "Iommufd=yes, but guests cannot have iommufd, so there is no document for them. %s",
                                 why);
        if (f.mode == IOMMUFD_MODE_YES && !iommufd_has_peers(&f))
                return check_add(report, CHECK_WARNING, "Set Iommufd=auto.", "Iommufd=yes. %s", why);
        f.n_devices = 1;
        one = iommufd_choose(&f);
        check_add(report, CHECK_OK, NULL, "Guests %s iommufd. %s",
                  iommufd_is_used(several) ? "have"
                  : iommufd_is_used(one)   ? "with several devices do not have"
                                           : "do not have",
                  why);
}

/* Check: which confidential guests the node can run. A type for which the host's KVM has no parameter is not reported.
 * If KVM has neither parameter and a pool has ConfidentialMode=, one finding says so. */

static const Pool *find_confidential_pool(const Config *config) {
        for (size_t i = 0; i < config->n_pools; i++)
                if (config->pools[i].confidential_mode != CONFIDENTIAL_MODE_OFF)
                        return &config->pools[i];
        return NULL;
}

static void check_kind(const CheckFacts *facts, Confidential type, const Pool *pool, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const DaemonReport *d = facts->daemon;
        bool asked = d && !d->unreachable && d->libvirt_version;
        ConfidentialFacts f = {
                .type = type,
                .host = inv->confidential,
                .libvirt = asked ? read_features(d) : (LibvirtFeatures) { 0 },
                .xen = inv->xen,
                .x86 = streq(inventory_architecture(inv), ARCHITECTURE_X86_64),
                .iommufd = { .mode = facts->policy->config->iommufd, .kernel = inv->kernel, .n_devices = 1 },
        };
        _cleanup_refusal_ Refusal why = { 0 };

        f.iommufd.confidential = true;
        f.iommufd.libvirt = f.libvirt;
        iommufd_find_cdevs(inv, &f.iommufd);
        if (confidential_check(&f, &why) != VERDICT_NONE)
                check_add(report, pool ? CHECK_WARNING : CHECK_OK, pool ? why.remedy : NULL, "%s", why.message ?: "");
        else if (asked && !f.libvirt.firmware[type])
                check_add(report, pool ? CHECK_WARNING : CHECK_OK, NULL,
                          "Guests can have %s with a firmware that the template names: libvirt finds none.",
                          confidential_title(type));
        else
                check_add(report, CHECK_OK, NULL, "Guests can have %s%s.", confidential_title(type),
                          asked ? "" : ", as far as the kernel tells");
}

/* Check: NVIDIA supports one confidential mode for all GPUs of a node
 * (docs.nvidia.com/attestation/attestation-client-tools-ppcie). */
static void check_modes(const Policy *policy, CheckReport *report) {
        const PciDevice *first = NULL;

        for (size_t i = 0; i < policy->inventory->n_devices; i++) {
                const PciDevice *dev = &policy->inventory->devices[i];
                const Pool *pool = policy_pool(policy, dev), *other = first ? policy_pool(policy, first) : NULL;

                if (!pool || dev->vendor != PCI_VENDOR_NVIDIA || !confidential_has_mode(dev))
                        continue;
                if (other && pool->confidential_mode != other->confidential_mode)
                        return check_add(report, CHECK_WARNING, "Give all pools of GPUs the same ConfidentialMode=.",
                                         "Pools '%s' and '%s' have GPUs in different confidential modes, and NVIDIA "
                                         "supports one mode for all GPUs of a node.",
                                         other->name, pool->name);
                first = first ?: dev;
        }
}

void check_confidential(const CheckFacts *facts, CheckReport *report) {
        const ConfidentialHost *host = &facts->policy->inventory->confidential;
        const Pool *pool = find_confidential_pool(facts->policy->config);

        for (Confidential c = CONFIDENTIAL_SNP; c <= CONFIDENTIAL_TDX; c++)
                if (host->parameters[c] != MODULE_PARAMETER_ABSENT)
                        check_kind(facts, c, pool, report);
        if (pool && host->parameters[CONFIDENTIAL_SNP] == MODULE_PARAMETER_ABSENT &&
            host->parameters[CONFIDENTIAL_TDX] == MODULE_PARAMETER_ABSENT)
                check_add(report, CHECK_WARNING,
                          "Load kvm_amd or kvm_intel of a kernel with SEV-SNP or TDX, or remove ConfidentialMode=.",
                          "Pool '%s' has ConfidentialMode=%s, but KVM of this host has no confidential guests.",
                          pool->name, confidential_mode_to_string(pool->confidential_mode));
        if (pool)
                check_modes(facts->policy, report);
}

static bool is_told(const CheckReport *report, const char *problem) {
        for (size_t i = 0; i < report->n; i++)
                if (streq(report->findings[i].message, problem))
                        return true;
        return false;
}

void check_daemon(const CheckFacts *facts, CheckReport *report) {
        const DaemonReport *d = facts->daemon;
        size_t n = 0;

        if (!d)
                check_add(report, CHECK_UNKNOWN, NULL, "The daemon is not asked for a recorded node.");
        else if (d->unreachable)
                check_add(report, CHECK_WARNING, NULL, "%s", d->unreachable);
        if (!d || d->unreachable)
                return;
        if (d->read_only)
                check_add(report, CHECK_FAILURE, NULL, "%s", d->read_only);
        for (size_t i = 0; i < d->n_problems; i++)
                if (is_told(report, d->problems[i]))
                        n++;
                else
                        check_add(report, CHECK_WARNING, NULL, "%s", d->problems[i]);
        if (n > 0)
                check_add(report, CHECK_WARNING, NULL, "passthroughd reports %zu problem%s that %s named above.", n,
                          PLURAL(n), ARE(n));
}
