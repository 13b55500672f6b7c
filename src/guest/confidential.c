/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules for confidential guests. A plan and a document are checked with the rules about the host and the
 * allocation, a document also with the rules about the template.
 */

#include "guest/confidential.h"

#include "domxml-internal.h"
#include "util/strings.h"

#define SEV (1U << CONFIDENTIAL_SEV)
#define SNP (1U << CONFIDENTIAL_SNP)
#define TDX (1U << CONFIDENTIAL_TDX)
#define ALL (SEV | SNP | TDX)
#define NOT (1U << CONFIDENTIAL_NONE)

#define QEMU_GIVES_DEVICES 10001000U
#define QEMU_RESETS        11000000U
#define CONTAINER_SPARE    32768U /* mappings of a container for BARs and other memory */
#define BASE_PAGE          4096U

#define CLASS_NVSWITCH 0x0680U

/* GB100, the lowest device ID of Blackwell; Ampere and Ada have 20xx, 22xx and 24xx to 28xx. */
#define FIRST_BLACKWELL 0x2900U

static bool is_nvswitch(const PciDevice *dev) {
        return dev->vendor == PCI_VENDOR_NVIDIA && dev->class >> 8 == CLASS_NVSWITCH;
}

static bool works_on_data(const PciDevice *dev) {
        return pci_device_is_accelerator(dev) || is_nvswitch(dev);
}

bool confidential_has_mode(const PciDevice *dev) {
        return dev->type != PCI_TYPE_VF && works_on_data(dev);
}

/* Returns true for a GPU of GH100: H100, H200, H20, GH200 (pci.ids, vendor 10de). */
static bool is_hopper(const PciDevice *dev) {
        return dev->vendor == PCI_VENDOR_NVIDIA && dev->device >> 8 == 0x23 && pci_device_is_gpu(dev);
}

/*
 * Returns the mode of the device's pool; off if `pool` is NULL or the device cannot have that mode (README of
 * gpu-admin-tools, pci.ids).
 */
static ConfidentialMode mode_of(const PciDevice *dev, const Pool *pool) {
        bool can = pool && dev->vendor == PCI_VENDOR_NVIDIA && confidential_has_mode(dev);

        if (can && !is_nvswitch(dev) && !is_hopper(dev))
                can = pool->confidential_mode != CONFIDENTIAL_MODE_PROTECTED_PCIE && dev->device >= FIRST_BLACKWELL;
        return can ? pool->confidential_mode : CONFIDENTIAL_MODE_OFF;
}

static bool has_device(const Allocation *a, const PciDevice *dev) {
        const AllocationDevice *d = allocation_find_device(a, dev->address);

        return d && d->role == DEVICE_ROLE_ASSIGNED;
}

/* Collects the facts about the guest's GPUs, accelerators and NVSwitches. */
static void find_gpus(const Inventory *inv, const Config *config, const Allocation *a, ConfidentialFacts *f) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const PciDevice *dev = inventory_find(inv, d->address);
                const Pool *pool = d->pool ? config_find_pool(config, d->pool) : NULL;
                ConfidentialMode mode;
                bool protects;

                f->has_vgpu |= d->vgpu_type > 0;
                if (!dev || d->role != DEVICE_ROLE_ASSIGNED || !works_on_data(dev))
                        continue;
                mode = mode_of(dev, pool);
                protects = mode != CONFIDENTIAL_MODE_OFF && pci_device_is_gpu(dev);
                f->modes |= CONFIDENTIAL_MODE_BIT(mode);
                f->n_gpus += protects;
                f->has_hopper |= protects && is_hopper(dev);
                f->assumes_mode |= protects && dev->mode == CONFIDENTIAL_MODE_UNKNOWN;
        }
}

static void find_others(const Inventory *inv, const Allocation *a, ConfidentialFacts *f) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];

                if (dev->vendor != PCI_VENDOR_NVIDIA || !confidential_has_mode(dev) || has_device(a, dev))
                        continue;
                f->lacks_gpu |= pci_device_is_gpu(dev);
                f->lacks_switch |= is_nvswitch(dev);
        }
}

