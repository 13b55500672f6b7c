/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the daemon's devices, allocations and plans on stdout as "Key: value" lines. */

#include "reply.h"

/* Prints a value, wrapped at the width of the page; values are aligned. Key "" continues the field above. */
void view_field(const char *key, const char *format, ...) _printf_(2, 3);
/* Prints a member of o as view_field() does; nothing when the member is null or absent. */
void view_member(const char *key, json_object *o, const char *member);

/* Joins the elements of the array o[key] with separator. The caller frees; NULL if the array is empty or memory is
 * short. The same holds for the functions below, unless noted. */
char *view_join(json_object *o, const char *key, const char *separator);
/* Returns the kernel's names of a device, "mlx5_0 eth0", or "-". On a narrow terminal, the first two of many names,
 * such as the representors of VFs, and the number of the others. The caller frees; NULL when out of memory. */
char *view_kernel_names(json_object *device);
/* Returns the memory of an allocation: "20 GiB on node 1, 4 GiB on node 0". */
char *view_memory(json_object *allocation);
/* Joins the addresses of the devices that the guest gets. */
char *view_addresses(json_object *allocation, const char *separator);
/* As view_addresses(), for devices that are only held because of their IOMMU group. */
char *view_held(json_object *allocation, const char *separator);
/* Counts the devices that are held and not given to a guest because they share an IOMMU group with one of the
 * allocation. */
size_t view_count_held(json_object *allocation);
/* Returns the memory of an allocation on all NUMA nodes, in bytes. */
uint64_t view_memory_total(json_object *allocation);

/* Returns the name of the user whose id is the member owner, the id if the user has no name, or "-". The caller frees;
 * NULL when out of memory. */
char *view_owner(json_object *o);

/* Returns the number of CPUs in a list, "0-3,8". */
unsigned view_count_cpus(json_object *o, const char *key);

/* Prints on stderr why the node is read-only, if it is. node: the reply to Describe or Explain. */
void view_read_only(json_object *node);

/* Returns a sentence about the devices that a configuration with broken lines withdrew. node: the reply to Describe.
 * The caller frees; NULL when there are none or when out of memory. */
char *view_withdrawn(json_object *node);
/* Prints the sentence of view_withdrawn() on stderr, and why no device is offered. Returns whether one of these was
 * printed. */
bool view_not_offered(json_object *node);

/* Returns the PCI Express link of a device: "4x16", generation and lanes; "3x8 of 4x16" when it could be faster; "max
 * 4x16" when only the maximum is known; or "-". The caller frees; NULL when out of memory. */
char *view_link_short(json_object *device);
void view_device(json_object *device);
void view_allocation(json_object *allocation);
/* Returns the VF attributes of a device as in a request, "mac=02:00:00:00:00:01 spoof-check=on". The caller frees; NULL
 * without attributes or when out of memory. */
char *view_attributes(json_object *allocation_device);
/* Prints "mpi: 256 MiB on node 0, pages of 2 MiB, shared by vm1 vm2". The members include this allocation. */
void view_regions(json_object *allocation);
void view_services(json_object *allocation);
/* What the guest lacks. */
void view_warnings(json_object *allocation);
