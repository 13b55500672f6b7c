/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files that make JSON, json*.c. */

#include "json.h"

/* The serializer of an array of all devices; its userdata is a HostView. */
int json_print_devices(json_object *devices, struct printbuf *out, int level, int flags);
/* pairs: whether there are GPU-NIC pairs, whose distance counts. */
json_object *json_score(const Score *s, bool pairs);
/* NULL where nothing is known. */
json_object *json_link(const HealthLink *l);
json_object *json_errors(const HealthErrors *e);
/* Names of PCI_ACS_BIT()s that are set; NULL where acs says that there are none to know. */
json_object *json_acs_bits(const PciDevice *dev, uint16_t bits);
json_object *json_ats(const PciDevice *dev);
/* What the way between two functions allows; asks: see model/peerpath.h. */
json_object *json_peer_path(const Inventory *inv, const PciDevice *asks, const PciDevice *other);
