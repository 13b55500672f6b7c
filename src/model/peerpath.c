/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out how the PCIe fabric routes peer-to-peer requests, by ACS of the ports and ATS of the requester. */

#include <errno.h>
#include <stdio.h>

#include "model/peerpath.h"
#include "util/strings.h"
#include "util/stringtable.h"

#define MELLANOX 0x15b3

static const char *const peer_access_table[_PEER_ACCESS_MAX] = {
        [PEER_ACCESS_UNKNOWN] = "unknown",       [PEER_ACCESS_CARD] = "card",
        [PEER_ACCESS_DIRECT] = "direct",         [PEER_ACCESS_TRANSLATED] = "translated",
        [PEER_ACCESS_REDIRECTED] = "redirected", [PEER_ACCESS_ROOT_COMPLEX] = "root-complex",
};
DEFINE_STRING_TABLE_TO_STRING(peer_access, PeerAccess, _PEER_ACCESS_MAX)

const PciDevice *peer_ats_function(const Inventory *inv, const PciDevice *dev) {
        const PciDevice *pf = dev->type == PCI_TYPE_VF ? inventory_find(inv, dev->physfn) : NULL;

        return pf ? pf : dev;
}

static bool is_one_card(const Inventory *inv, const PciDevice *a, const PciDevice *b) {
        return pci_address_same_slot(peer_ats_function(inv, a)->address, peer_ats_function(inv, b)->address);
}

/* Checks the bits that the kernel's p2pdma checks. */
bool peer_port_redirects(const PciDevice *port) {
        return port->acs_enabled &
               (PCI_ACS_BIT(PCI_ACS_BIT_RR) | PCI_ACS_BIT(PCI_ACS_BIT_CR) | PCI_ACS_BIT(PCI_ACS_BIT_EC));
}

static bool passes_translated(const PciDevice *port) {
        return port->acs_enabled & PCI_ACS_BIT(PCI_ACS_BIT_DT);
}

static bool is_above(const Inventory *inv, int bridge, const PciDevice *dev) {
        int at = dev->parent;

        for (unsigned i = 0; i < PEER_PORTS_MAX && at >= 0; i++) {
                if (at == bridge)
                        return true;
                at = inv->devices[at].parent;
        }
        return false;
}

/* Returns the index of the nearest bridge above both devices, or -1. */
static int find_meeting(const Inventory *inv, const PciDevice *a, const PciDevice *b) {
        int at = a->parent;

        for (unsigned i = 0; i < PEER_PORTS_MAX && at >= 0 && !is_above(inv, at, b); i++)
                at = inv->devices[at].parent;
        return at >= 0 && is_above(inv, at, b) ? at : -1;
}

/* Adds the ports between dev and the bridge `meeting`. Leaves out ports that isolate by definition
 * (PCI_ACS_CLEAN): upstream ports that have their slot alone. Returns false if there are too many ports. */
static bool add_ports(const Inventory *inv, const PciDevice *dev, int meeting, PeerPath *path) {
        unsigned i = 0;

        for (int at = dev->parent; at >= 0 && at != meeting; at = inv->devices[at].parent) {
                if (i++ == PEER_PORTS_MAX || path->n_ports == PEER_PORTS_MAX)
                        return false;
                if (inv->devices[at].acs != PCI_ACS_CLEAN)
                        path->ports[path->n_ports++] = (uint32_t) at;
        }
        return true;
}

static PeerAccess access_of(const Inventory *inv, const PciDevice *asks, const PeerPath *path) {
        bool unknown = false, redirected = false, translated = true;

        for (size_t i = 0; i < path->n_ports; i++) {
                const PciDevice *port = &inv->devices[path->ports[i]];

                unknown = unknown || port->acs == PCI_ACS_UNKNOWN;
                redirected = redirected || peer_port_redirects(port);
                translated = translated && (!peer_port_redirects(port) || passes_translated(port));
        }
        if (redirected && !translated)
                return PEER_ACCESS_REDIRECTED;
        if (unknown)
                return PEER_ACCESS_UNKNOWN;
        if (!redirected)
                return PEER_ACCESS_DIRECT;
        switch (peer_ats_function(inv, asks)->ats) {
        case PCI_ATS_UNKNOWN:
                return PEER_ACCESS_UNKNOWN;
        case PCI_ATS_ON:
                return PEER_ACCESS_TRANSLATED;
        default:
                return PEER_ACCESS_REDIRECTED;
        }
}

void peer_path_find(const Inventory *inv, const PciDevice *asks, const PciDevice *other, PeerPath *ret) {
        int meeting = find_meeting(inv, asks, other);

        *ret = (PeerPath) { .access = PEER_ACCESS_CARD };
        if (is_one_card(inv, asks, other))
                return;
        if (!add_ports(inv, asks, meeting, ret) || !add_ports(inv, other, meeting, ret) || !asks->path ||
            !other->path || !*asks->path || !*other->path)
                ret->access = PEER_ACCESS_UNKNOWN;
        else
                ret->access = meeting < 0 ? PEER_ACCESS_ROOT_COMPLEX : access_of(inv, asks, ret);
}