ConfidentialFacts confidential_facts(const Inventory *inv, const Config *config, const Allocation *a,
                                     Confidential type) {
        ConfidentialFacts f = {
                .type = type,
                .host = inv->confidential,
                .libvirt = inv->libvirt,
                .xen = config->hypervisor == HYPERVISOR_XEN,
                .x86 = streq(inventory_architecture(inv), ARCHITECTURE_X86_64),
                .memory = allocation_memory(a),
                .page_size = a->page_size,
                .vcpus = (unsigned) a->n_pins,
                .n_cells = a->n_cells,
                .shares_memory = a->n_regions > 0,
        };

        find_gpus(inv, config, a, &f);
        if (type == CONFIDENTIAL_NONE)
                return f;
        f.iommufd = iommufd_facts(inv, config, a);
        f.iommufd.confidential = confidential_is_private(type);
        if (f.n_gpus > 0)
                find_others(inv, a, &f);
        return f;
}

static bool has_mode(const ConfidentialFacts *f, ConfidentialMode mode) {
        return f->modes & CONFIDENTIAL_MODE_BIT(mode);
}

/* Returns true for the modes in which a GPU protects only its own memory, and the guest's driver has a session with
 * each GPU. */
static bool is_single(const ConfidentialFacts *f) {
        return has_mode(f, CONFIDENTIAL_MODE_ON) || has_mode(f, CONFIDENTIAL_MODE_DEVTOOLS);
}

static bool runs_xen(const ConfidentialFacts *f) {
        return f->xen || !f->x86;
}

static bool lacks_libvirt(const ConfidentialFacts *f) {
        return f->libvirt.known && !f->libvirt.security[f->type];
}

static bool is_passthrough(const ConfidentialFacts *f) {
        return f->host.passthrough && f->host.parameters[f->type] == MODULE_PARAMETER_NO;
}

static bool lacks_parameter(const ConfidentialFacts *f) {
        return f->host.parameters[f->type] != MODULE_PARAMETER_YES;
}

static bool lacks_slot(const ConfidentialFacts *f) {
        return f->host.slots[f->type] > 0 && f->others >= f->host.slots[f->type];
}

static bool has_old_qemu(const ConfidentialFacts *f) {
        return f->iommufd.n_devices > 0 && f->libvirt.known && f->libvirt.qemu < QEMU_GIVES_DEVICES;
}

static bool lacks_iommufd(const ConfidentialFacts *f) {
        IommufdReason reason = iommufd_choose(&f->iommufd);

        return reason != IOMMUFD_NO_DEVICE && !iommufd_is_used(reason) &&
               f->host.dma_entries < f->memory / BASE_PAGE + CONTAINER_SPARE;
}

static bool turns_off_iommufd(const ConfidentialFacts *f) {
        return lacks_iommufd(f) && iommufd_choose(&f->iommufd) == IOMMUFD_OFF;
}

static bool has_hugepages(const ConfidentialFacts *f) {
        return f->page_size > 0;
}

static bool needs_viommu(const ConfidentialFacts *f) {
        return f->vcpus > DOMXML_PLAIN_VCPUS_MAX;
}

static bool shares_memory(const ConfidentialFacts *f) {
        return f->shares_memory;
}

static bool has_vgpu(const ConfidentialFacts *f) {
        return f->has_vgpu;
}

static bool has_plain_gpu(const ConfidentialFacts *f) {
        return has_mode(f, CONFIDENTIAL_MODE_OFF);
}

/* Returns true when the pool of one of the guest's GPUs or NVSwitches has a confidential mode. Returns false without
 * vCPUs: then another program makes the guest, and must check this itself. */
static bool has_protected_gpu(const ConfidentialFacts *f) {
        return f->vcpus > 0 && f->modes & ~CONFIDENTIAL_MODE_BIT(CONFIDENTIAL_MODE_OFF);
}

static bool has_several_modes(const ConfidentialFacts *f) {
        return f->modes & (f->modes - 1);
}

static bool has_several_hoppers(const ConfidentialFacts *f) {
        return is_single(f) && f->has_hopper && f->n_gpus > 1;
}

static bool has_some_gpus(const ConfidentialFacts *f) {
        return is_single(f) && f->n_gpus > 1 && f->lacks_gpu;
}

static bool has_some_of_board(const ConfidentialFacts *f) {
        return has_mode(f, CONFIDENTIAL_MODE_PROTECTED_PCIE) && (f->lacks_gpu || f->lacks_switch);
}

