/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The checks of check_node(), and functions that they share. */

#include "plan/check.h"

/* The checks. Each adds its findings; if it adds none, check_node() adds a finding with CHECK_OK. */
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
void check_confidential(const CheckFacts *facts, CheckReport *report);
void check_libvirt(const CheckFacts *facts, CheckReport *report);
void check_memory(const CheckFacts *facts, CheckReport *report);
void check_memory_lock(const CheckFacts *facts, CheckReport *report);
void check_numa(const CheckFacts *facts, CheckReport *report);
void check_pools(const CheckFacts *facts, CheckReport *report);
void check_power(const CheckFacts *facts, CheckReport *report);
void check_reset(const CheckFacts *facts, CheckReport *report);
void check_sriov(const CheckFacts *facts, CheckReport *report);
void check_vfio(const CheckFacts *facts, CheckReport *report);
void check_xen(const CheckFacts *facts, CheckReport *report);

/* Adds a finding to the running check. remedy is copied and may be NULL. */
void check_add(CheckReport *report, CheckResult result, const char *remedy, const char *format, ...) _printf_(4, 5);
