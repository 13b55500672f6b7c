/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared libraries that are opened at run time, because a machine may lack them. */

#include <stdbool.h>
#include <stddef.h>

typedef struct LibrarySymbol {
        const char *name;
        void *function; /* the address of a pointer to the function */
        bool optional;  /* the library may lack it, and then the pointer is left alone */
} LibrarySymbol;

/* Opens the library and sets the pointers. The caller closes it with dlclose(). NULL: there is no such library, or it
 * lacks a function. */
void *library_open(const char *name, const LibrarySymbol *symbols, size_t n);
