/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Between the files that find what the host uses. All return 0 or -ENOMEM: what is not there or makes no sense is left
 * out, for devices come and go. What is there and cannot be read makes critical_unknown. */

#include "host/critical.h"

#define CRITICAL_ENTRIES_MAX 65536U /* of one directory */

typedef struct Critical {
        const Sysfs *fs;
        const Config *config; /* or NULL */
        Inventory *inv;
} Critical;

/* critical-function.c */

/* Marks the last function of path, address, what path has above that, and its PF. chain: from what is on the function
 * up to what the host uses. The first chain stays. */
int critical_mark_function(const Critical *c, const char *path, PciAddress address, const char *chain);
/* The next component of *path that is the address of a PCI function; *path goes on after it. */
bool critical_next_function(const char **path, PciAddress *ret);
/* The last one: the function itself, not the bridges above it. */
bool critical_last_function(const char *path, PciAddress *ret);

/* critical-read.c */

/* Calls take() for each line of the file. optional: not there is no news. */
int critical_lines(const Critical *c, const char *path, bool optional, int (*take)(const Critical *, char *));
/* path could not be read: no news where that means that there is no such thing, else critical_unknown says so. The
 * first reason stays. */
int critical_unreadable(const Critical *c, const char *path, int error);
/* Names in a directory below the root; none when it is not there or critical_unreadable(). */
int critical_list(const Critical *c, const char *path, char ***ret, size_t *ret_n);
/* The real path of a link: NULL as above. */
int critical_realpath(const Critical *c, const char *path, char **ret);

/* critical-stack.c */

/*
 * link: sys/dev/block/M:m, sys/class/block/NAME or sys/class/net/NAME. use: "/ (mounted)", "swap", "default route".
 * Marks what it stands on, through whatever is stacked.
 */
int critical_mark_user(const Critical *c, const char *link, const char *use);
/* "dm-0" of "/dev/dm-0". */
const char *critical_last_component(const char *path);

/* What the host uses. */
int critical_mark_storage(const Critical *c);
int critical_mark_network(const Critical *c);
int critical_mark_display(const Critical *c);
