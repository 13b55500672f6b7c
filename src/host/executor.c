/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a process of a run does: looks at the present state, runs steps in order, undoes them. */

#include "executor-run.h"

#include <errno.h>
#include <fcntl.h>

#include "eswitch.h"
#include "executor-idle.h"
#include "host/health.h"
#include "host/pcipath.h"
#include "host/vfattr.h"
#include "sriov.h"
#include "util/clock.h"
#include "util/strings.h"

/* Whether the device of the step, or the GPU of a slot, was removed, or the VF whose attributes the step sets. */
static bool is_gone(const Sysfs *fs, const Step *s) {
        _cleanup_close_ int fd =
                step_has_device(s) ? sysfs_open(fs, PCI_PATH(pci_address_function(s->device), ""), O_PATH | O_DIRECTORY)
                                   : -EINVAL;

        return fd == -ENOENT ||
               (step_gives_attributes(s) && s->vf != STEP_VF_UNKNOWN && !sriov_has_vf(fs, s->device, s->vf));
}

static void tell_report(const Run *run, Report report, size_t i) {
        report.step = (uint32_t) i;
        (void) run->report(&report, run->userdata);
}

/* Tells the process that watches this one what it is about to do, and the receiver of the reports. */
static void begin_step(const Run *run, size_t i, Doing doing) {
        static const ReportKind kinds[] = {
                [DOING_STEP] = REPORT_STEP, [DOING_READ] = REPORT_READING, [DOING_UNDO] = REPORT_UNDO
        };

        /* First, so that the process that watches never applies the limit of this step to the time of the last one. */
        run->at->since = clock_usec(CLOCK_MONOTONIC);
        run->at->step = (uint32_t) i;
        run->at->doing = doing;
        tell_report(run, (Report) { .kind = kinds[doing] }, i);
}

static bool is_of_part(const Run *run, const Part *part, size_t i) {
        const Step *s = &run->steps->steps[i];

        return !run->given_up[s->chain] && (part->chain == ALL_CHAINS || s->chain == part->chain);
}

/* A step that runs alone has a device whose chain was given up: a process may still be at work on the device. */
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
                        service_start(run->steps, i, done->service.use, run->report, run->userdata);
                if (done->device_failed || !step_actions[s->kind].undo ||
                    (!done->changed && (!done->failed || step_actions[s->kind].undoes_itself)))
                        continue;
                begin_step(run, i, DOING_UNDO);
                r = idle_check_undo(run->fs, run->steps, i, run->report, run->userdata);
                if (r >= 0)
                        r = step_actions[s->kind].undo(run->fs, s, &done->found);
                /* Nothing is left to undo for a device that was removed. */
                if (r >= 0 || is_gone(run->fs, s))
                        continue;
                tell_report(run, (Report) { .kind = REPORT_UNDO_FAILED, .error = r }, i);
                /* The guest may still have the device, so it must stay bound to its VFIO driver. */
                if (s->kind == STEP_PLUG)
                        return LANE_KEPT;
                result = LANE_NOT_UNDONE;
        }
        return result;
}

/* Reports the services that are active or about to start. Returns 1 when there are any, 0 when there are none, or a
 * negative errno after a failure that was reported. */
static int report_active_services(const Run *run) {
        const StepList *steps = run->steps;
        bool any = false;

        for (size_t i = 0; i < steps->n; i++) {
                int r = steps->steps[i].kind == STEP_STOP_SERVICE
                                ? service_report_active(steps, i, &run->done[i].service, run->report, run->userdata)
                                : 0;

                any = any || r > 0;
                if (r >= 0)
                        continue;
                tell_report(run, (Report) { .kind = REPORT_FAILED, .error = r }, i);
                return r;
        }
        return any;
}

static bool is_of_plug(const Step *s) {
        return s->kind == STEP_FIND_PORTS || s->kind == STEP_PLUG || s->kind == STEP_UNPLUG;
}

/* Reports before the undo, because the undo may remove the representor. Some steps have reported their own failure. */
static void report_failed(const Run *run, size_t i, int error) {
        const Step *s = &run->steps->steps[i];
        Report failed = { .kind = REPORT_FAILED, .error = error, .found = run->done[i].found };

        if (s->kind == STEP_CHECK_IDLE || is_of_plug(s) || run->done[i].reported)
                return;
        if (step_gives_attributes(s) && error == -EOPNOTSUPP) {
                failed.switchdev = eswitch_find_representor(run->fs, s->device, s->vf, failed.representor);
                /* The representor may be in another network namespace. */
                if (!failed.switchdev)
                        (void) eswitch_ask(s->device, &failed.switchdev);
        }
        tell_report(run, failed, i);
}

