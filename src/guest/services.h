/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The settings of remote GPUs in the guest. Used by domxml-guestinfo.c. Pure. */

#include "ledger/allocation.h"

/* Return 0 or -ENOMEM. *ret must be NULL before, and the caller frees it. It stays NULL without remote GPUs. */

/* NAME=VALUE lines for the clients of all services of the allocation. A later line replaces an earlier one. */
int services_env(const Allocation *a, char **ret);
/* The configuration file of GVirtuS, which services_env() names. */
int services_gvirtus(const Allocation *a, char **ret);
