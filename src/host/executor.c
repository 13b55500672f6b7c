/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each process of a run does: reports the present state, runs steps in order, and undoes them. */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "eswitch.h"
#include "executor-run.h"
#include "host/health.h"
#include "host/pcipath.h"
#include "host/vfattr.h"
#include "sriov.h"
#include "util/clock.h"
#include "util/strings.h"

/* When the kernel removes a device, its attributes go before the device does (device_del() in drivers/base/core.c). How
 * long to wait for the second. */
#define REMOVAL_INTERVAL_MSEC 10
#define REMOVAL_TIMEOUT_MSEC  3000

/* Returns true when the device of the step is not there (for a slot of a GPU: the GPU), or the VF to which the step
 * gives attributes. */
static bool is_missing(const Sysfs *fs, const Step *s) {
        _cleanup_close_ int fd =
                step_has_device(s) ? sysfs_open(fs, PCI_PATH(pci_address_function(s->device), ""), O_PATH | O_DIRECTORY)
                                   : -EINVAL;

        return fd == -ENOENT || (step_gives_attributes(s) && s->vf.index != STEP_VF_UNKNOWN &&
                                 !sriov_has_vf(fs, s->device, s->vf.index));
}

/* Returns true when the step failed with this error because its device was removed. */
static bool is_gone(const Sysfs *fs, const Step *s, int error) {
        const struct timespec interval = { .tv_nsec = REMOVAL_INTERVAL_MSEC * 1000000L };
        bool may_go = step_has_device(s) && (error == -ENOENT || error == -ENODEV), missing = is_missing(fs, s);

        for (int i = 0; i < REMOVAL_TIMEOUT_MSEC / REMOVAL_INTERVAL_MSEC && may_go && !missing; i++) {
                (void) nanosleep(&interval, NULL);
                missing = is_missing(fs, s);
        }
        return missing;
}

void run_report(const Run *run, const Step *s, Report report) {
        report.step = (uint32_t) (s - run->steps->steps);
        (void) run->report(&report, run->userdata);
}

int run_fail(const Run *run, const Step *s, int error, const char *format, ...) {
        Report failed = { .kind = REPORT_FAILED, .error = error };
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(failed.message, sizeof(failed.message), format, ap);
        va_end(ap);
        step_result(run, s)->reported = true;
        run_report(run, s, failed);
        return error;
}

void run_begin(const Run *run, const Step *s, Doing doing) {
        static const ReportKind kinds[] = {
                [DOING_STEP] = REPORT_STEP, [DOING_READ] = REPORT_READING, [DOING_UNDO] = REPORT_UNDO
        };

        /* Set the time first: the watching process must not apply this step's limit to the time at which the previous
         * step began. */
        run->at->since = clock_usec(CLOCK_MONOTONIC);
        run->at->step = (uint32_t) (s - run->steps->steps);
        run->at->doing = doing;
        run_report(run, s, (Report) { .kind = kinds[doing] });
}

static bool is_of_part(const Run *run, const Part *part, size_t i) {
        const Step *s = &run->steps->steps[i];

        return !run->given_up[s->chain] && (part->chain == ALL_CHAINS || s->chain == part->chain);
}

/* Returns true when the step runs alone and the chain of its device was given up: a process may still work on the
 * device. */
static bool has_given_up_device(const Run *run, const Step *s) {
        for (size_t i = 0; s->chain == 0 && step_has_device(s) && i < run->steps->n; i++)
                if (run->given_up[run->steps->steps[i].chain] &&
                    pci_address_equal(run->steps->steps[i].device, s->device))
                        return true;
        return false;
}

LaneEnd run_backward(const Run *run, const Part *part) {
        LaneEnd result = LANE_DONE;

        for (size_t i = part->end; i-- > part->first;) {
                const Step *s = &run->steps->steps[i];
                const StepResult *done = &run->done[i];
                int r;

                if (!is_of_part(run, part, i) || !done->begun)
                        continue;
                if (s->kind == STEP_STOP_SERVICE && done->service.use != UNIT_UNUSED)
                        service_start(run, s, done->service.use);
                if (done->device_failed || !step_actions[s->kind].undo ||
                    (!done->changed && (!done->failed || step_actions[s->kind].undoes_itself)))
                        continue;
                run_begin(run, s, DOING_UNDO);
                r = step_actions[s->kind].undo(run, s);
                /* A removed device needs no undo. */
                if (r >= 0 || is_gone(run->fs, s, r))
                        continue;
                run_report(run, s, (Report) { .kind = REPORT_UNDO_FAILED, .error = r });
                /* The guest may still have the device, so it must keep its VFIO driver. */
                if (s->kind == STEP_PLUG)
                        return LANE_KEPT;
                result = LANE_NOT_UNDONE;
        }
        return result;
}

/* Reports the failure of a step, unless the step has done so itself. Call it before the undo, which may remove the
 * representor. */
static void report_failed(const Run *run, const Step *s, int error) {
        const StepResult *done = step_result(run, s);
        Report failed = { .kind = REPORT_FAILED, .error = error, .found = done->found };

        if (done->reported)
                return;
        if (step_gives_attributes(s) && error == -EOPNOTSUPP) {
                failed.switchdev = eswitch_find_representor(run->fs, s->device, s->vf.index, failed.representor);
                /* A representor that was not found may be in another network namespace, so ask for the mode. */
                if (!failed.switchdev)
                        (void) eswitch_ask(s->device, &failed.switchdev);
        }
        run_report(run, s, failed);
}

