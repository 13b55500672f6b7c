/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Actions of the steps that need nothing but their own entry of the list. */

#include "steps/step.h"
#include "util/sysfs.h"

/* Both functions return 1 when they changed something, 0 when nothing had to change, or a negative errno. found: the
 * attributes of the VF of the step before the run. */
typedef struct StepAction {
        int (*run)(const Sysfs *fs, const Step *s, VfAttributes *found);        /* NULL: executor.c runs the step */
        int (*undo)(const Sysfs *fs, const Step *s, const VfAttributes *found); /* NULL: the step has no undo */
        /* A failed write can have taken effect all the same, so the failed step is undone too. true: the step cleans up
         * after its own failure. */
        bool undoes_itself;
        bool fails_device; /* a failure condemns the device but does not end the run, and the step is not undone */
} StepAction;
extern const StepAction step_actions[_STEP_KIND_MAX];

/* Reads the attributes of the VF of the step. found->set is empty when the PF offers none. */
int step_read_attributes(const Sysfs *fs, const Step *s, VfAttributes *found);
