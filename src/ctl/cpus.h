/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shortens a list of CPUs as taskset(1) takes them: "0,2,4,6" becomes "0-6:2", "0,8,16" stays, an empty list "-". The
 * caller frees; NULL when out of memory. */
char *cpus_shorten(const char *list);
