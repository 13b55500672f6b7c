/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files that make JSON, json*.c and ledger-file.c; nobody else includes it. */

#include "core/json.h"

/* Adds a member whose key is new to o and a string literal: json-c does not look for the key and does not copy it. */
void json_put(json_object *o, const char *key, json_object *value);
json_object *json_string_or_null(const char *s);
/* Negative is unknown. */
json_object *json_known_or_null(int n);
json_object *json_address(PciAddress a);
json_object *json_cpus(const CpuSet *set);
/* pairs: whether there are GPU-NIC pairs, whose distance counts. */
json_object *json_score(const Score *s, bool pairs);
json_object *json_hex(unsigned value, int digits);
/* NULL where nothing is known. */
json_object *json_link(const HealthLink *l);
json_object *json_errors(const HealthErrors *e);
/* Names of PCI_ACS_BIT()s that are set; NULL where acs says that there are none to know. */
json_object *json_acs_bits(const PciDevice *dev, uint16_t bits);
json_object *json_ats(const PciDevice *dev);
/* What the way between two functions allows; asks: see core/peerpath.h. */
json_object *json_peer_path(const Inventory *inv, const PciDevice *asks, const PciDevice *other);