static char *tell_iommufd(const ConfidentialFacts *f) {
        return iommufd_explain(&f->iommufd, iommufd_choose(&f->iommufd));
}

static char *tell_slots(const ConfidentialFacts *f) {
        return string_format("The host has keys for %u such guests (misc.capacity of cgroups).",
                             f->host.slots[f->type]);
}

static char *tell_qemu(const ConfidentialFacts *f) {
        return string_format("This node has QEMU %u.%u.", f->libvirt.qemu / 1000000, f->libvirt.qemu / 1000 % 1000);
}

#define WHY_IOMMUFD   "devices need iommufd: a container of VFIO has too few mappings for the pages of the guest."
#define REMEDY_PLAIN  "Ask for a guest that is not confidential, or on another node."
#define REMEDY_RESCAN "run 'passthroughctl rescan'."
#define REMEDY_BOARD  "Ask for all GPUs and NVSwitches of the node, from pools with ConfidentialMode=protected-pcie."

/* The rules about host and allocation. The first broken rule makes the refusal. For a confidential guest, "With
 * SEV-SNP, " or the like precedes the text `why`. */
static const struct {
        unsigned types;
        bool (*is_broken)(const ConfidentialFacts *f);
        const char *why;
        const char *remedy;
        char *(*tell)(const ConfidentialFacts *f); /* a further sentence, which the caller frees; NULL: none */
} rules[] = {
        /* Without KVM, QEMU 11.1.3 ends at its start: "KVM required". SEV-SNP and TDX are features of KVM on x86. */
        { ALL, runs_xen, "a guest needs KVM on x86, which this node does not have.", REMEDY_PLAIN, NULL },
        /* Kernel 8388f7df936b and fb2accadaa94: SNP is off while domains of the IOMMU are identity domains. */
        { SNP, is_passthrough, "the IOMMU must translate: the kernel command line has iommu=pt or iommu.passthrough=1.",
          "Remove it from the kernel command line and reboot.", NULL },
        /* libvirt lists sev-snp on each host with SEV (11.3, qemu_capabilities.c:3601), and tdx on each host (before
         * 11.10, NEWS). So KVM's parameter decides, as in Nova (doc/source/admin/sev.rst, spec intel-tdx). */
        { SEV, lacks_parameter, "KVM cannot start a guest: the parameter sev of kvm_amd is not Y.",
          "Turn on SEV in the firmware setup, load kvm_amd with sev=1, and " REMEDY_RESCAN, NULL },
        { SNP, lacks_parameter, "KVM cannot start a guest: the parameter sev_snp of kvm_amd is not Y.",
          "Turn on SEV-SNP in the firmware setup, boot Linux 6.11 or later, load kvm_amd with sev_snp=1, "
          "and " REMEDY_RESCAN,
          NULL },
        { TDX, lacks_parameter, "KVM cannot start a guest: the parameter tdx of kvm_intel is not Y.",
          "Turn on TDX in the firmware setup, boot Linux 6.16 or later, load kvm_intel with tdx=1, and " REMEDY_RESCAN,
          NULL },
        /* libvirt's domaincommon.rng has sev since libvirt 4.4, sev-snp since 10.5, and tdx since 11.6. */
        { SEV, lacks_libvirt, "libvirt and QEMU cannot start a guest: libvirt does not list it.",
          "See <launchSecurity> of 'virsh domcapabilities'.", NULL },
        { SNP, lacks_libvirt, "libvirt and QEMU cannot start a guest: libvirt does not list sev-snp.",
          "Update libvirt to 10.5 or later, and QEMU to 9.1 or later.", NULL },
        { TDX, lacks_libvirt, "libvirt and QEMU cannot start a guest: libvirt does not list tdx.",
          "Update libvirt to 11.10 or later, and QEMU to 10.1 or later.", NULL },
        /* Each guest has a key in the memory controller (KubeVirt VEP 80, Nova's specs sev-snp and intel-tdx). */
        { ALL, lacks_slot, "no further guest can start.",
          "Release a confidential guest, or give them more keys in the firmware setup and " REMEDY_RESCAN, tell_slots },
        /* In QEMU 10.0.13 a guest with guest_memfd cannot have a VFIO device: guest_memfd requires that memory can be
         * discarded, VFIO disables discarding, and whichever comes second fails with EBUSY (hw/vfio/container.c,
         * system/physmem.c). Later versions tell VFIO which pages are shared (ram-block-attributes.c in 10.2.2).
         * NVIDIA's reference is QEMU 10.1 with patches. */
        { SNP | TDX, has_old_qemu, "QEMU gives devices to a guest from version 10.1 on.",
          "Update QEMU, or ask without devices.", tell_qemu },
        /* Each page of 4 KiB is a mapping of its own, and a container has 65535 mappings by default
         * (hw/vfio/listener.c:298 of QEMU 10.2.2). Kata Containers refuses devices without iommufd too (qemu.go:1423,
         * issue 12393). */
        { SNP | TDX, turns_off_iommufd, WHY_IOMMUFD, "Set Iommufd=auto, or remove <iommufd>.", tell_iommufd },
        { SNP | TDX, lacks_iommufd, WHY_IOMMUFD,
          "Update the node, or load vfio_iommu_type1 with a dma_entry_limit= of the guest's 4 KiB pages and 32768 "
          "more, and " REMEDY_RESCAN,
          tell_iommufd },
        /* QEMU does not free a hugepage of shared memory when its pages become private (accel/kvm/kvm-all.c).
         * guest_memfd has base pages only. Sources: Kata's enable_hugepages=false, Nova's spec intel-tdx. */
        { SNP | TDX, has_hugepages,
          "hugepages are useless: private memory has pages of 4 KiB, and the hugepages would be needed besides.",
          "Ask without --page-size.", NULL },
        /* DMA uses shared pages even with an IOMMU. With an IOMMU, libvirt locks the guest's memory once per device.
         * Kata has enable_iommu=false. libvirt requires an IOMMU for many vCPUs. */
        { ALL, needs_viommu, "a guest has no IOMMU, so it can have 255 vCPUs at most.", "Ask for fewer vCPUs.", NULL },
        /* Other programs cannot read private memory (AMDSEV issue 269). libvirt accepts ivshmem nevertheless. */
        { SNP | TDX, shares_memory, "a guest cannot share memory with others.", "Ask without --shared-memory.", NULL },
        /* NVIDIA's release notes list no vGPU and no MIG device with a confidential mode. */
        { ALL, has_vgpu, "a guest cannot have a vGPU.", "Ask for a whole GPU of a pool with ConfidentialMode=.", NULL },
        /* A confidential guest does not work with a GPU in mode off, "and vice versa" (Kata's guide
         * NVIDIA-GPU-passthrough; tdx-tools issue 440). */
        { ALL, has_plain_gpu,
          "a guest cannot have a GPU or accelerator without a confidential mode: it would work on data in the clear.",
          "Ask for GPUs of a pool with ConfidentialMode=on, devtools or protected-pcie: NVIDIA's from Hopper on have "
          "these modes, and Hopper alone has protected-pcie.",
          NULL },
        { NOT, has_protected_gpu, "A GPU in a confidential mode works only in a confidential guest.",
          "Ask with --confidential snp or tdx, or for GPUs of a pool without ConfidentialMode=.", NULL },
        /* NVIDIA supports two configurations: all GPUs in CC mode with one GPU for each guest, or all GPUs in PPCIe
         * mode for one guest (docs.nvidia.com/attestation/attestation-client-tools-ppcie). NVML has one mode for all
         * GPUs of a guest. */
        { ALL, has_several_modes, "all GPUs of a guest have the same mode.", "Ask for GPUs of one ConfidentialMode=.",
          NULL },
        /* See the rule of has_several_modes(). The release notes of R550 TRD3 call several GPUs "undefined behavior".
         */
        { ALL, has_several_hoppers, "a guest can have one Hopper GPU in this mode.",
          "Ask for one GPU, or for all of the node in mode protected-pcie.", NULL },
        /* A guest has one GPU or all GPUs of the node (cloud-native-docs, confidential containers, overview.rst). */
        { ALL, has_some_gpus, "a guest can have one GPU in this mode, or all of the node.",
          "Ask for one GPU, or for all.", NULL },
        /* See the rule of has_several_modes(). Without the NVSwitches CUDA fails with error 802 (Kata issues 13179,
         * 13430). */
        { ALL, has_some_of_board, "protected PCIe gives all GPUs and all NVSwitches of the node to one guest.",
          REMEDY_BOARD, NULL },
};