/* Which ports of a path to list: all that redirect; those that redirect and lack ACS Direct Translated; or those that
 * redirect and have it off. */
typedef enum PortsWanted {
        PORTS_REDIRECTING,
        PORTS_WITHOUT_DT,
        PORTS_TO_SET,
} PortsWanted;

static bool is_wanted(const PciDevice *port, PortsWanted wanted) {
        bool able = port->acs_capabilities & PCI_ACS_BIT(PCI_ACS_BIT_DT);

        if (!peer_port_redirects(port) || wanted == PORTS_REDIRECTING)
                return peer_port_redirects(port);
        return !passes_translated(port) && able == (wanted == PORTS_TO_SET);
}

/* Lists the addresses of the wanted ports, each after `before`. *ret is NULL if there are none. 0 or -ENOMEM. */
static int join_ports(const Inventory *inv, const PeerPath *path, PortsWanted wanted, const char *before,
                      const char *separator, char **ret) {
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < path->n_ports; i++) {
                const PciDevice *port = &inv->devices[path->ports[i]];
                int r;

                if (!is_wanted(port, wanted))
                        continue;
                r = string_replace(&text, "%s%s%s%s", text ? text : "", text ? separator : "", before,
                                   PCI_ADDRESS_STR(port->address));
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(text);
        return 0;
}

static int set_ats(const PciDevice *f, char **text) {
        switch (f->ats) {
        case PCI_ATS_NONE:
                return f->vendor == MELLANOX
                               ? string_replace(text,
                                                "give %s ATS (mlxconfig -d %s set ATS_ENABLED=true, then restart the "
                                                "host)",
                                                PCI_ADDRESS_STR(f->address), PCI_ADDRESS_STR(f->address))
                               : string_replace(text, "give %s ATS, if its firmware has a setting for that",
                                                PCI_ADDRESS_STR(f->address));
        case PCI_ATS_OFF:
                return string_replace(text,
                                      "enable ATS of %s (the kernel does when the IOMMU supports it and pci=noats is "
                                      "not set)",
                                      PCI_ADDRESS_STR(f->address));
        case PCI_ATS_UNKNOWN:
                return string_replace(text, "check that %s supports ATS and that ATS is on",
                                      PCI_ADDRESS_STR(f->address));
        default:
                return 0;
        }
}

/* Says how to set bit 6 of ACS control (Direct Translated) on the ports, and no other bit: the others isolate the
 * devices. */
static int set_translated(const Inventory *inv, const PeerPath *path, char **text) {
        _cleanup_free_ char *ports = NULL, *flags = NULL;
        int r;

        r = join_ports(inv, path, PORTS_TO_SET, "", " and ", &ports);
        if (r < 0)
                return r;
        r = join_ports(inv, path, PORTS_TO_SET, "1xxxxxx@", ";", &flags);
        if (r < 0 || !ports)
                return r;
        return string_replace(text,
                              "%s%senable ACS Direct Translated on %s, with RR, CR and UF left on (kernel parameter "
                              "'pci=config_acs=%s', or until the next boot setpci -s PORT ECAP_ACS+6.w=40:40)",
                              *text ? *text : "", *text ? ", and " : "", ports, flags);
}

static int set_redirect_off(const Inventory *inv, const PeerPath *path, const char *unable, char **ret) {
        _cleanup_free_ char *all = NULL;
        int r = join_ports(inv, path, PORTS_REDIRECTING, "", ";", &all);

        if (r < 0)
                return r;
        return string_replace(ret,
                              "%s cannot let translated requests pass (no ACS Direct Translated). The kernel parameter "
                              "'pci=disable_acs_redir=%s' makes peer-to-peer direct, but merges IOMMU groups: use "
                              "it only where one guest gets all devices below the switch.",
                              unable, all);
}

int peer_path_setting(const Inventory *inv, const PeerPath *path, const PciDevice *asks, char **ret) {
        _cleanup_free_ char *unable = NULL, *text = NULL;
        int r;

        *ret = NULL;
        if (path->access != PEER_ACCESS_REDIRECTED)
                return 0;
        r = join_ports(inv, path, PORTS_WITHOUT_DT, "", " and ", &unable);
        if (r < 0)
                return r;
        if (unable)
                return set_redirect_off(inv, path, unable, ret);
        r = set_ats(peer_ats_function(inv, asks), &text);
        if (r < 0)
                return r;
        r = set_translated(inv, path, &text);
        if (r < 0 || !text)
                return r;
        r = string_replace(&text, "For direct peer-to-peer %s.", text);
        if (r >= 0)
                *ret = TAKE_PTR(text);
        return r;
}
