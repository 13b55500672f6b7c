/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a list of steps in order, and undoes the run when a step fails. */

#include "host/executor.h"

#include <errno.h>
#include <fcntl.h>

#include "eswitch.h"
#include "executor-idle.h"
#include "executor-plug.h"
#include "executor-services.h"
#include "executor-steps.h"
#include "host/health.h"
#include "host/pcipath.h"
#include "host/vfattr.h"
#include "sriov.h"
#include "util/strings.h"

/* Whether the device of the step, or the GPU of a slot, was removed, or the VF whose attributes the step sets. */
static bool is_gone(const Sysfs *fs, const Step *s) {
        _cleanup_close_ int fd =
                step_has_device(s) ? sysfs_open(fs, PCI_PATH(pci_address_function(s->device), ""), O_PATH | O_DIRECTORY)
                                   : -EINVAL;

        return fd == -ENOENT ||
               (step_gives_attributes(s) && s->vf != STEP_VF_UNKNOWN && !sriov_has_vf(fs, s->device, s->vf));
}

/* The result of a step, which its undo needs. */
typedef struct StepResult {
        bool changed;
        bool device_failed;
        VfAttributes found;
        ServiceState service;
        bool cleaned; /* the command of an earlier step cleaned this device too, with this result and exit status */
        int result, status;
        bool reported; /* done and reported together with an earlier step, or the check before the step has reported */
        PlugPlace place;
} StepResult;

/* Undoes the run, from the failed step backwards. A step that changed nothing is not undone. The failed step is, unless
 * it cleans up after itself. */
static int undo(const Sysfs *fs, const StepList *steps, size_t failed, const StepResult *done, ReportFunction report,
                void *userdata) {
        int result = 1;

        for (size_t i = failed + 1; i-- > 0;) {
                const Step *s = &steps->steps[i];
                int r;

                if (s->kind == STEP_STOP_SERVICE && done[i].service.use != UNIT_UNUSED)
                        service_start(steps, i, done[i].service.use, report, userdata);
                if (done[i].device_failed || !step_actions[s->kind].undo ||
                    (!done[i].changed && (i != failed || step_actions[s->kind].undoes_itself)))
                        continue;
                (void) report(&(Report) { .kind = REPORT_UNDO, .step = (uint32_t) i }, userdata);
                r = step_actions[s->kind].undo(fs, s, &done[i].found);
                /* Nothing is left to undo for a device that was removed. */
                if (r >= 0 || is_gone(fs, s))
                        continue;
                (void) report(&(Report) { .kind = REPORT_UNDO_FAILED, .step = (uint32_t) i, .error = r }, userdata);
                result = r;
                /* The guest may still have the device, so it must stay bound to its VFIO driver. */
                if (s->kind == STEP_PLUG)
                        return r;
        }
        return result;
}

/* Reports the services that are active or about to start. Returns 1 when there are any, 0 when there are none, or 2
 * after a failure that was reported. */
static int report_active_services(const StepList *steps, StepResult *done, ReportFunction report, void *userdata) {
        bool any = false;

        for (size_t i = 0; i < steps->n; i++) {
                int r = steps->steps[i].kind == STEP_STOP_SERVICE
                                ? service_report_active(steps, i, &done[i].service, report, userdata)
                                : 0;

                any = any || r > 0;
                if (r >= 0)
                        continue;
                (void) report(&(Report) { .kind = REPORT_FAILED, .step = (uint32_t) i, .error = r }, userdata);
                return 2;
        }
        return any;
}

static bool is_of_plug(const Step *s) {
        return s->kind == STEP_FIND_PORTS || s->kind == STEP_PLUG || s->kind == STEP_UNPLUG;
}

/* Reports before the undo, because the undo may remove the representor. Some steps have reported their own failure. */
static void report_failed(const Sysfs *fs, const Step *s, uint32_t i, int error, const StepResult *done,
                          ReportFunction report, void *userdata) {
        Report failed = { .kind = REPORT_FAILED, .step = i, .error = error, .found = done->found };

        if (s->kind == STEP_CHECK_IDLE || is_of_plug(s) || done->reported)
                return;
        if (step_gives_attributes(s) && error == -EOPNOTSUPP) {
                failed.switchdev = eswitch_find_representor(fs, s->device, s->vf, failed.representor);
                /* The representor may be in another network namespace. */
                if (!failed.switchdev)
                        (void) eswitch_ask(s->device, &failed.switchdev);
        }
        (void) report(&failed, userdata);
}