Verdict confidential_check(const ConfidentialFacts *f, Refusal *ret) {
        for (size_t i = 0; i < ELEMENTSOF(rules); i++) {
                _cleanup_free_ char *detail = NULL;

                if (!(rules[i].types & 1U << f->type) || !rules[i].is_broken(f))
                        continue;
                detail = rules[i].tell ? rules[i].tell(f) : NULL;
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, rules[i].remedy, "%s%s%s%s%s%s",
                              f->type == CONFIDENTIAL_NONE ? "" : "With ",
                              f->type == CONFIDENTIAL_NONE ? "" : confidential_title(f->type),
                              f->type == CONFIDENTIAL_NONE ? "" : ", ", rules[i].why, detail ? " " : "", detail ?: "");
        }
        return VERDICT_NONE;
}

static bool is_any(const ConfidentialFacts *f) {
        return true;
}

static bool has_devices(const ConfidentialFacts *f) {
        return f->iommufd.n_devices > 0;
}

static bool has_cells(const ConfidentialFacts *f) {
        return f->n_cells > 1;
}

static bool ends_at_reset(const ConfidentialFacts *f) {
        return f->libvirt.known && f->libvirt.qemu < QEMU_RESETS;
}

static bool has_devtools(const ConfidentialFacts *f) {
        return has_mode(f, CONFIDENTIAL_MODE_DEVTOOLS);
}

