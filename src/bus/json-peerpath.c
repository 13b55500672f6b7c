/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ACS and ATS on the path between two functions as JSON. Unknown values are null. */

#include "json-internal.h"
#include "model/peerpath.h"

json_object *json_acs_bits(const PciDevice *dev, uint16_t bits) {
        json_object *array;

        if (dev->acs == PCI_ACS_UNKNOWN || dev->acs == PCI_ACS_CLEAN)
                return NULL;
        array = json_object_new_array();
        for (PciAcsBit b = 0; b < _PCI_ACS_BIT_MAX; b++)
                if (bits & PCI_ACS_BIT(b))
                        (void) json_object_array_add(array, json_object_new_string(pci_acs_bit_to_string(b)));
        return array;
}

static json_object *json_port(const PciDevice *port) {
        json_object *o = json_object_new_object(), *redirects = NULL;

        if (port->acs != PCI_ACS_UNKNOWN)
                redirects = json_object_new_boolean(peer_port_redirects(port));
        json_object_object_add(o, "address", json_address(port->address));
        json_object_object_add(o, "acs_capability", json_acs_bits(port, port->acs_capabilities));
        json_object_object_add(o, "acs_control", json_acs_bits(port, port->acs_enabled));
        json_object_object_add(o, "redirects", redirects);
        return o;
}

json_object *json_ats(const PciDevice *dev) {
        return dev->ats != PCI_ATS_UNKNOWN ? json_object_new_string(pci_ats_to_string(dev->ats)) : NULL;
}

static void add_ats(json_object *o, const Inventory *inv, const PciDevice *dev) {
        const PciDevice *f = peer_ats_function(inv, dev);

        json_object_object_add(o, PCI_ADDRESS_STR(f->address), json_ats(f));
}

static json_object *json_access(PeerAccess access) {
        return access != PEER_ACCESS_UNKNOWN ? json_object_new_string(peer_access_to_string(access)) : NULL;
}

json_object *json_peer_path(const Inventory *inv, const PciDevice *initiator, const PciDevice *target) {
        json_object *o = json_object_new_object(), *ports = json_object_new_array(), *ats = json_object_new_object();
        _cleanup_free_ char *setting = NULL;
        PeerPath path;

        peer_path_find(inv, initiator, target, &path);
        (void) peer_path_setting(inv, &path, initiator, &setting);
        for (size_t i = 0; i < path.n_ports; i++)
                (void) json_object_array_add(ports, json_port(&inv->devices[path.ports[i]]));
        add_ats(ats, inv, initiator);
        add_ats(ats, inv, target);
        json_object_object_add(o, "peer_to_peer", json_access(path.access));
        json_object_object_add(o, "ports", ports);
        json_object_object_add(o, "ats", ats);
        json_object_object_add(o, "setting", json_string_or_null(setting));
        return o;
}
