/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The vGPU types that a GPU offers, as the vendor's driver lists them in nvidia/creatable_vgpu_types of each VF: lines
 * "1414 : NVIDIA H200X-1-18C". The list has the types that can be created now; it shrinks as the GPU fills up. The
 * list of a parent of mediated devices (host/mdev.h) has all types, with the number that can be created now and the
 * directory of the type: "230 2 nvidia-230 : GRID T4-8Q".
 */

#include <stdbool.h>
#include <stddef.h>

#define VGPU_NAME_MAX 63U /* bytes of a type's name */

typedef struct VgpuType {
        unsigned id;        /* never 0 */
        unsigned available; /* that can be created now; 1 where the list does not tell */
        const char *name;   /* not terminated */
        size_t length;
        const char *directory; /* of a type of mediated devices, not terminated; NULL */
        size_t directory_length;
} VgpuType;

/* The next type of a list that can be created now, from *rest on, which begins as the list. Lines that name no type are
 * skipped. */
bool vgpu_types_next(const char **rest, VgpuType *ret);
/* The id of the type with this name; 0 when the list (may be NULL) does not have it. */
unsigned vgpu_types_find(const char *types, const char *name);
/* The type with this id, also one that cannot be created now. */
bool vgpu_types_find_id(const char *types, unsigned id, VgpuType *ret);
/* The number of further vGPUs of the type with this name, as a list of mediated devices tells it. */
unsigned vgpu_types_available(const char *types, const char *name);
/*
 * The number of vGPUs of the type that fit on the GPU, from a list of all types, or of those that can be created now
 * while the GPU has no vGPU: the size of the largest type
 * divided by the size of this type, both part of the names. 0 when unknown: for types backed by MIG, whose number
 * depends on the GPU instances of the host, and for names without a size.
 */
unsigned vgpu_types_capacity(const char *types, const char *name);
/* A name that VgpuType= accepts: printable ASCII, at most VGPU_NAME_MAX bytes. */
bool vgpu_name_is_valid(const char *name);
