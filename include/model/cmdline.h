/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the kernel command line. */

#include "model/cpuset.h"
#include "model/inventory.h"

/*
 * Finds the next KEY=VALUE of a kernel command line; a KEY without a value has an empty one. '-' and '_' are the same,
 * as in the kernel. *rest: where to search; it is advanced. The value has *ret_n bytes.
 */
bool cmdline_next(const char **rest, const char *key, const char **ret_value, size_t *ret_n);
/* The command line has KEY. */
bool cmdline_has(const char *cmdline, const char *key);
/* A value of KEY, which is a list separated by commas, has the word. */
bool cmdline_says(const char *cmdline, const char *key, const char *word);
/* Adds the CPUs of all isolcpus= to *ret; words such as "managed_irq" may precede the list. A list of another form is
 * ignored. 0 or -ENOMEM. */
int cmdline_isolated(const char *cmdline, CpuSet *ret);
/* The key of an option that turns the IOMMU off, such as "amd_iommu"; NULL: there is none. */
const char *cmdline_iommu_off(const char *cmdline);
/* What the command line says about the IOMMU. */
IommuBoot cmdline_iommu(const char *cmdline);
/* The IOMMU passes the addresses of host drivers on unchanged: iommu=pt or iommu.passthrough=1. */
bool cmdline_iommu_passthrough(const char *cmdline);