/* Only two errors tell that the device is dead: it reads as all ones, or as another device. */
static int check_health(const Run *run, size_t i) {
        Report r = { .kind = REPORT_HEALTH };

        health_read(run->fs, &(PciDevice) { .address = run->steps->steps[i].device }, &r.health);
        tell_report(run, r, i);
        return r.health.error == -EIO ? -ENOLINK : r.health.error == -ENXIO ? -EREMCHG : 0;
}

/* Returns a negative errno when a device that would be bound is dead, after a report. */
static int check_before(const Run *run) {
        const StepList *steps = run->steps;

        for (size_t i = 0; steps->checks_health && i < steps->n; i++) {
                int r;

                if (steps->steps[i].kind != STEP_BIND)
                        continue;
                begin_step(run, i, DOING_READ);
                r = check_health(run, i);
                if (r == 0)
                        continue;
                tell_report(run, (Report) { .kind = REPORT_FAILED, .error = r }, i);
                return r;
        }
        return 0;
}

/* GPUs of steps of the list, to be asked about together. */
typedef struct Gpus {
        PciAddress *devices;
        size_t *steps;
        int32_t *results;
        size_t n;
} Gpus;

static void cleanup_gpus(Gpus *g) {
        free(g->devices);
        free(g->steps);
        free(g->results);
}

static bool gpus_allocate(const Run *run, Gpus *g) {
        g->devices = calloc(run->steps->n, sizeof(*g->devices));
        g->steps = calloc(run->steps->n, sizeof(*g->steps));
        g->results = calloc(run->steps->n, sizeof(*g->results));
        return g->devices && g->steps && g->results;
}

static void gpus_add(const Run *run, Gpus *g, size_t i) {
        g->devices[g->n] = run->steps->steps[i].device;
        g->steps[g->n++] = i;
}

/* Reports the GPUs in persistence mode. Returns whether there are any. */
static bool report_persistent(const Run *run) {
        _cleanup_(cleanup_gpus) Gpus gpus = { 0 };
        bool any = false;

        if (!gpus_allocate(run, &gpus))
                return false;
        for (size_t i = 0; i < run->steps->n; i++)
                if (gpu_may_be_persistent(run->fs, &run->steps->steps[i]))
                        gpus_add(run, &gpus, i);
        if (gpus.n == 0)
                return false;
        begin_step(run, gpus.steps[0], DOING_READ);
        gpus_read_persistence(gpus.devices, gpus.n, gpus.results);
        for (size_t i = 0; i < gpus.n; i++) {
                if (gpus.results[i] <= 0)
                        continue;
                tell_report(run, (Report) { .kind = REPORT_PERSISTENT }, gpus.steps[i]);
                any = true;
        }
        return any;
}

/* Reports the present state before the first write, so that an undo after a crash knows it. Returns a negative errno
 * when the run cannot start, after a report. */
static int report_found(const Run *run) {
        const StepList *steps = run->steps;
        int any = report_active_services(run);

        if (any >= 0 && report_persistent(run))
                any = 1;
        for (size_t i = 0; any >= 0 && i < steps->n; i++) {
                Report found = { .kind = REPORT_FOUND };
                int r;

                if (!step_gives_attributes(&steps->steps[i]))
                        continue;
                begin_step(run, i, DOING_READ);
                r = step_read_attributes(run->fs, &steps->steps[i], &found.found);
                /* No step has changed anything yet, and reading the next VF would wait as long for an interface. */
                if (r == 0 && found.found.set == 0 && steps->steps[i].kind == STEP_ATTRIBUTES)
                        r = -EOPNOTSUPP;
                if (r < 0) {
                        report_failed(run, i, r);
                        return r;
                }
                tell_report(run, found, i);
                /* Of a PF that offers nothing, the step has nothing to give, and an undo has nothing to restore. */
                run->done[i].reported = found.found.set == 0 && steps->steps[i].kind == STEP_SUPPORTED_ATTRIBUTES;
                any = any > 0 || found.found.set != 0;
        }
        return any > 0 ? run->report(&(Report) { .kind = REPORT_ALL_FOUND }, run->userdata) : any;
}

/* Whether the service of step i was used when this list stopped it, or an earlier list did. A list without
 * STEP_STOP_SERVICE for the service follows an earlier list that stopped it. */