/* Only two errors tell that the device is dead: it reads as all ones, or as another device. */
static int check_health(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata) {
        Report r = { .kind = REPORT_HEALTH, .step = (uint32_t) i };

        health_read(fs, &(PciDevice) { .address = steps->steps[i].device }, &r.health);
        (void) report(&r, userdata);
        return r.health.error == -EIO ? -ENOLINK : r.health.error == -ENXIO ? -EREMCHG : 0;
}

/* Returns 1 when a device that would be bound is dead. */
static int check_before(const Sysfs *fs, const StepList *steps, ReportFunction report, void *userdata) {
        for (size_t i = 0; steps->checks_health && i < steps->n; i++) {
                int r;

                if (steps->steps[i].kind != STEP_BIND)
                        continue;
                (void) report(&(Report) { .kind = REPORT_READING, .step = (uint32_t) i }, userdata);
                r = check_health(fs, steps, i, report, userdata);
                if (r == 0)
                        continue;
                (void) report(&(Report) { .kind = REPORT_FAILED, .step = (uint32_t) i, .error = r }, userdata);
                return 1;
        }
        return 0;
}

/* Reports the present state before the first write, so that an undo after a crash knows it. Returns 1 when the run
 * cannot start. */
static int report_found(const Sysfs *fs, const StepList *steps, StepResult *done, ReportFunction report,
                        void *userdata) {
        int services = report_active_services(steps, done, report, userdata);
        bool any = services == 1;

        if (services > 1)
                return 1;
        for (size_t i = 0; i < steps->n; i++) {
                Report found = { .kind = REPORT_FOUND, .step = (uint32_t) i };
                int r;

                if (!step_gives_attributes(&steps->steps[i]))
                        continue;
                (void) report(&(Report) { .kind = REPORT_READING, .step = (uint32_t) i }, userdata);
                r = step_read_attributes(fs, &steps->steps[i], &found.found);
                /* No step has changed anything yet, and reading the next VF would wait as long for an interface. */
                if (r == 0 && found.found.set == 0 && steps->steps[i].kind == STEP_ATTRIBUTES)
                        r = -EOPNOTSUPP;
                if (r < 0) {
                        report_failed(fs, &steps->steps[i], (uint32_t) i, r, &done[i], report, userdata);
                        return 1;
                }
                (void) report(&found, userdata);
                any = true;
        }
        return any && report(&(Report) { .kind = REPORT_ALL_FOUND }, userdata) < 0 ? 1 : 0;
}

/* Whether the service of step i was used when this list stopped it, or an earlier list did. A list without
 * STEP_STOP_SERVICE for the service follows an earlier list that stopped it. */
static UnitUse use_before(const StepList *steps, size_t i, const StepResult *done) {
        for (size_t j = 0; j < i; j++)
                if (steps->steps[j].kind == STEP_STOP_SERVICE && streq(steps->steps[j].to, steps->steps[i].to))
                        return done[j].service.use;
        return UNIT_ACTIVE;
}

static int run_service(const Sysfs *fs, const StepList *steps, size_t i, StepResult *done, ReportFunction report,
                       void *userdata) {
        const Step *s = &steps->steps[i];
        UnitUse use;

        if (s->kind == STEP_STOP_SERVICE)
                return service_stop(s, &done[i].service);
        if (s->kind == STEP_CHECK_IDLE)
                return devices_check_idle(fs, steps, i, report, userdata);
        use = use_before(steps, i, done);
        if (use != UNIT_UNUSED)
                service_start(steps, i, use, report, userdata);
        return 0;
}

