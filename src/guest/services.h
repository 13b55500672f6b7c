/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The settings of remote GPUs in the guest. Used by domxml-guestinfo.c. Pure. */

#include "ledger/allocation.h"

/* Both functions return 0 or -ENOMEM. *ret must be NULL before, and stays NULL if the guest needs no such text. The
 * caller frees it. */

/* Formats variables, a line NAME=VALUE each, for the clients of all services. If a name has several lines, the last one
 * counts. */
int services_env(const Allocation *a, char **ret);
/* Formats the configuration file of GVirtuS that services_env() names. */
int services_gvirtus(const Allocation *a, char **ret);
