/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps and their undo. */

#include "host/executor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <time.h>

#include "host/driver.h"
#include "host/eswitch.h"
#include "host/executor-services.h"
#include "host/pcipath.h"
#include "host/region.h"
#include "host/reset.h"
#include "host/sriov.h"
#include "host/vfattr.h"
#include "util/strings.h"

static unsigned to_count(const char *text) {
        uint64_t n = 0;

        (void) parse_unsigned(text, UINT16_MAX, &n);
        return (unsigned) n;
}

static int run_override(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return driver_set_override(fs, s->device, s->to);
}

static int undo_override(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return driver_set_override(fs, s->device, s->from);
}

static int run_unbind(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return driver_unbind(fs, s->device, s->from, s->to);
}

static int undo_unbind(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        int r = driver_bind(fs, s->device, s->from);

        /* On another driver: somebody else gave it one, and it is not driverless. */
        return r == -EBUSY ? 0 : r;
}

static int run_bind(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return driver_bind(fs, s->device, s->to);
}

static int undo_bind(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        int r = driver_unbind(fs, s->device, s->to, NULL);

        /* On another driver: then it was never bound by this step. */
        return r == -EBUSY ? 0 : r;
}

static int run_autoprobe(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return sriov_set_autoprobe(fs, s->device, s->to);
}

static int undo_autoprobe(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return sriov_set_autoprobe(fs, s->device, s->from);
}

static int run_remove_vfs(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return sriov_remove_vfs(fs, s->device, to_count(s->from));
}

static int undo_remove_vfs(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return sriov_set_numvfs(fs, s->device, to_count(s->from));
}

static int run_numvfs(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return sriov_set_numvfs(fs, s->device, to_count(s->to));
}

static int undo_numvfs(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return sriov_remove_vfs(fs, s->device, to_count(s->to));
}

static int run_reset(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return reset_device(fs, s->device);
}

static int run_check(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return reset_check(fs, s->device);
}

/* How long the interface of a PF may take to come after its driver: IPoIB is a module of its own. */
#define OFFER_WAIT_MSEC     5000
#define OFFER_INTERVAL_MSEC 50

/* Whether something of the PF is to be waited for: sysfs tells nobody when it comes. */
static bool may_come(const Sysfs *fs, const Step *s) {
        char class[SYSFS_ATTRIBUTE_MAX];

        return (s->kind == STEP_ATTRIBUTES || s->kind == STEP_RESTORE) &&
               sysfs_read(fs, PCI_PATH(s->device, "class"), class, sizeof(class)) >= 0 &&
               (strncmp(class, "0x02", strlen("0x02")) == 0 || strncmp(class, "0x0c06", strlen("0x0c06")) == 0);
}

/* What the VF has that the step is about; found.set is empty where its PF offers nothing. */
static int read_attributes(const Sysfs *fs, const Step *s, VfAttributes *found) {
        const struct timespec interval = { .tv_nsec = OFFER_INTERVAL_MSEC * 1000000 };
        int r = vf_attributes_read(fs, s->device, s->vf, found);

        for (int i = 0; r == -EOPNOTSUPP && i < OFFER_WAIT_MSEC / OFFER_INTERVAL_MSEC && may_come(fs, s); i++) {
                (void) nanosleep(&interval, NULL);
                r = vf_attributes_read(fs, s->device, s->vf, found);
        }
        if (r != -EOPNOTSUPP)
                return r;
        *found = (VfAttributes){ 0 };
        return 0;
}

/* As the step has it, and of that what is in mask. */
static int write_attributes(const Sysfs *fs, const Step *s, unsigned mask) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes to;
        int r = vf_attributes_parse(s->to, &to, &problem);

        if (r < 0)
                return r;
        vf_attributes_keep(&to, mask);
        return to.set != 0 ? vf_attributes_write(fs, s->device, s->vf, &to) : 0;
}

static int run_attributes(const Sysfs *fs, const Step *s, VfAttributes *found) {
        int r = read_attributes(fs, s, found);

        return r < 0 ? r : write_attributes(fs, s, ~0U);
}

static int run_offered(const Sysfs *fs, const Step *s, VfAttributes *found) {
        int r = read_attributes(fs, s, found);

        return r < 0 ? r : write_attributes(fs, s, found->set);
}

static int undo_attributes(const Sysfs *fs, const Step *s, const VfAttributes *found) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes to, back = *found;
        int r = vf_attributes_parse(s->to, &to, &problem);

        if (r < 0)
                return r;
        vf_attributes_keep(&back, vf_attributes_touched(to.set));
        return back.set != 0 ? vf_attributes_write(fs, s->device, s->vf, &back) : 0;
}

static int run_note(const Sysfs *fs, const Step *s, VfAttributes *found) {
        int r = read_attributes(fs, s, found);

        /* A link that leads nowhere is no VF to be given anything. */
        if (r == -ENODEV)
                return 0;
        return r < 0 ? r : found->set != 0;
}

static int undo_note(const Sysfs *fs, const Step *s, const VfAttributes *found) {
        return vf_attributes_write(fs, s->device, s->vf, found);
}

