/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a PF says of one of its VFs, whatever the VF's own driver does: address, VLAN, rates, GUIDs (domain.md C30 to
 * C37; rtnetlink's IFLA_VF_*). Values and their text only; host/vfattr.h reads and writes them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/pciaddr.h"
#include "util/cleanup.h"

typedef enum VfAttribute {
        VF_MAC,              /* 48 bits, first octet highest; 0: none is given by the PF */
        VF_VLAN,             /* 0 to 4094; 0: none, the guest may tag */
        VF_QOS,              /* 0 to 7, priority of that VLAN */
        VF_PROTOCOL,         /* VfProtocol of that VLAN */
        VF_TRUST,            /* 0, 1 */
        VF_SPOOF_CHECK,      /* 0, 1 */
        VF_MIN_RATE,         /* Mbit/s, 0: none */
        VF_MAX_RATE,         /* Mbit/s, 0: none */
        VF_LINK,             /* VfLink; InfiniBand: the link policy */
        VF_NODE_GUID,        /* 64 bits, as written: first octet highest; 0: none */
        VF_PORT_GUID,        /* of its first port that is InfiniBand */
        VF_SECOND_PORT_GUID, /* mlx4: of the second one */
        VF_PKEY,             /* mlx4: partition key that the guest sees first at the port of VF_PORT_GUID, 16 bits */
        VF_SECOND_PORT_PKEY, /* mlx4: at that of VF_SECOND_PORT_GUID */
        _VF_ATTRIBUTE_MAX,
} VfAttribute;
const char *vf_attribute_to_string(VfAttribute a);

typedef enum VfProtocol {
        VF_PROTOCOL_8021Q, /* "802.1q" */
        VF_PROTOCOL_8021AD,
        _VF_PROTOCOL_MAX,
} VfProtocol;

typedef enum VfLink {
        VF_LINK_AUTO, /* as the PF's; InfiniBand: Follow */
        VF_LINK_UP,
        VF_LINK_DOWN,
        _VF_LINK_MAX,
} VfLink;

typedef struct VfAttributes {
        unsigned set; /* bit 1 << a for each value that is there */
        uint64_t value[_VF_ATTRIBUTE_MAX];
} VfAttributes;

#define VF_ATTRIBUTE_BIT(a) (1U << (a))
/* Who it is: two VFs never have the same. */
#define VF_GUID_BITS                                                                                                   \
        (VF_ATTRIBUTE_BIT(VF_NODE_GUID) | VF_ATTRIBUTE_BIT(VF_PORT_GUID) | VF_ATTRIBUTE_BIT(VF_SECOND_PORT_GUID))
#define VF_IDENTITY_BITS (VF_ATTRIBUTE_BIT(VF_MAC) | VF_GUID_BITS)

static inline bool vf_attributes_have(const VfAttributes *v, VfAttribute a) {
        return v->set & VF_ATTRIBUTE_BIT(a);
}
void vf_attributes_put(VfAttributes *v, VfAttribute a, uint64_t value);
/* Those of over replace those of v. */
void vf_attributes_merge(VfAttributes *v, const VfAttributes *over);
/* mask, and those that a write of one of them may change as well: priority and protocol go with their VLAN. */
unsigned vf_attributes_touched(unsigned mask);
/* Leaves only those of mask. */
void vf_attributes_keep(VfAttributes *v, unsigned mask);
/* The bits of a that b has not, or with another value. */
unsigned vf_attributes_differ(const VfAttributes *a, const VfAttributes *b);

/*
 * "mac=02:00:00:00:00:01 vlan=100 qos=3 protocol=802.1ad trust=on spoof-check=off min-rate=100 max-rate=1000 link=auto
 * node-guid=02:00:00:00:00:00:00:01 port-guid=... second-port-guid=... pkey=0x8001 second-port-pkey=...", terms in any
 * order, spaces or commas between. On -EINVAL *ret_problem, NULL before, is a sentence that the caller frees, *ret
 * untouched. -ENOMEM.
 */
int vf_attributes_parse(const char *text, VfAttributes *ret, char **ret_problem);
/*
 * The same for what somebody asks for: what no VF can be given (a group address, qos without a VLAN, more at least than
 * at most) is a problem too.
 */
int vf_attributes_parse_wanted(const char *text, VfAttributes *ret, char **ret_problem);
/* In the order of VfAttribute. "" when there is none. Caller frees; NULL when out of memory. */
char *vf_attributes_format(const VfAttributes *v);
/* One value as that text has it. VF_VALUE_MAX bytes are enough. */
#define VF_VALUE_MAX 32
const char *vf_value_format(VfAttribute a, uint64_t value, char buf[static VF_VALUE_MAX]);

/* What PFs reported of their VFs when they were asked last. */
typedef struct VfReport {
        PciAddress vf;
        VfAttributes attributes;
} VfReport;

typedef struct VfReportList {
        VfReport *reports; /* ascending by address */
        size_t n;
} VfReportList;

void vf_report_list_done(VfReportList *l);
/* NULL when the VF has none. */
const VfAttributes *vf_report_find(const VfReportList *l, PciAddress vf);
/* Replaces the report of the VF; attributes NULL: removes it. Returns 1 when it differs from the one before, 0 when
 * not, or -ENOMEM. */
int vf_report_set(VfReportList *l, PciAddress vf, const VfAttributes *attributes);
