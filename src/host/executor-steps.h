/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The single steps of the executor that need no more than their own line of the list. */

#include "steps/step.h"
#include "util/sysfs.h"

/* 1: it changed something, 0: it was so already, or a negative errno. found: what the VF of the step had. */
typedef struct StepAction {
        int (*run)(const Sysfs *fs, const Step *s, VfAttributes *found);        /* NULL: the executor knows how */
        int (*undo)(const Sysfs *fs, const Step *s, const VfAttributes *found); /* NULL: there is none */
        /* A write that fails may have had its effect all the same, so the failed step is undone too, unless it sees to
         * that itself. */
        bool undoes_itself;
        bool fails_device; /* a failure is the device's, not the run's, and is left as it is */
} StepAction;
extern const StepAction step_actions[_STEP_KIND_MAX];

/* What the VF has that the step is about; found->set is empty where its PF offers nothing. */
int step_read_attributes(const Sysfs *fs, const Step *s, VfAttributes *found);
