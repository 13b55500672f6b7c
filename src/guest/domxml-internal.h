/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the parts of domxml share: one document being made, and what writes its nodes. */

#include "guest/domxml.h"
#include "guest/guestpci.h"
#include "guest/xmlnode.h"

#define DOMXML_QEMU_NAMESPACE "http://libvirt.org/schemas/domain/qemu/1.0"

typedef struct Domain {
        const Inventory *inv;
        const Config *config;
        const Allocation *a;
        xmlDoc *doc;      /* the template or the skeleton, changed in place */
        xmlNode *root;    /* <domain> */
        xmlNode *devices; /* its <devices> */
        xmlNode *anchor;  /* our elements go in front of it; NULL: at the end */
        bool aarch64;     /* machine 'virt', else x86_64 with machine 'q35' */
        bool emulated;    /* type='qemu': no KVM, so nothing of the host's CPU to pass through */
        GuestPciRoom room;
        GuestPci *pci;
        bool failed; /* some node could not be made: out of memory */
} Domain;

/* domxml-node.c. No-ops on a NULL node; a failure sets d->failed. */
xmlNode *node_add(Domain *d, xmlNode *parent, const char *name);
void node_set(Domain *d, xmlNode *node, const char *attribute, const char *format, ...) _printf_(4, 5);
void node_set_text(Domain *d, xmlNode *node, const char *format, ...) _printf_(3, 4);
void node_set_cpus(Domain *d, xmlNode *node, const char *attribute, const CpuSet *set);
/* Puts a size in the largest unit that divides it into the text, or into attribute when that is not NULL. */
void node_set_size(Domain *d, xmlNode *node, const char *attribute, uint64_t bytes);
/* A new child of <domain>, in front of the anchor; or an existing one moved there. */
xmlNode *domain_add(Domain *d, const char *name);
xmlNode *domain_take(Domain *d, const char *name);

/* domxml-template.c: text (NULL: the skeleton) to d->doc with everything that is ours removed, or the reason why it
 * cannot serve. */
Verdict domain_load(Domain *d, const char *text, Refusal *ret);
/* domxml-refuse.c. at: what the sentence is about, whose line is added to it; NULL: the template as a whole. device,
 * remedy: or NULL. */
Verdict refuse_template(Refusal *ret, const xmlNode *at, const PciAddress *device, const char *remedy,
                        const char *format, ...) _printf_(5, 6);
/* Of the template. */
long node_line(const xmlNode *node);

/* domxml-schema.c: refuses what no schema of libvirt's permits. */
Verdict domain_check_schema(const Domain *d, Refusal *ret);

/* domxml-check.c: refuses devices that cannot stay, and sets d->room. */
Verdict domain_check_devices(Domain *d, Refusal *ret);

/* domxml-cpu.c: memory, memoryBacking, vcpu, cputune, numatune, cpu. */
void domain_write_memory(Domain *d);
void domain_write_cpus(Domain *d);

/* domxml-topology.c: <topology>, of which sockets x dies x cores x threads are the vCPUs. */
void domain_write_topology(Domain *d, xmlNode *cpu);

/* More vCPUs than eight bits of APIC id can tell apart: libvirt wants an <iommu> that remaps their interrupts. */
#define DOMXML_PLAIN_VCPUS_MAX 255U
static inline bool domain_needs_iommu(const Domain *d) {
        return !d->aarch64 && d->a->n_pins > DOMXML_PLAIN_VCPUS_MAX;
}

/* domxml-devices.c: PCI controllers, hostdevs, memballoon, for many vCPUs an iommu; needs d->pci. */
void domain_write_devices(Domain *d);

/* domxml-nccl.c: what NCCL in the guest is to know; needs d->pci. The caller frees; NULL when out of memory. */
xmlDoc *domain_nccl(Domain *d);
