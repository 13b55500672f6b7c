/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared libraries that are opened at run time, because a machine may lack them. */

#include <stdbool.h>
#include <stddef.h>

typedef struct LibrarySymbol {
        const char *name;
        void *function; /* address of the pointer that is to be set */
        bool optional;  /* if the library lacks the function, the pointer stays as it is */
} LibrarySymbol;

/* Opens the library and sets the pointers. The caller closes it with dlclose(). Returns NULL when the library is
 * missing or lacks a function that is not optional. */
void *library_open(const char *name, const LibrarySymbol *symbols, size_t n);