static int run_step(const Sysfs *fs, const StepList *steps, size_t i, StepResult *done) {
        const Step *s = &steps->steps[i];
        int r = step_actions[s->kind].run(fs, s, &done->found);

        if (r < 0 && steps->skips_missing_devices && is_gone(fs, s))
                return 0;
        done->device_failed = r < 0 && step_actions[s->kind].fails_device;
        done->changed = r > 0;
        return r;
}

static bool device_has_failed(const StepList *steps, const StepResult *done, size_t at) {
        for (size_t i = 0; i < at; i++)
                if (done[i].device_failed && steps->steps[i].kind != STEP_TRY_ATTRIBUTES &&
                    pci_address_equal(step_failed_device(&steps->steps[i]), steps->steps[at].device))
                        return true;
        return false;
}

/* alone: cleans the device of step i, not all devices of its pool. */
static int run_clean(const StepList *steps, size_t i, bool alone, StepResult *done) {
        _cleanup_free_ bool *skipped = calloc(steps->n, sizeof(*skipped));
        size_t n = 0;
        int status = 0, r;

        if (!skipped)
                return -ENOMEM;
        if (done[i].cleaned)
                return done[i].result;
        for (size_t j = i; j < steps->n; j++) {
                skipped[j] = alone ? j != i : device_has_failed(steps, done, j);
                n += clean_is_shared(steps, i, j) && !skipped[j];
        }
        r = devices_clean(steps, i, skipped, &status);
        /* One device that has left its pool is no reason to leave the others as they are. */
        if (r == -EPERM && n > 1)
                return run_clean(steps, i, true, done);
        for (size_t j = i; j < steps->n; j++)
                if (clean_is_shared(steps, i, j) && !skipped[j]) {
                        done[j].cleaned = true;
                        done[j].result = r > 0 ? -EREMOTEIO : r;
                        done[j].status = status;
                }
        return r > 0 ? -EREMOTEIO : r;
}

static void report_device_failed(uint32_t i, int error, const StepResult *done, ReportFunction report, void *userdata) {
        (void) report(&(Report) { .kind = REPORT_DEVICE_FAILED,
                                  .step = i,
                                  .error = error,
                                  .found = done->found,
                                  .status = done->status },
                      userdata);
}

/* The VFs of one PF; one step each. */
typedef struct Identities {
        const VfChange *first;
        size_t step; /* the step of first */
        StepResult *done;
        ReportFunction report;
        void *userdata;
} Identities;

static void report_identity(const VfChange *c, VfMoment moment, void *userdata) {
        const Identities *p = userdata;
        uint32_t i = (uint32_t) (p->step + (size_t) (c - p->first));
        StepResult *done = &p->done[i];

        switch (moment) {
        case VF_LOOKING:
                (void) p->report(&(Report) { .kind = REPORT_READING, .step = i }, p->userdata);
                break;
        case VF_WRITING:
                (void) p->report(&(Report) { .kind = REPORT_STEP, .step = i }, p->userdata);
                break;
        case VF_DONE:
                done->reported = true;
                done->found = c->had;
                done->changed = c->result > 0;
                done->device_failed = c->result < 0;
                if (done->device_failed)
                        report_device_failed(i, c->result, done, p->report, p->userdata);
                break;
        }
}

/* Sets the attributes of the VF of step i together with those of the steps that follow for VFs of the same PF. */
static int run_identity(const Sysfs *fs, const StepList *steps, size_t i, StepResult *done, ReportFunction report,
                        void *userdata) {
        const Step *s = &steps->steps[i];
        _cleanup_free_ VfChange *changes = calloc(steps->n - i, sizeof(*changes));
        size_t n = 0;
        int r = 0;

        if (!changes)
                return -ENOMEM;
        while (r >= 0 && i + n < steps->n && s[n].kind == STEP_TRY_ATTRIBUTES &&
               pci_address_equal(s[n].device, s->device)) {
                _cleanup_free_ char *problem = NULL;

                changes[n] = (VfChange) { .vf = s[n].vf, .only_offered = true };
                r = vf_attributes_parse(s[n].to, &changes[n].wanted, &problem);
                n += r >= 0;
        }
        if (n == 0)
                return r;
        vf_attributes_write(fs, s->device, changes, n, report_identity,
                            &(Identities) { changes, i, done, report, userdata });
        return 0;
}

