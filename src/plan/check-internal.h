/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The checks of check_node(), each in a file of its own, and what they share. */

#include "plan/check.h"

/*
 * A check adds a finding for each problem, in the order in which an admin should solve them. A check without a problem
 * adds none.
 */
void check_cpus(const CheckFacts *facts, CheckReport *report);
void check_configuration(const CheckFacts *facts, CheckReport *report);
void check_daemon(const CheckFacts *facts, CheckReport *report);
void check_drivers(const CheckFacts *facts, CheckReport *report);
void check_facts(const CheckFacts *facts, CheckReport *report);
void check_groups(const CheckFacts *facts, CheckReport *report);
void check_hugepages(const CheckFacts *facts, CheckReport *report);
void check_interrupts(const CheckFacts *facts, CheckReport *report);
void check_iommu(const CheckFacts *facts, CheckReport *report);
void check_iommufd(const CheckFacts *facts, CheckReport *report);
void check_libvirt(const CheckFacts *facts, CheckReport *report);
void check_memory_lock(const CheckFacts *facts, CheckReport *report);
void check_numa(const CheckFacts *facts, CheckReport *report);
void check_pools(const CheckFacts *facts, CheckReport *report);
void check_sriov(const CheckFacts *facts, CheckReport *report);
void check_vfio(const CheckFacts *facts, CheckReport *report);
void check_xen(const CheckFacts *facts, CheckReport *report);

/* Adds a finding of the check that runs. remedy is copied and may be NULL. */
void check_add(CheckReport *report, CheckResult result, const char *remedy, const char *format, ...) _printf_(4, 5);

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
