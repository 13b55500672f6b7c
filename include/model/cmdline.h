/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Parses the text of the kernel command line. */

#include "model/cpuset.h"
#include "model/inventory.h"

/* Finds the next KEY=VALUE of a kernel command line; a KEY without "=" has an empty value. '-' and '_' are the same, as
 * in the kernel. Searches from *rest, and advances it. Returns false if there is none. The value has *ret_n bytes and
 * no NUL. */
bool cmdline_next(const char **rest, const char *key, const char **ret_value, size_t *ret_n);
/* Returns true when the command line has KEY, with or without a value. */
bool cmdline_has(const char *cmdline, const char *key);
/* Returns true when word is in a value of KEY, which is a comma-separated list. */
bool cmdline_says(const char *cmdline, const char *key, const char *word);
/* Adds the CPUs of each isolcpus= to *ret. Skips flags before the list, such as "managed_irq", and ignores a malformed
 * list. 0 or -ENOMEM. */
int cmdline_isolated(const char *cmdline, CpuSet *ret);
/* Returns the key of an option that turns the IOMMU off, such as "amd_iommu"; NULL if there is none. */
const char *cmdline_iommu_off(const char *cmdline);
/* Returns whether the command line turns the IOMMU on or off. */
IommuBoot cmdline_iommu(const char *cmdline);
/* Returns true when the IOMMU passes on the addresses of host drivers unchanged: iommu=pt, or iommu.passthrough=1 (or
 * y, on, true). */
bool cmdline_iommu_passthrough(const char *cmdline);