static bool assumes_mode(const ConfidentialFacts *f) {
        return f->assumes_mode;
}

static const struct {
        unsigned types;
        bool (*applies)(const ConfidentialFacts *f);
        const char *text;
} notes[] = {
        /* For a confidential guest, iommufd maps no BARs (cloud-native-docs, confidential containers, overview.rst). */
        { SNP | TDX, has_devices, "Its devices have no peer-to-peer DMA (GPUDirect) between them." },
        /* arch/x86/mm/mem_encrypt.c of Linux. */
        { ALL, is_any,
          "DMA goes through bounce buffers (swiotlb): Linux takes 6% of the guest's memory, from 64 MiB to 1 GiB; the "
          "guest's kernel parameter swiotlb= changes that." },
        /* guest_memfd has the private pages, QEMU's memory backend the shared pages. */
        { SNP | TDX, is_any, "Shared pages are memory of the host beside the private ones." },
        /* mbind() applies to the shared mapping alone (backends/hostmem.c:411 of QEMU 10.2.2). Linux has a policy for
         * guest_memfd since 6.19. */
        { SNP | TDX, has_cells,
          "QEMU binds shared pages alone to a NUMA node; a private page is on the node of the vCPU that first uses "
          "it." },
        /* The host can write anything into fw_cfg. */
        { ALL, is_any,
          "What the guest reads in fw_cfg (its devices, NCCL's topology) is not measured: do not trust it." },
        /* QEMU 10.2.2: "cpus are not resettable, terminating" (system/runstate.c). libvirt starts a TDX guest anew. */
        { SNP, ends_at_reset, "A reboot ends the guest: QEMU resets such guests from version 11.0 on." },
        { ALL, assumes_mode,
          "The mode of its GPU is taken from ConfidentialMode= of the pool: NVIDIA's driver has not told it." },
        /* README of gpu-admin-tools. */
        { ALL, has_devtools, "Its GPU is in mode devtools, in which profilers work and data is not protected." },
};
_Static_assert(ELEMENTSOF(notes) <= CONFIDENTIAL_NOTES_MAX, "all notes fit");

size_t confidential_notes(const ConfidentialFacts *f, const char *ret[static CONFIDENTIAL_NOTES_MAX]) {
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(notes); i++)
                if (notes[i].types & 1U << f->type && notes[i].applies(f))
                        ret[n++] = notes[i].text;
        return n;
}

/* Conditions of the rules about the template. Each returns the element that breaks its rule, or NULL. */

static xmlNode *find_firmware_feature(const Domain *d, const char *name) {
        const xmlNode *firmware = node_find(node_find(d->root, "os"), "firmware");

        for (xmlNode *n = firmware ? firmware->children : NULL; n; n = n->next)
                if (node_is(n, "feature") && node_has(n, "name", name) && node_has(n, "enabled", "yes"))
                        return n;
        return NULL;
}

