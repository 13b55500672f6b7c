/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Checks that devices are idle. For the executor only. */

#include "host/executor.h"

/* For STEP_CHECK_IDLE: checks the device of step i together with those of the STEP_CHECK_IDLE steps that follow
 * directly. Returns 0 when no device is in use; else reports REPORT_FAILED and returns a negative errno. */
int devices_check_idle(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata);
/*
 * For a STEP_UNBIND with checks_idle, directly before it: takes the unbind lock that NVIDIA's driver offers for a GPU,
 * and looks for users of the device. Returns as devices_check_idle().
 */
int idle_check_unbind(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata);
/* The same before a STEP_BIND to NVIDIA's driver is undone. Returns 0 for other steps. */
int idle_check_undo(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata);
/* For a step with checks_closed, directly before it: looks for a process that has the device open by VFIO. As above. */
int idle_check_closed(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata);
/* For STEP_CHECK_UNUSED, in the table of executor-steps.c: waits until QEMU has closed the device. -EBUSY: it has not.
 */
int idle_check_unused(const Sysfs *fs, const Step *s, VfAttributes *found);