static int run_make_region(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return region_make(fs, &s->region, s->to);
}

/* Of those that were made just now: nobody else has it yet. */
static int undo_make_region(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return region_remove(fs, &s->region);
}

static int run_remove_region(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return region_remove(fs, &s->region);
}

static const struct {
        int (*run)(const Sysfs *fs, const Step *s, VfAttributes *found);
        int (*undo)(const Sysfs *fs, const Step *s, const VfAttributes *found);
        /* A write that fails may have had its effect all the same, so the failed step is undone too, unless it sees to
         * that itself. */
        bool undoes_itself;
        bool condemns; /* a failure is the device's, not the run's, and is left as it is */
} step_table[_STEP_KIND_MAX] = {
        [STEP_OVERRIDE] = { run_override, undo_override, false },
        [STEP_UNBIND] = { run_unbind, undo_unbind, false },
        [STEP_BIND] = { run_bind, undo_bind, false },
        [STEP_AUTOPROBE] = { run_autoprobe, undo_autoprobe, false },
        [STEP_NOTE] = { run_note, undo_note, true },
        [STEP_REMOVE_VFS] = { run_remove_vfs, undo_remove_vfs, false },
        [STEP_NUMVFS] = { run_numvfs, undo_numvfs, true },
        [STEP_RESET] = { run_reset, NULL, true, true },
        [STEP_CHECK] = { run_check, NULL, true, true },
        [STEP_ATTRIBUTES] = { run_attributes, undo_attributes, false },
        [STEP_OFFERED] = { run_offered, undo_attributes, false },
        [STEP_IDENTITY] = { run_offered, undo_attributes, false, true },
        [STEP_RESTORE] = { run_attributes, undo_attributes, false, true },
        [STEP_MAKE_REGION] = { run_make_region, undo_make_region, true },
        [STEP_REMOVE_REGION] = { run_remove_region, NULL, true },
        /* See run_service(). */
        [STEP_STOP_SERVICE] = { NULL, NULL, true },
        [STEP_START_SERVICE] = { NULL, NULL, true },
        [STEP_UNUSED] = { NULL, NULL, true },
        [STEP_CLEAN] = { NULL, NULL, true, true },
};

/* Its device, or the VF of it that the step is about. */
static bool is_gone(const Sysfs *fs, const Step *s) {
        _cleanup_close_ int fd =
                step_has_device(s) ? sysfs_open(fs, PCI_PATH(s->device, ""), O_PATH | O_DIRECTORY) : -EINVAL;

        return fd == -ENOENT || (step_gives_attributes(s) && s->vf != UINT_MAX && !sriov_has_vf(fs, s->device, s->vf));
}

/* What became of a step, to be undone by. */
typedef struct Done {
        bool changed;
        bool condemned;
        VfAttributes found;
        ServiceDone service;
        bool cleaned; /* with one before it, with this result and exit status */
        int result, status;
} Done;

/* What was so before this run is left alone: it is not this run's to undo. */
static int undo_all(const Sysfs *fs, const StepList *steps, size_t failed, const Done *done, ReportFunction report,
                    void *userdata) {
        int result = 1;

        for (size_t i = failed + 1; i-- > 0;) {
                const Step *s = &steps->steps[i];
                int r;

                if (s->kind == STEP_STOP_SERVICE && done[i].service.active)
                        service_start(steps, i, report, userdata);
                if (done[i].condemned || !step_table[s->kind].undo ||
                    (!done[i].changed && (i != failed || step_table[s->kind].undoes_itself)))
                        continue;
                r = step_table[s->kind].undo(fs, s, &done[i].found);
                /* A device that is gone has taken along what there was to undo. */
                if (r >= 0 || is_gone(fs, s))
                        continue;
                (void) report(&(Report){ .kind = REPORT_UNDO_FAILED, .step = (uint32_t) i, .error = r }, userdata);
                result = r;
        }
        return result;
}

/* Those that are active. 1: there are some. 0, or 2 when that cannot be told. */
static int tell_services(const StepList *steps, Done *done, ReportFunction report, void *userdata) {
        bool any = false;

        for (size_t i = 0; i < steps->n; i++) {
                int r = steps->steps[i].kind == STEP_STOP_SERVICE
                                ? service_tell(steps, i, &done[i].service, report, userdata)
                                : 0;

                any = any || r > 0;
                if (r >= 0)
                        continue;
                (void) report(&(Report){ .kind = REPORT_FAILED, .step = (uint32_t) i, .error = r }, userdata);
                return 2;
        }
        return any;
}

/* Before the first write, so that it is known for ever what has to be gone back to. 1: a step cannot be done. */
static int tell_found(const Sysfs *fs, const StepList *steps, Done *done, ReportFunction report, void *userdata) {
        int services = tell_services(steps, done, report, userdata);
        bool any = services == 1;

        if (services > 1)
                return 1;
        for (size_t i = 0; i < steps->n; i++) {
                Report found = { .kind = REPORT_FOUND, .step = (uint32_t) i };
                int r;

                if (!step_gives_attributes(&steps->steps[i]))
                        continue;
                (void) report(&(Report){ .kind = REPORT_LOOKING, .step = (uint32_t) i }, userdata);
                r = read_attributes(fs, &steps->steps[i], &found.found);
                if (r < 0) {
                        (void) report(&(Report){ .kind = REPORT_FAILED, .step = (uint32_t) i, .error = r }, userdata);
                        return 1;
                }
                (void) report(&found, userdata);
                any = true;
        }
        return any && report(&(Report){ .kind = REPORT_ALL_FOUND }, userdata) < 0 ? 1 : 0;
}