static const xmlNode *find_emulated(const Domain *d) {
        return d->emulated ? d->root : NULL;
}

static const xmlNode *find_flash(const Domain *d) {
        const xmlNode *os = node_find(d->root, "os"), *loader = node_find(os, "loader");

        return loader && node_has(loader, "type", "pflash") ? loader : node_find(os, "nvram");
}

/*
 * Finds an <os> without UEFI. UEFI is there if firmware='efi' lets libvirt choose it, or if the template names a file.
 */
static const xmlNode *find_bios(const Domain *d) {
        const xmlNode *os = node_find(d->root, "os");

        return os && (node_has(os, "firmware", "efi") || node_find(os, "loader")) ? NULL : os;
}

static const xmlNode *find_secure_boot(const Domain *d) {
        const xmlNode *loader = node_find(node_find(d->root, "os"), "loader");

        return loader && node_has(loader, "secure", "yes") ? loader : find_firmware_feature(d, "secure-boot");
}

static const xmlNode *find_missing_firmware(const Domain *d) {
        const xmlNode *os = node_find(d->root, "os");
        const LibvirtFeatures *f = &d->inv->libvirt;

        return os && node_has(os, "firmware", "efi") && f->known && !f->firmware[d->confidential] ? os : NULL;
}

static const xmlNode *find_feature(const Domain *d, const char *name, const char *attribute, const char *value) {
        const xmlNode *feature = node_find(node_find(d->root, "features"), name);

        return feature && node_has(feature, attribute, value) ? feature : NULL;
}

static const xmlNode *find_smm(const Domain *d) {
        const xmlNode *smm = node_find(node_find(d->root, "features"), "smm");

        return smm && !node_has(smm, "state", "off") ? smm : NULL;
}

static const xmlNode *find_pmu(const Domain *d) {
        return find_feature(d, "pmu", "state", "on");
}

static const xmlNode *find_ioapic(const Domain *d) {
        return find_feature(d, "ioapic", "driver", "kvm");
}

static const xmlNode *find_iommu(const Domain *d) {
        return node_find(d->devices, "iommu");
}

static const xmlNode *find_shmem(const Domain *d) {
        return node_find(d->devices, "shmem");
}

static const xmlNode *find_vhost_user(const Domain *d) {
        for (const xmlNode *n = d->devices->children; n; n = n->next) {
                const xmlNode *driver = node_find(n, "driver");

                if ((node_is(n, "filesystem") && driver && node_has(driver, "type", "virtiofs")) ||
                    ((node_is(n, "interface") || node_is(n, "disk")) && node_has(n, "type", "vhostuser")))
                        return n;
        }
        return NULL;
}

static const xmlNode *find_network_boot(const Domain *d) {
        const xmlNode *os = node_find(d->root, "os");

        for (const xmlNode *n = os ? os->children : NULL; n; n = n->next)
                if (node_is(n, "boot") && node_has(n, "dev", "network"))
                        return n;
        for (const xmlNode *n = d->devices->children; n; n = n->next)
                if (node_is(n, "interface") && node_find(n, "boot"))
                        return n;
        return NULL;
}

/* Finds the disk from which the guest boots, and for which the firmware needs a driver: the one with the lowest <boot
 * order=>, else the first. */
static const xmlNode *find_boot_disk(const Domain *d) {
        const xmlNode *found = NULL;
        unsigned least = UINT32_MAX, order;

        for (const xmlNode *n = d->devices->children; n; n = n->next) {
                const xmlNode *boot = node_is(n, "disk") ? node_find(n, "boot") : NULL;

                if (!node_is(n, "disk"))
                        continue;
                found = found ?: n;
                if (boot && node_get_number(boot, "order", UINT32_MAX - 1, &order) == 0 && order < least) {
                        least = order;
                        found = n;
                }
        }
        return found;
}

static const xmlNode *find_scsi_boot(const Domain *d) {
        const xmlNode *disk = find_boot_disk(d), *target = disk ? node_find(disk, "target") : NULL;

        return target && node_has(target, "bus", "scsi") ? disk : NULL;
}

#define REMEDY_FIRMWARE                                                                                                \
        "Take <os firmware='efi'> alone, or name a firmware that needs no flash: <loader type='rom' readonly='yes'>."

