/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by json*.c. */

#include "json.h"
#include "model/json-text.h"

/* Appends the array of all devices: those of the inventory, then the missing ones of allocations. */
void json_text_devices(JsonText *t, const HostView *view);
/* What the device is: "gpu", "accelerator", "nic", "bridge", "platform" or "other". */
const char *device_kind(const PciDevice *dev);
/* The NVLink module id of a GPU, and the partition of its allocation; -1: unknown, none. */
int device_module(const HostView *view, PciAddress address);
int device_partition(const HostView *view, PciAddress address);
/* pairs: false if the plan has no GPU-NIC pairs; then the worst distance is null. */
json_object *json_score(const Score *s, bool pairs);
/* The slots of services that the allocation has. */
json_object *json_services(const Allocation *a);
/* Array of the names of the PCI_ACS_BIT()s that are set in bits; NULL if the ACS state of dev is unknown or if dev has
 * no ACS capability. */
json_object *json_acs_bits(const PciDevice *dev, uint16_t bits);
json_object *json_ats(const PciDevice *dev);
/* Speed and width of the link; NULL when the maximum is unknown. */
json_object *json_link(const PciDevice *dev);
/* Peer-to-peer access between two functions. initiator: the function that accesses the memory of target. */
json_object *json_peer_path(const Inventory *inv, const PciDevice *initiator, const PciDevice *target);