static UnitUse use_before(const Run *run, size_t i) {
        const Step *steps = run->steps->steps;

        for (size_t j = 0; j < i; j++)
                if (steps[j].kind == STEP_STOP_SERVICE && streq(steps[j].to, steps[i].to))
                        return run->done[j].service.use;
        return UNIT_ACTIVE;
}

static int run_service(const Run *run, size_t i) {
        const Step *s = &run->steps->steps[i];
        UnitUse use;

        if (s->kind == STEP_STOP_SERVICE)
                return service_stop(s, &run->done[i].service);
        if (s->kind == STEP_CHECK_IDLE)
                return devices_check_idle(run->fs, run->steps, i, run->report, run->userdata);
        use = use_before(run, i);
        if (use != UNIT_UNUSED)
                service_start(run->steps, i, use, run->report, run->userdata);
        return 0;
}

static int run_step(const Run *run, size_t i) {
        const Step *s = &run->steps->steps[i];
        StepResult *done = &run->done[i];
        int r = step_actions[s->kind].run(run->fs, s, &done->found);

        if (r < 0 && run->steps->skips_missing_devices && is_gone(run->fs, s))
                return 0;
        done->device_failed = r < 0 && step_actions[s->kind].fails_device;
        done->changed = r > 0;
        return r;
}

bool run_device_has_failed(const Run *run, PciAddress device, size_t at) {
        for (size_t i = 0; i < at; i++)
                if (run->done[i].device_failed && run->steps->steps[i].kind != STEP_TRY_ATTRIBUTES &&
                    pci_address_equal(step_failed_device(&run->steps->steps[i]), device))
                        return true;
        return false;
}

/* alone: cleans the device of step i, not all devices of its pool. */
static int run_clean(const Run *run, size_t i, bool alone) {
        const StepList *steps = run->steps;
        StepResult *done = run->done;
        _cleanup_free_ bool *skipped = calloc(steps->n, sizeof(*skipped));
        size_t n = 0;
        int status = 0, r;

        if (!skipped)
                return -ENOMEM;
        if (done[i].shared)
                return done[i].result;
        for (size_t j = i; j < steps->n; j++) {
                skipped[j] = alone ? j != i
                                   : run_device_has_failed(run, steps->steps[j].device, j) ||
                                             has_given_up_device(run, &steps->steps[j]);
                n += clean_is_shared(steps, i, j) && !skipped[j];
        }
        r = devices_clean(steps, i, skipped, &status);
        /* One device that has left its pool is no reason to leave the others as they are. */
        if (r == -EPERM && n > 1)
                return run_clean(run, i, true);
        for (size_t j = i; j < steps->n; j++)
                if (clean_is_shared(steps, i, j) && !skipped[j]) {
                        done[j].shared = true;
                        done[j].result = r > 0 ? -EREMOTEIO : r;
                        done[j].status = status;
                }
        return r > 0 ? -EREMOTEIO : r;
}

/* Asks about the GPUs of all STEP_CHECK_GPU from i on. */
static int run_check_gpu(const Run *run, size_t i) {
        const Step *steps = run->steps->steps;
        _cleanup_(cleanup_gpus) Gpus gpus = { 0 };

        if (run->done[i].shared)
                return run->done[i].result;
        if (!gpus_allocate(run, &gpus))
                return -ENOMEM;
        for (size_t j = i; j < run->steps->n; j++)
                if (steps[j].kind == STEP_CHECK_GPU && !run_device_has_failed(run, steps[j].device, j) &&
                    !has_given_up_device(run, &steps[j]))
                        gpus_add(run, &gpus, j);
        gpus_check(gpus.devices, gpus.n, gpus.results);
        for (size_t j = 0; j < gpus.n; j++) {
                StepResult *done = &run->done[gpus.steps[j]];

                done->shared = true;
                /* An error without a cause tells nothing about the GPU. It is in the log of passthroughd-root. */
                done->result = step_cause(&steps[gpus.steps[j]], gpus.results[j]) ? gpus.results[j] : 0;
        }
        return run->done[i].result;
}

void run_report_device_failed(const Run *run, size_t i, int error) {
        const StepResult *done = &run->done[i];

        tell_report(
                run,
                (Report) { .kind = REPORT_DEVICE_FAILED, .error = error, .found = done->found, .status = done->status },
                i);
}

/* The VFs of one PF; one step each. */
typedef struct Identities {
        const Run *run;
        const VfChange *first;
        size_t step; /* the step of first */
} Identities;