/* The rules about the template, in the form of rules[]. Of these rules libvirt 12.8 itself checks only those about the
 * firmware that it chooses (secure boot, missing firmware) and, with TDX, those about pflash, pmu, smm and ioapic. */
static const struct {
        unsigned types;
        const xmlNode *(*find)(const Domain *d);
        const char *why;
        const char *remedy;
} template_rules[] = {
        /* Without KVM, QEMU 11.1.3 ends at its start: "KVM required". */
        { ALL, find_emulated, "a guest needs KVM.", "Use type='kvm'." },
        /* Private memory is never read-only, so QEMU loads the firmware with -bios (its docs/system/i386/tdx.rst). An
         * SNP guest with pflash fails to start (AMDSEV issue 236). */
        { SNP | TDX, find_flash, "the firmware cannot be in flash, and a guest has no NVRAM.", REMEDY_FIRMWARE },
        /* UEFI firmware measures the kernel of such a guest. KubeVirt and Proxmox require UEFI too. */
        { SNP | TDX, find_bios, "a guest needs UEFI firmware.", REMEDY_FIRMWARE },
        /* libvirt 12.8 finds no firmware with secure boot for SEV and SNP, and KubeVirt refuses secure boot. The
         * firmware for TDX has keys of secure boot. */
        { SEV | SNP, find_secure_boot, "there is no firmware with secure boot.", "Remove secure boot." },
        /* libvirt fails: "Unable to find 'efi' firmware that is compatible". Debian 13 has no descriptor of one.
         */
        { SNP, find_missing_firmware,
          "libvirt finds no firmware: no file of /usr/share/qemu/firmware has the feature amd-sev-snp.",
          "Install one (Debian unstable: ovmf-amdsev) and run 'passthroughctl rescan', or name it: <loader type='rom' "
          "readonly='yes'>." },
        { TDX, find_missing_firmware,
          "libvirt finds no firmware: no file of /usr/share/qemu/firmware has the feature intel-tdx.",
          "Install one (Debian unstable: ovmf-inteltdx) and run 'passthroughctl rescan', or name it: <loader "
          "type='rom' readonly='yes'>." },
        /* target/i386/sev.c and kvm/tdx.c of QEMU. */
        { SNP | TDX, find_smm, "a guest has no System Management Mode.", "Remove <smm>." },
        /* libvirt 12.8 and kvm/tdx.c of QEMU. */
        { TDX, find_pmu, "a guest has no performance counters.", "Remove <pmu>." },
        { TDX, find_ioapic, "the interrupt controller of QEMU is needed.", "Remove <ioapic>." },
        /* See the rule of needs_viommu(). */
        { ALL, find_iommu, "a guest has no IOMMU.", "Remove <iommu>." },
        /* See the rule of shares_memory(). AMDSEV issue 269 and Kata issue 3811 are about vhost-user and virtiofs. */
        { SNP | TDX, find_shmem, "a guest cannot share memory with others.", "Remove <shmem>." },
        { SNP | TDX, find_vhost_user, "no other program can read the guest's memory (vhost-user, virtiofs).",
          "Remove it." },
        /* libvirt, kbase/launch_security_sev: iPXE does not know encrypted memory. KubeVirt refuses such NICs. */
        { ALL, find_network_boot, "a guest cannot boot from the network.", "Remove the boot entry of the interface." },
        /* Nova's spec intel-tdx: the firmware has no driver for SCSI. */
        { TDX, find_scsi_boot, "the firmware cannot boot from a SCSI disk.", "Use bus='virtio' for the boot disk." },
};

static Verdict refuse_type(const Domain *d, const xmlNode *security, Refusal *ret) {
        _cleanup_free_ char *type = node_get(security, "type");

        if (d->a->confidential == CONFIDENTIAL_NONE || !type)
                return refuse_template(ret, security, NULL, "Use sev, sev-snp or tdx.",
                                       "The template has <launchSecurity type='%s'>, which passthroughd does not know.",
                                       type ? QUOTABLE(type) : "");
        return refuse_template(ret, security, NULL, "Remove <launchSecurity>.",
                               "The template has <launchSecurity type='%s'>, but '%s' is allocated for %s.",
                               QUOTABLE(type), d->a->name, confidential_title(d->a->confidential));
}

