/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that the files domxml*.c, confidential.c and xlcfg.c share. Most edit the document that is being made. */

#include "guest/coherent.h"
#include "guest/domxml.h"
#include "guest/guestpci.h"
#include "guest/iommufd.h"
#include "guest/xmlnode.h"

#define DOMXML_QEMU_NAMESPACE "http://libvirt.org/schemas/domain/qemu/1.0"

#define DOMXML_DISK "/var/lib/libvirt/images/%s.qcow2" /* the disk in the skeleton; %s: the allocation's name */

typedef struct Domain {
        const Inventory *inv;
        const Config *config;
        const Allocation *a;
        xmlDoc *doc;               /* the template or the skeleton, edited in place */
        xmlNode *root;             /* <domain> */
        xmlNode *devices;          /* its <devices> */
        xmlNode *anchor;           /* new elements are inserted before this one; NULL: at the end */
        bool aarch64;              /* machine 'virt'; false: x86_64 and machine 'q35', or 'xenfv' for Xen */
        bool xen;                  /* type='xen': no PCI tree, and none of QEMU's options */
        Confidential confidential; /* as the allocation, or as <launchSecurity> of the template */
        bool emulated;             /* type='qemu': no KVM, so the guest cannot have the host's CPU */
        IommufdFacts iommufd_facts;
        IommufdReason iommufd; /* for all devices of the guest */
        GuestPciRoom room;
        GuestPci *pci;         /* NULL for Xen */
        unsigned memory_cells; /* number for each coherent GPU: memory_cells_each() */
        xmlNode *smmu;         /* SMMU of the template, copied for each expander; NULL: none to copy */
        bool failed;           /* out of memory while a node was made */
} Domain;

/* domxml.c: refuses an allocation that cannot have a document. */
Verdict domain_check(const Allocation *a, Refusal *ret);

/* domxml-node.c. Out of memory sets d->failed. Functions that set something do nothing for a NULL node; node_add() and
 * node_need() return NULL for a NULL parent, and set d->failed. */
xmlNode *node_add(Domain *d, xmlNode *parent, const char *name);
/* Returns the child of this name, which is added if missing. */
xmlNode *node_need(Domain *d, xmlNode *parent, const char *name);
void node_set(Domain *d, xmlNode *node, const char *attribute, const char *format, ...) _printf_(4, 5);
void node_set_text(Domain *d, xmlNode *node, const char *format, ...) _printf_(3, 4);
void node_set_cpus(Domain *d, xmlNode *node, const char *attribute, const CpuSet *set);
/* Writes a size in the largest unit that divides it, and the attribute `unit`. The size is written to `attribute` or,
 * if that is NULL, as the text of the node. */
void node_set_size(Domain *d, xmlNode *node, const char *attribute, uint64_t bytes);
/* Adds a child to <domain> before the anchor; domain_take() moves an existing child there, or adds a missing one. */
xmlNode *domain_add(Domain *d, const char *name);
xmlNode *domain_take(Domain *d, const char *name);
/* Adds a comment before <domain>. */
void domain_add_comment(Domain *d, const char *format, ...) _printf_(2, 3);
/* Formats a node or, if node is NULL, the whole document. The caller frees; NULL when out of memory. */
char *document_text(xmlDoc *doc, xmlNode *node);

/*
 * domxml-template.c: parses the template (NULL: the skeleton) into d->doc and removes the elements that the daemon
 * writes. Refuses a template that cannot be used.
 */
Verdict domain_load(Domain *d, const DomainTemplate *template, Refusal *ret);
/*
 * domxml-refuse.c. at: the node in question; its line is added to the sentence. NULL: the whole template. device and
 * remedy may be NULL.
 */
Verdict refuse_template(Refusal *ret, const xmlNode *at, const PciAddress *device, const char *remedy,
                        const char *format, ...) _printf_(5, 6);
/* Returns the template line of the node. */
long node_line(const xmlNode *node);

/* domxml-schema.c: refuses text between elements, and elements that <domain> repeats. */
Verdict domain_check_schema(const Domain *d, Refusal *ret);

/* domxml-permit.c: refuses host devices, memory, paths to either, devices that passthroughd does not know, and, unless
 * qemu_commandline is true, elements of other namespaces, such as QEMU's. */
Verdict domain_check_permitted(const Domain *d, bool qemu_commandline, Refusal *ret);

/* domxml-check.c: refuses devices that do not fit beside those of the allocation, and sets d->room and d->smmu. */
Verdict domain_check_devices(Domain *d, Refusal *ret);
/* Refuses a template's SMMU that cannot serve all devices. d->pci must be set. */
Verdict domain_check_smmus(const Domain *d, Refusal *ret);

/* confidential.c. The first function sets d->confidential, and refuses a <launchSecurity> that passthroughd does not
 * know or that contradicts the allocation. The second one refuses what a confidential guest cannot
 * have, and needs d->iommufd_facts. The third one writes the elements of a confidential guest. */
Verdict domain_set_confidential(Domain *d, Refusal *ret);
Verdict domain_check_confidential(const Domain *d, Refusal *ret);
void domain_write_confidential(Domain *d);
/* Adds an element for each note of confidential_notes(). */
void domain_write_confidential_notes(Domain *d, xmlNode *metadata);

/* domxml-cpu.c: memory, memoryBacking, vcpu, cputune, numatune, cpu. */
void domain_write_memory(Domain *d);
void domain_write_cpus(Domain *d);
void domain_write_vcpus(Domain *d);
void domain_write_cells(Domain *d, xmlNode *cpu);
/* Returns the distance of two guest cells. each: memory_cells_each(). */
unsigned guest_cell_distance(const Inventory *inv, const Allocation *a, unsigned each, size_t from, size_t to);

/* domxml-xen.c: memory, CPUs and devices of a guest of Xen. */
void domain_write_xen(Domain *d, GuestInfo info);

/* domxml-topology.c: <topology>; sockets x dies x cores x threads is the number of vCPUs. */
void domain_write_topology(Domain *d, xmlNode *cpu);

/* With more than 255 vCPUs, APIC ids have more than eight bits. For these libvirt requires an <iommu> with interrupt
 * remapping. */
#define DOMXML_PLAIN_VCPUS_MAX 255U
static inline bool domain_needs_iommu(const Domain *d) {
        return !d->aarch64 && d->a->n_pins > DOMXML_PLAIN_VCPUS_MAX;
}

/* domxml-devices.c: PCI controllers, hostdevs, shmem, memballoon, IOMMUs, and arguments of QEMU for the MMIO window.
 * d->pci must be set. */
void domain_write_devices(Domain *d);
/* Adds the <hostdev> of a device, without an address in the guest. */
xmlNode *domain_write_hostdev(Domain *d, const AllocationDevice *dev);
/* Adds an address in the guest to a <hostdev>. */
void domain_write_address(Domain *d, xmlNode *hostdev, PciAddress a);
/* Adds the address of a function in the layout to a <hostdev>. */
void domain_write_place(Domain *d, xmlNode *hostdev, const GuestFunction *f);

/* domxml-nccl.c: the topology file for NCCL in the guest. places: one for each device. The caller frees; NULL when out
 * of memory. */
xmlDoc *domain_nccl(Domain *d, const GuestPlace *places);

/* domxml-guestinfo.c: <sysinfo type='fwcfg'>. The first function removes the entries of an earlier document from the
 * template. The second one writes the entries of this document, and needs d->pci. */
void domain_remove_guest_info(Domain *d);
Verdict domain_write_guest_info(Domain *d, GuestInfo info, Refusal *ret);
