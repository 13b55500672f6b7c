/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attributes that a PF sets for each of its VFs, independent of the VF's driver: MAC address, VLAN, rates, GUIDs
 * (rtnetlink's IFLA_VF_*, and sysfs of MLNX_OFED and mlx4). This file has the values and their text; host/vfattr.h
 * reads and writes them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/pciaddr.h"
#include "util/cleanup.h"

typedef enum VfAttribute {
        VF_MAC,              /* 48 bits, the first octet uppermost; 0: the PF sets none */
        VF_VLAN,             /* 0 to 4094; 0: none, so the guest may use VLANs itself */
        VF_QOS,              /* priority of the VLAN, 0 to 7 */
        VF_PROTOCOL,         /* VfProtocol of the VLAN */
        VF_TRUST,            /* 0, 1 */
        VF_SPOOF_CHECK,      /* 0, 1 */
        VF_MIN_RATE,         /* Mbit/s, 0: none */
        VF_MAX_RATE,         /* Mbit/s, 0: none */
        VF_LINK,             /* VfLink; InfiniBand: the link policy */
        VF_NODE_GUID,        /* 64 bits, the first octet uppermost; 0: none */
        VF_PORT_GUID,        /* GUID of the VF's first InfiniBand port */
        VF_SECOND_PORT_GUID, /* mlx4: GUID of the VF's second InfiniBand port */
        VF_PKEY,             /* mlx4: partition key at index 0 of the port of VF_PORT_GUID; 16 bits */
        VF_SECOND_PORT_PKEY, /* mlx4: the same at the port of VF_SECOND_PORT_GUID */
        _VF_ATTRIBUTE_MAX,
} VfAttribute;
const char *vf_attribute_to_string(VfAttribute a);

typedef enum VfProtocol {
        VF_PROTOCOL_8021Q, /* "802.1q" */
        VF_PROTOCOL_8021AD,
        _VF_PROTOCOL_MAX,
} VfProtocol;

typedef enum VfLink {
        VF_LINK_AUTO, /* as the PF's link; InfiniBand: policy Follow */
        VF_LINK_UP,
        VF_LINK_DOWN,
        _VF_LINK_MAX,
} VfLink;

typedef struct VfAttributes {
        unsigned set; /* VF_ATTRIBUTE_BIT() of each attribute that has a value */
        uint64_t value[_VF_ATTRIBUTE_MAX];
} VfAttributes;

#define VF_ATTRIBUTE_BIT(a) (1U << (a))
/* Attributes that identify a VF: no two VFs may have the same. */
#define VF_GUID_BITS                                                                                                   \
        (VF_ATTRIBUTE_BIT(VF_NODE_GUID) | VF_ATTRIBUTE_BIT(VF_PORT_GUID) | VF_ATTRIBUTE_BIT(VF_SECOND_PORT_GUID))
#define VF_IDENTITY_BITS (VF_ATTRIBUTE_BIT(VF_MAC) | VF_GUID_BITS)

static inline bool vf_attributes_have(const VfAttributes *v, VfAttribute a) {
        return v->set & VF_ATTRIBUTE_BIT(a);
}
void vf_attributes_put(VfAttributes *v, VfAttribute a, uint64_t value);
/* Copies the attributes that `over` has into v. */
void vf_attributes_merge(VfAttributes *v, const VfAttributes *over);
/* Returns mask, and adds priority and protocol if it has VF_VLAN, because a write of the VLAN may change them. */
unsigned vf_attributes_touched(unsigned mask);
/* Removes the attributes whose bits are not in mask. */
void vf_attributes_keep(VfAttributes *v, unsigned mask);
/* Returns true when v has a MAC address from first to last or, if `guid` is true, any GUID in that range: all GUIDs
 * share one number space. */
bool vf_attributes_have_identity(const VfAttributes *v, bool guid, uint64_t first, uint64_t last);
/* Returns the bits of the attributes of `a` that `b` lacks or has with another value. */
unsigned vf_attributes_differ(const VfAttributes *a, const VfAttributes *b);

/*
 * Parses "mac=02:00:00:00:00:01 vlan=100 qos=3 protocol=802.1ad trust=on spoof-check=off min-rate=100 max-rate=1000
 * link=auto node-guid=02:00:00:00:00:00:00:01 port-guid=... second-port-guid=... pkey=0x8001 second-port-pkey=...",
 * terms in any order, separated by spaces or commas. 0, -EINVAL or -ENOMEM. On -EINVAL *ret_problem, which must be NULL
 * before, is a sentence that the caller frees; *ret is unchanged.
 */
int vf_attributes_parse(const char *text, VfAttributes *ret, char **ret_problem);
/*
 * As vf_attributes_parse(), for attributes that a request or a pool asks for. Also refuses values that no VF can have,
 * such as a group MAC address, qos without vlan, or min-rate above max-rate.
 */
int vf_attributes_parse_wanted(const char *text, VfAttributes *ret, char **ret_problem);
/*
 * Formats the attributes in the order of VfAttribute; "" when none is set. The caller frees; NULL when out of memory.
 */
char *vf_attributes_format(const VfAttributes *v);
/* Formats the value of an attribute as vf_attributes_format() does. buf has VF_VALUE_MAX bytes. */
#define VF_VALUE_MAX 32
const char *vf_value_format(VfAttribute a, uint64_t value, char buf[static VF_VALUE_MAX]);

/* What a PF last reported about one of its VFs. */
typedef struct VfReport {
        PciAddress vf;
        VfAttributes attributes;
} VfReport;

typedef struct VfReportList {
        VfReport *reports; /* ascending by address */
        size_t n;
} VfReportList;

void vf_report_list_done(VfReportList *l);
/* Returns the attributes that were reported about the VF; NULL: no report. */
const VfAttributes *vf_report_find(const VfReportList *l, PciAddress vf);
/*
 * Replaces the report about the VF; NULL attributes remove it. Returns 1 when the report was added, changed or removed,
 * 0 when it is the same, or -ENOMEM.
 */
int vf_report_set(VfReportList *l, PciAddress vf, const VfAttributes *attributes);