/* Checks the devices that will be bound. Returns 0, or a negative errno if one is dead, after a report. */
static int check_before(const Run *run) {
        const StepList *steps = run->steps;

        for (const Step *s = steps->steps; steps->checks_health && s < step_list_end(steps); s++) {
                int r;

                if (s->kind != STEP_BIND)
                        continue;
                run_begin(run, s, DOING_READ);
                r = run_check_health(run, s);
                if (r == 0)
                        continue;
                run_report(run, s, (Report) { .kind = REPORT_FAILED, .error = r });
                return r;
        }
        return 0;
}

/* Reports the present attributes of the VFs that get attributes. Returns 1 if a PF offers any, 0 if none does, or a
 * negative errno after a report. */
static int report_attributes(const Run *run) {
        int any = 0;

        for (const Step *s = run->steps->steps; s < step_list_end(run->steps); s++) {
                Report found = { .kind = REPORT_FOUND };
                int r;

                if (!step_gives_attributes(s))
                        continue;
                run_begin(run, s, DOING_READ);
                r = step_read_attributes(run, s, &found.found);
                /* End the run now: nothing has changed yet, and each further VF of the PF would wait for an interface
                 * as long as this one. */
                if (r == 0 && found.found.set == 0 && s->kind == STEP_ATTRIBUTES)
                        r = -EOPNOTSUPP;
                if (r < 0) {
                        report_failed(run, s, r);
                        return r;
                }
                run_report(run, s, found);
                /* If the PF offers no attributes, run_forward() leaves the step out. */
                step_result(run, s)->reported = found.found.set == 0 && s->kind == STEP_SUPPORTED_ATTRIBUTES;
                any |= found.found.set != 0;
        }
        return any;
}

/* Reports the present state before the first write, for an undo after a crash. A negative result ends the run: a
 * failure, which was reported, or the refusal of the receiver of REPORT_ALL_FOUND. */
static int report_found(const Run *run) {
        static int (*const reports[])(const Run *run) = { report_active_services, report_persistent_gpus,
                                                          report_attributes };
        int any = 0;

        for (size_t i = 0; i < ELEMENTSOF(reports); i++) {
                int r = reports[i](run);

                if (r < 0)
                        return r;
                any |= r;
        }
        return any ? run->report(&(Report) { .kind = REPORT_ALL_FOUND }, run->userdata) : 0;
}

bool run_device_has_failed(const Run *run, PciAddress device, const Step *before) {
        for (const Step *s = run->steps->steps; s < before; s++)
                if (step_result(run, s)->device_failed && step_properties[s->kind].failure != STEP_FAILS_ALONE &&
                    pci_address_equal(step_failed_device(s), device))
                        return true;
        return false;
}

bool run_leaves_out(const Run *run, const Step *s) {
        return run_device_has_failed(run, s->device, s) || has_given_up_device(run, s);
}

void run_report_device_failed(const Run *run, const Step *s, int error) {
        const StepResult *done = step_result(run, s);
        const Report r = { REPORT_DEVICE_FAILED, .error = error, .status = done->status, .found = done->found };

        run_report(run, s, r);
}

/* Runs a step, and notes its result. */
static int run_step(const Run *run, const Step *s) {
        StepResult *done = step_result(run, s);
        int r = step_actions[s->kind].run(run, s);

        if (r > 0)
                done->changed = true;
        /* A reported failure ends the run. The result of a command or question for several devices counts, even if this
         * device is gone. */
        if (r >= 0 || done->reported)
                return r;
        if (run->steps->skips_missing_devices && !done->shared && is_gone(run->fs, s, r))
                return 0;
        done->device_failed = step_properties[s->kind].failure != STEP_FAILS_RUN;
        return r;
}

/* Runs a step with its reports. LANE_DONE: continue. */
static LaneEnd run_one(const Run *run, const Step *s) {
        StepResult *done = step_result(run, s);
        int r;

        run_begin(run, s, DOING_STEP);
        if (run_device_has_failed(run, s->device, s))
                return LANE_DONE;
        done->begun = true;
        r = run_step(run, s);
        if (r >= 0)
                return LANE_DONE;
        if (step_may_lack(s, r)) {
                run_report(run, s, (Report) { .kind = REPORT_LACKING, .error = r });
                return LANE_LACKING;
        }
        /* The failure concerns this device alone: the run continues. */
        if (done->device_failed) {
                run_report_device_failed(run, s, r);
                return LANE_DONE;
        }
        done->failed = true;
        report_failed(run, s, r);
        return LANE_FAILED;
}

LaneEnd run_forward(const Run *run, const Part *part) {
        LaneEnd end = LANE_DONE;

        if (part->looks && (check_before(run) < 0 || (run->steps->reports_found_state && report_found(run) < 0)))
                return LANE_FAILED;
        for (size_t i = part->first; end == LANE_DONE && i < part->end && !*run->stop; i++) {
                const Step *s = &run->steps->steps[i];

                if (!s->skipped && !run->done[i].reported && is_of_part(run, part, i) && !has_given_up_device(run, s))
                        end = run_one(run, s);
        }
        return end;
}
