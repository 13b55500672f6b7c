/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that only the files json*.c use. */

#include "json.h"
#include "model/json-text.h"

/* Appends the array of all devices: first the devices of the inventory, then the allocated devices that are missing. */
void json_text_devices(JsonText *t, const HostView *view);
/* Returns the kind of the device: "gpu", "accelerator", "nic", "bridge", "platform" or "other". */
const char *device_kind(const PciDevice *dev);
/* device_module() returns the NVLink module id of a GPU; -1: unknown. device_partition() returns the NVLink partition
 * of the GPU's allocation; -1: none, or the module id of the GPU is unknown. */
int device_module(const HostView *view, PciAddress address);
int device_partition(const HostView *view, PciAddress address);
/* Makes the object of a score. pairs: the plan has GPU-NIC pairs; otherwise the worst distance is null. */
json_object *json_score(const Score *s, bool pairs);
/* Returns the array of the slots that the allocation has, by service and endpoint. */
json_object *json_services(const Allocation *a);
/* Returns an array of the names of the PCI_ACS_BIT()s that are set in `bits`. NULL if the ACS state of dev is unknown
 * or clean: in both cases the capability was not read. */
json_object *json_acs_bits(const PciDevice *dev, uint16_t bits);
json_object *json_ats(const PciDevice *dev);
/* Returns the generation and the width of the device's PCIe link, now and at most. NULL when the maximum is unknown. */
json_object *json_link(const PciDevice *dev);
/* Returns what ACS and ATS do to peer-to-peer access. initiator: the function that accesses memory of target. */
json_object *json_peer_path(const Inventory *inv, const PciDevice *initiator, const PciDevice *target);