static int run_find_ports(const Sysfs *fs, const StepList *steps, size_t i, StepResult *done, ReportFunction report,
                          void *userdata) {
        _cleanup_free_ PlugPlace *places = calloc(steps->n, sizeof(*places));
        int r;

        if (!places)
                return -ENOMEM;
        r = plug_find_ports(fs, steps, i, places, report, userdata);
        if (r < 0)
                return r;
        for (size_t k = 0; k < steps->n; k++)
                done[k].place = places[k];
        return 0;
}

static int run_plug(const Sysfs *fs, const StepList *steps, size_t i, StepResult *done, ReportFunction report,
                    void *userdata) {
        int r;

        if (steps->steps[i].kind == STEP_FIND_PORTS)
                return run_find_ports(fs, steps, i, done, report, userdata);
        if (steps->steps[i].kind == STEP_UNPLUG)
                return unplug_device(steps, i, report, userdata);
        r = plug_device(steps, i, &done[i].place, report, userdata);
        done[i].changed = r > 0;
        return r;
}

/* Runs a step of any kind. */
static int dispatch_step(const Sysfs *fs, const StepList *steps, size_t i, StepResult *done, ReportFunction report,
                         void *userdata) {
        int r = steps->steps[i].checks_idle ? idle_check_unbind(fs, steps, i, report, userdata) : 0;

        done[i].reported = r < 0;
        if (r < 0)
                return r;
        if (step_actions[steps->steps[i].kind].run)
                return run_step(fs, steps, i, &done[i]);
        if (steps->steps[i].kind == STEP_CHECK_HEALTH)
                return check_health(fs, steps, i, report, userdata);
        if (is_of_plug(&steps->steps[i]))
                return run_plug(fs, steps, i, done, report, userdata);
        if (steps->steps[i].kind == STEP_CLEAN)
                r = run_clean(steps, i, false, done);
        else if (steps->steps[i].kind == STEP_TRY_ATTRIBUTES)
                r = run_identity(fs, steps, i, done, report, userdata);
        else
                return run_service(fs, steps, i, done, report, userdata);
        done[i].device_failed = done[i].device_failed || r < 0;
        return r;
}

/* Returns 0 when the failure concerns one device only and the run continues; else undoes the run. */
static int handle_failure(const Sysfs *fs, const StepList *steps, size_t i, int error, const StepResult *done,
                          ReportFunction report, void *userdata) {
        if (done[i].device_failed) {
                report_device_failed((uint32_t) i, error, &done[i], report, userdata);
                return 0;
        }
        report_failed(fs, &steps->steps[i], (uint32_t) i, error, &done[i], report, userdata);
        return undo(fs, steps, i, done, report, userdata);
}

int executor_run(const Sysfs *fs, const StepList *steps, ReportFunction report, void *userdata) {
        _cleanup_free_ StepResult *done = calloc(steps->n + 1, sizeof(*done));
        int r = done ? 0 : -ENOMEM;

        if (r == 0)
                r = check_before(fs, steps, report, userdata);
        if (r == 0 && steps->reports_found_state)
                r = report_found(fs, steps, done, report, userdata);
        if (r != 0)
                return r;
        for (size_t i = 0; i < steps->n; i++) {
                if (steps->steps[i].skipped || done[i].reported)
                        continue;
                (void) report(&(Report) { .kind = REPORT_STEP, .step = (uint32_t) i }, userdata);
                if (device_has_failed(steps, done, i))
                        continue;
                r = dispatch_step(fs, steps, i, done, report, userdata);
                if (r >= 0 && steps->checks_health && steps->steps[i].kind == STEP_BIND)
                        r = check_health(fs, steps, i, report, userdata);
                if (r < 0 && step_may_lack(&steps->steps[i], r)) {
                        (void) report(&(Report) { .kind = REPORT_LACKING, .step = (uint32_t) i, .error = r }, userdata);
                        return 0;
                }
                r = r < 0 ? handle_failure(fs, steps, i, r, done, report, userdata) : 0;
                if (r != 0)
                        return r;
        }
        return 0;
}