Verdict domain_set_confidential(Domain *d, Refusal *ret) {
        const xmlNode *security = node_find(d->root, "launchSecurity");

        d->confidential = d->a->confidential;
        for (Confidential c = CONFIDENTIAL_NONE + 1; security && c < _CONFIDENTIAL_MAX; c++)
                if (node_has(security, "type", confidential_libvirt_name(c)) &&
                    (d->confidential == CONFIDENTIAL_NONE || d->confidential == c)) {
                        d->confidential = c;
                        return VERDICT_NONE;
                }
        return security ? refuse_type(d, security, ret) : VERDICT_NONE;
}

Verdict domain_check_confidential(const Domain *d, Refusal *ret) {
        ConfidentialFacts f = confidential_facts(d->inv, d->config, d->a, d->confidential);
        Verdict v;

        f.iommufd = d->iommufd_facts;
        v = confidential_check(&f, ret);
        for (size_t i = 0; i < ELEMENTSOF(template_rules) && v == VERDICT_NONE; i++) {
                const xmlNode *at = template_rules[i].types & 1U << d->confidential ? template_rules[i].find(d) : NULL;

                if (at)
                        v = refuse_template(ret, at, NULL, template_rules[i].remedy, "With %s, %s",
                                            confidential_title(d->confidential), template_rules[i].why);
        }
        return v;
}

/* libvirt's default policy. Bit 17 must be 1; bit 16 permits SMT (SEV-SNP firmware ABI, guest policy). */
#define SNP_POLICY "0x30000"

static void write_security(Domain *d) {
        xmlNode *security = node_find(d->root, "launchSecurity");

        if (security)
                return;
        security = domain_add(d, "launchSecurity");
        node_set(d, security, "type", "%s", confidential_libvirt_name(d->confidential));
        if (d->confidential == CONFIDENTIAL_SNP)
                node_set_text(d, node_add(d, security, "policy"), SNP_POLICY);
}

/* Makes libvirt choose a firmware that is not in flash: for firmware='efi', versions before 11.8 choose one in flash
 * (NEWS of 11.8.0). */
static void write_firmware(Domain *d) {
        xmlNode *os = node_find(d->root, "os");

        if (d->confidential != CONFIDENTIAL_SEV && node_has(os, "firmware", "efi"))
                node_set(d, node_need(d, os, "loader"), "stateless", "yes");
}

/* With TDX, writes three features with QEMU's values for such guests: libvirt refuses any other value. */
static void write_features(Domain *d) {
        xmlNode *features;

        if (d->confidential != CONFIDENTIAL_TDX)
                return;
        features = node_find(d->root, "features") ?: domain_add(d, "features");
        node_set(d, node_need(d, features, "ioapic"), "driver", "qemu");
        node_set(d, node_need(d, features, "pmu"), "state", "off");
        node_set(d, node_need(d, features, "smm"), "state", "off");
}

/* Removes the ROM of virtio interfaces: iPXE does not know encrypted memory (libvirt, kbase/launch_security_sev). */
static void remove_roms(Domain *d) {
        for (xmlNode *n = d->devices->children; n; n = n->next) {
                const xmlNode *model = node_is(n, "interface") ? node_find(n, "model") : NULL;
                _cleanup_free_ char *type = model ? node_get(model, "type") : NULL;

                if (!type || strncmp(type, "virtio", 6) != 0)
                        continue;
                node_remove_all(n, "rom");
                node_set(d, node_add(d, n, "rom"), "enabled", "no");
        }
}

void domain_write_confidential(Domain *d) {
        if (d->confidential == CONFIDENTIAL_NONE)
                return;
        write_security(d);
        write_firmware(d);
        write_features(d);
        remove_roms(d);
}

void domain_write_confidential_notes(Domain *d, xmlNode *metadata) {
        ConfidentialFacts f = confidential_facts(d->inv, d->config, d->a, d->confidential);
        const char *texts[CONFIDENTIAL_NOTES_MAX];
        size_t n = confidential_notes(&f, texts);
        xmlNode *node = n > 0 ? node_add(d, metadata, "confidential") : NULL;

        node_set(d, node, "type", "%s", confidential_to_string(d->confidential));
        for (size_t i = 0; i < n; i++)
                node_set_text(d, node_add(d, node, "note"), "%s", texts[i]);
}