/* Its service was stopped: by this list, or by an earlier one, where this one stops none. */
static bool was_stopped(const StepList *steps, size_t i, const Done *done) {
        for (size_t j = 0; j < i; j++)
                if (steps->steps[j].kind == STEP_STOP_SERVICE && streq(steps->steps[j].to, steps->steps[i].to))
                        return done[j].service.active;
        return true;
}

static int run_service(const Sysfs *fs, const StepList *steps, size_t i, Done *done, ReportFunction report,
                       void *userdata) {
        const Step *s = &steps->steps[i];

        if (s->kind == STEP_STOP_SERVICE)
                return service_stop(s, &done[i].service);
        if (s->kind == STEP_UNUSED)
                return device_is_unused(fs, steps, i, report, userdata);
        if (was_stopped(steps, i, done))
                service_start(steps, i, report, userdata);
        return 0;
}

static int run_step(const Sysfs *fs, const StepList *steps, size_t i, Done *done) {
        const Step *s = &steps->steps[i];
        int r = step_table[s->kind].run(fs, s, &done->found);

        if (r < 0 && steps->gone_is_done && is_gone(fs, s))
                return 0;
        done->condemned = r < 0 && step_table[s->kind].condemns;
        done->changed = r > 0;
        return r;
}

static bool is_condemned(const StepList *steps, const Done *done, size_t at) {
        for (size_t i = 0; i < at; i++)
                if (done[i].condemned && steps->steps[i].kind != STEP_IDENTITY &&
                    pci_address_equal(step_condemned(&steps->steps[i]), steps->steps[at].device))
                        return true;
        return false;
}

static int run_clean(const StepList *steps, size_t i, Done *done) {
        _cleanup_free_ bool *left_out = calloc(steps->n, sizeof(*left_out));
        int status = 0, r;

        if (!left_out)
                return -ENOMEM;
        if (done[i].cleaned)
                return done[i].result;
        for (size_t j = i; j < steps->n; j++)
                left_out[j] = is_condemned(steps, done, j);
        r = devices_clean(steps, i, left_out, &status);
        for (size_t j = i; j < steps->n; j++)
                if (clean_together(steps, i, j)) {
                        done[j].cleaned = true;
                        done[j].result = r > 0 ? -EREMOTEIO : r;
                        done[j].status = status;
                }
        return done[i].result;
}

/* All kinds. */
static int do_step(const Sysfs *fs, const StepList *steps, size_t i, Done *done, ReportFunction report,
                   void *userdata) {
        int r;

        if (step_table[steps->steps[i].kind].run)
                return run_step(fs, steps, i, &done[i]);
        if (steps->steps[i].kind != STEP_CLEAN)
                return run_service(fs, steps, i, done, report, userdata);
        r = run_clean(steps, i, done);
        done[i].condemned = r < 0;
        return r;
}

/* Before the undo, in which a representor may go. Who uses a device was told when it was found. */
static void tell_failed(const Sysfs *fs, const Step *s, uint32_t i, int error, const Done *done, ReportFunction report,
                        void *userdata) {
        Report failed = { .kind = REPORT_FAILED, .step = i, .error = error, .found = done->found };

        if (s->kind == STEP_UNUSED)
                return;
        if (step_gives_attributes(s) && error == -EOPNOTSUPP)
                (void) eswitch_find_representor(fs, s->device, s->vf, failed.representor);
        (void) report(&failed, userdata);
}

int executor_run(const Sysfs *fs, const StepList *steps, ReportFunction report, void *userdata) {
        _cleanup_free_ Done *done = calloc(steps->n + 1, sizeof(*done));
        int r = done ? 0 : -ENOMEM;

        if (r == 0 && steps->tells_found)
                r = tell_found(fs, steps, done, report, userdata);
        if (r != 0)
                return r;
        for (size_t i = 0; i < steps->n; i++) {
                if (steps->steps[i].left_out)
                        continue;
                (void) report(&(Report){ .kind = REPORT_STEP, .step = (uint32_t) i }, userdata);
                if (is_condemned(steps, done, i))
                        continue;
                r = do_step(fs, steps, i, done, report, userdata);
                if (done[i].condemned) {
                        (void) report(&(Report){ .kind = REPORT_CONDEMNED,
                                                 .step = (uint32_t) i,
                                                 .error = r,
                                                 .found = done[i].found,
                                                 .status = done[i].status },
                                      userdata);
                        continue;
                }
                if (r < 0) {
                        tell_failed(fs, &steps->steps[i], (uint32_t) i, r, &done[i], report, userdata);
                        return undo_all(fs, steps, i, done, report, userdata);
                }
        }
        return 0;
}
