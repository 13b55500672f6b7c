/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Does a list of steps, one after the other; when one fails undoes what it changed, in reverse order. Runs in the child
 * of a job. */

#include <net/if.h>

#include "host/holders.h"
#include "steps/step.h"
#include "util/sysfs.h"

typedef enum ReportKind {
        REPORT_STEP,        /* about to do step */
        REPORT_FAILED,      /* step failed with error; what was done will be undone */
        REPORT_UNDO_FAILED, /* so did its undo: the device is not as it was */
        REPORT_CONDEMNED, /* step, which tells whether a device can be handed on, failed with error; no further step is
                             done for it, the run goes on */
        REPORT_LOOKING,   /* about to ask what the VF of step has, which may take for ever */
        REPORT_FOUND,     /* what the VF of step has, before the first write */
        REPORT_ACTIVE,    /* the service of step is active and will be stopped, before the first write */
        REPORT_ALL_FOUND, /* the last of these; nothing is written before the reporter has returned 0 */
        REPORT_STARTED,   /* the service of step is started again: 0, or why it did not come up */
        REPORT_NOT_STARTED, /* systemd could not be asked to: error */
} ReportKind;

/* What the child tells its parent; smaller than PIPE_BUF, so records never mix. */
typedef struct Report {
        uint32_t kind;
        uint32_t step;  /* index into the list */
        int32_t error;  /* negative errno */
        int32_t status; /* REPORT_CONDEMNED of STEP_CLEAN: what the command ended with, 0 when it did not get to that */
        VfAttributes found; /* REPORT_FOUND; REPORT_FAILED, _CONDEMNED of a step that gives attributes */
        char holder[HOLDER_SUBJECT_MAX + 2 * HOLDER_TEXT_MAX +
                    32];               /* REPORT_FAILED of STEP_CHECK_IDLE: who uses it and what to do; else "" */
        char representor[IF_NAMESIZE]; /* REPORT_FAILED of such a step, where its VF has one; else "" */
} Report;

/* Less than 0 only for REPORT_ALL_FOUND: then the run ends, with nothing written. */
typedef int (*ReportFunction)(const Report *r, void *userdata);

/* 0: all done. 1: a step failed and everything is as before this run. Negative: undoing failed too. */
int executor_run(const Sysfs *fs, const StepList *steps, ReportFunction report, void *userdata);