static void report_identity(const VfChange *c, VfMoment moment, void *userdata) {
        const Identities *p = userdata;
        size_t i = p->step + (size_t) (c - p->first);
        StepResult *done = &p->run->done[i];

        switch (moment) {
        case VF_LOOKING:
                begin_step(p->run, i, DOING_READ);
                break;
        case VF_WRITING:
                done->begun = true;
                begin_step(p->run, i, DOING_STEP);
                break;
        case VF_DONE:
                done->reported = true;
                done->found = c->had;
                done->changed = c->result > 0;
                done->device_failed = c->result < 0;
                if (done->device_failed)
                        run_report_device_failed(p->run, i, c->result);
                break;
        }
}

/* Sets the attributes of the VF of step i together with those of the steps that follow for VFs of the same PF. */
static int run_identity(const Run *run, size_t i) {
        const StepList *steps = run->steps;
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
        vf_attributes_write(run->fs, s->device, changes, n, report_identity, &(Identities) { run, changes, i });
        return 0;
}

static int run_find_ports(const Run *run, size_t i) {
        _cleanup_free_ PlugPlace *places = calloc(run->steps->n, sizeof(*places));
        int r;

        if (!places)
                return -ENOMEM;
        r = plug_find_ports(run->fs, run->steps, i, places, run->report, run->userdata);
        if (r < 0)
                return r;
        for (size_t k = 0; k < run->steps->n; k++)
                run->done[k].place = places[k];
        return 0;
}

static int run_plug(const Run *run, size_t i) {
        int r;

        if (run->steps->steps[i].kind == STEP_FIND_PORTS)
                return run_find_ports(run, i);
        if (run->steps->steps[i].kind == STEP_UNPLUG)
                return unplug_device(run->steps, i, run->report, run->userdata);
        r = plug_device(run->steps, i, &run->done[i].place, run->report, run->userdata);
        run->done[i].changed = r > 0;
        return r;
}

/* Runs a step of any kind. */
static int dispatch_step(const Run *run, size_t i) {
        const Step *s = &run->steps->steps[i];
        StepResult *done = &run->done[i];
        int r = s->checks_idle     ? idle_check_unbind(run->fs, run->steps, i, run->report, run->userdata)
                : s->checks_closed ? idle_check_closed(run->fs, run->steps, i, run->report, run->userdata)
                                   : 0;

        done->reported = r < 0;
        if (r < 0)
                return r;
        if (step_actions[s->kind].run)
                return run_step(run, i);
        if (s->kind == STEP_CHECK_HEALTH)
                return check_health(run, i);
        if (is_of_plug(s))
                return run_plug(run, i);
        if (s->kind == STEP_CLEAN)
                r = run_clean(run, i, false);
        else if (s->kind == STEP_TRY_ATTRIBUTES)
                r = run_identity(run, i);
        else if (s->kind == STEP_CHECK_GPU)
                r = run_check_gpu(run, i);
        else
                return run_service(run, i);
        done->device_failed = done->device_failed || r < 0;
        return r;
}

/* Returns LANE_DONE when the run goes on. */
static LaneEnd run_one(const Run *run, size_t i) {
        const Step *s = &run->steps->steps[i];
        StepResult *done = &run->done[i];
        int r;

        begin_step(run, i, DOING_STEP);
        if (run_device_has_failed(run, s->device, i))
                return LANE_DONE;
        done->begun = true;
        r = dispatch_step(run, i);
        if (r >= 0 && run->steps->checks_health && s->kind == STEP_BIND)
                r = check_health(run, i);
        if (r >= 0)
                return LANE_DONE;
        if (step_may_lack(s, r)) {
                tell_report(run, (Report) { .kind = REPORT_LACKING, .error = r }, i);
                return LANE_LACKING;
        }
        /* The failure concerns one device only. */
        if (done->device_failed) {
                run_report_device_failed(run, i, r);
                return LANE_DONE;
        }
        done->failed = true;
        report_failed(run, i, r);
        return LANE_FAILED;
}

LaneEnd run_forward(const Run *run, const Part *part) {
        LaneEnd end = LANE_DONE;

        if (part->looks && (check_before(run) < 0 || (run->steps->reports_found_state && report_found(run) < 0)))
                return LANE_FAILED;
        for (size_t i = part->first; end == LANE_DONE && i < part->end && !*run->stop; i++) {
                const Step *s = &run->steps->steps[i];

                if (!s->skipped && !run->done[i].reported && is_of_part(run, part, i) && !has_given_up_device(run, s))
                        end = run_one(run, i);
        }
        return end;
}
