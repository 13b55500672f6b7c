/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints devices, allocations and plans of the daemon's replies, as lines of "Key: value". */

#include "reply.h"

/* Prints a line of key and value. The values are aligned, and wrapped at the width of the page. Key "": a further line
 * of the field above. */
void view_field(const char *key, const char *format, ...) _printf_(2, 3);
/* Prints a member of o as view_field() does. Prints nothing when the member is null or missing. */
void view_member(const char *key, json_object *o, const char *member);

/* Joins the elements of the array o[key] with the separator between them. The caller frees; NULL if the array is empty,
 * or when out of memory. The same holds for the functions below, unless their comments say otherwise. */
char *view_join(json_object *o, const char *key, const char *separator);
/* Returns the kernel names of a device, "mlx5_0 eth0", or "-". On a narrow terminal, more than three names are
 * shortened to the first two and the number of the others: a PF also has the names of its VFs' representors. The caller
 * frees; NULL when out of memory. */
char *view_kernel_names(json_object *device);
/* Returns the memory of an allocation, "20 GiB on node 1, 4 GiB on node 0". */
char *view_memory(json_object *allocation);
/* Joins the addresses of the devices that the guest gets, with the separator between them. */
char *view_addresses(json_object *allocation, const char *separator);
/* As view_addresses(), for the held devices: no guest gets them, because they are in the allocation only for their
 * IOMMU group. */
char *view_held(json_object *allocation, const char *separator);
/* Counts the devices that view_held() lists. */
size_t view_count_held(json_object *allocation);
/* Returns the memory of an allocation in bytes, on all NUMA nodes together. */
uint64_t view_memory_total(json_object *allocation);

/* Returns the name of the user whose uid is the member "owner" of o; the uid if the user has no name; "-" if o has no
 * owner. The caller frees; NULL when out of memory. */
char *view_owner(json_object *o);

/* Returns how many CPUs are in the list o[key], such as "0-3,8". */
unsigned view_count_cpus(json_object *o, const char *key);

/* If the node is read-only, prints why on stderr. node: the reply to Describe or Explain. */
void view_read_only(json_object *node);

/* Returns a sentence about the devices that are withdrawn, because the configuration has broken lines or no file. node:
 * the reply to Describe. The caller frees; NULL when there are none, or when out of memory. */
char *view_withdrawn(json_object *node);
/* Prints on stderr the sentence of view_withdrawn(), and why no device is offered, if none is. Returns true if it has
 * printed something. */
bool view_not_offered(json_object *node);

/* Returns the PCIe link of a device as generation and lanes: "4x16"; "3x8 of 4x16" when it could be faster; "max 4x16"
 * when only the maximum is known; or "-". The caller frees; NULL when out of memory. */
char *view_link_short(json_object *device);
void view_device(json_object *device);
void view_allocation(json_object *allocation);
/* Returns the type of vGPU of a VF, "vGPU 'TYPE'", and then its attributes, named as in a request:
 * "mac=02:00:00:00:00:01 spoof-check=on". The caller frees; NULL when the VF has neither, or when out of memory. */
char *view_attributes(json_object *allocation_device);
/* Prints the shared memory of an allocation or a plan: "mpi: 256 MiB on node 0, pages of 2 MiB, shared by vm1 vm2". The
 * names include this allocation; a plan has no names. */
void view_regions(json_object *allocation);
void view_services(json_object *allocation);
/* Prints what the guest lacks. */
void view_warnings(json_object *allocation);
