/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The vGPU types that a GPU offers, as the vendor's driver lists them in nvidia/creatable_vgpu_types of each VF: lines
 * "1414 : NVIDIA H200X-1-18C". That list has only the types that can be created now; it shrinks as the GPU fills up.
 * The list of a parent of mediated devices (host/mdev.h) has all types, each with the number of vGPUs that can be
 * created now and the directory of the type: "230 2 nvidia-230 : GRID T4-8Q".
 */

#include <stdbool.h>
#include <stddef.h>

#define VGPU_NAME_MAX 63U /* bytes of a type's name */

typedef struct VgpuType {
        unsigned id;        /* never 0 */
        unsigned available; /* how many vGPUs can be created now; 1 if the list does not tell */
        const char *name;   /* length bytes, without a NUL */
        size_t length;
        const char *directory; /* directory of a type of mediated devices, not terminated; NULL for other types */
        size_t directory_length;
} VgpuType;

/* Finds the next type that can be created now. *rest is initially the list, which may be NULL, and is advanced. Skips
 * lines that name no type. Returns false at the end. */
bool vgpu_types_next(const char **rest, VgpuType *ret);
/* Returns the id of the type with this name; 0: the list, which may be NULL, does not have the type, or no vGPU of it
 * can be created now. */
unsigned vgpu_types_find(const char *types, const char *name);
/* Finds the type with this id, even if no vGPU of it can be created now. */
bool vgpu_types_find_id(const char *types, unsigned id, VgpuType *ret);
/* Returns how many vGPUs of the type with this name can be created now. types: the list of a parent of mediated
 * devices; for another list the result is at most 1. */
unsigned vgpu_types_available(const char *types, const char *name);
/*
 * Returns how many vGPUs of the type fit on the whole GPU: the size of the largest type divided by the size of this
 * type, both taken from the names. types: all types, or those that can be created while the GPU has no vGPU. 0 when
 * unknown: for types backed by MIG, whose number depends on the GPU instances of the host, and for names without a
 * size.
 */
unsigned vgpu_types_capacity(const char *types, const char *name);
/* Returns whether VgpuType= accepts the name: printable ASCII of 1 to VGPU_NAME_MAX bytes. */
bool vgpu_name_is_valid(const char *name);
