/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by json*.c. */

#include "json.h"
#include "model/json-text.h"

/* Appends the array of all devices: those of the inventory, then the missing ones of allocations. */
void json_text_devices(JsonText *t, const HostView *view);
/* Returns the kind of the device: "gpu", "accelerator", "nic", "bridge", "platform" or "other". */
const char *device_kind(const PciDevice *dev);
/* Return the NVLink module id of a GPU, -1: unknown; and the partition of its allocation, -1: none. */
int device_module(const HostView *view, PciAddress address);
int device_partition(const HostView *view, PciAddress address);
/* Formats a score. pairs: whether the plan has GPU-NIC pairs. Without pairs the worst distance is null. */
json_object *json_score(const Score *s, bool pairs);
/* Returns the slots of services that the allocation has. */
json_object *json_services(const Allocation *a);
/* Returns an array of the names of the PCI_ACS_BIT()s in bits; NULL if the ACS state of dev is unknown or dev has no
 * ACS capability. */
json_object *json_acs_bits(const PciDevice *dev, uint16_t bits);
json_object *json_ats(const PciDevice *dev);
/* Returns speed and width of the link; NULL when the maximum is unknown. */
json_object *json_link(const PciDevice *dev);
/* Returns the peer-to-peer path between two functions. initiator: the function that accesses the memory of target. */
json_object *json_peer_path(const Inventory *inv, const PciDevice *initiator, const PciDevice *target);
