/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Steps and their undo. */

#include "host/executor.h"

#include <errno.h>
#include <fcntl.h>

#include "host/driver.h"
#include "host/pcipath.h"
#include "host/sriov.h"
#include "util/strings.h"

static unsigned to_count(const char *text) {
        uint64_t n = 0;

        (void) parse_unsigned(text, UINT16_MAX, &n);
        return (unsigned) n;
}

static int run_override(const Sysfs *fs, const Step *s) {
        return driver_set_override(fs, s->device, s->to);
}

static int undo_override(const Sysfs *fs, const Step *s) {
        return driver_set_override(fs, s->device, s->from);
}

static int run_unbind(const Sysfs *fs, const Step *s) {
        return driver_unbind(fs, s->device, s->from, s->to);
}

static int undo_unbind(const Sysfs *fs, const Step *s) {
        int r = driver_bind(fs, s->device, s->from);

        /* On another driver: somebody else gave it one, and it is not driverless. */
        return r == -EBUSY ? 0 : r;
}

static int run_bind(const Sysfs *fs, const Step *s) {
        return driver_bind(fs, s->device, s->to);
}

static int undo_bind(const Sysfs *fs, const Step *s) {
        int r = driver_unbind(fs, s->device, s->to, NULL);

        /* On another driver: then it was never bound by this step. */
        return r == -EBUSY ? 0 : r;
}

static int run_autoprobe(const Sysfs *fs, const Step *s) {
        return sriov_set_autoprobe(fs, s->device, s->to);
}

static int undo_autoprobe(const Sysfs *fs, const Step *s) {
        return sriov_set_autoprobe(fs, s->device, s->from);
}

static int run_remove_vfs(const Sysfs *fs, const Step *s) {
        return sriov_remove_vfs(fs, s->device, to_count(s->from));
}

static int undo_remove_vfs(const Sysfs *fs, const Step *s) {
        return sriov_set_numvfs(fs, s->device, to_count(s->from));
}

static int run_numvfs(const Sysfs *fs, const Step *s) {
        return sriov_set_numvfs(fs, s->device, to_count(s->to));
}

static int undo_numvfs(const Sysfs *fs, const Step *s) {
        return sriov_remove_vfs(fs, s->device, to_count(s->to));
}

static const struct {
        int (*run)(const Sysfs *fs, const Step *s);
        int (*undo)(const Sysfs *fs, const Step *s);
        /* A write that fails may have had its effect all the same, so the failed step is undone too, unless it sees to
         * that itself. */
        bool undoes_itself;
} step_table[_STEP_KIND_MAX] = {
        [STEP_OVERRIDE] = { run_override, undo_override, false },
        [STEP_UNBIND] = { run_unbind, undo_unbind, false },
        [STEP_BIND] = { run_bind, undo_bind, false },
        [STEP_AUTOPROBE] = { run_autoprobe, undo_autoprobe, false },
        [STEP_REMOVE_VFS] = { run_remove_vfs, undo_remove_vfs, false },
        [STEP_NUMVFS] = { run_numvfs, undo_numvfs, true },
};

static bool is_gone(const Sysfs *fs, PciAddress address) {
        _cleanup_close_ int fd = sysfs_open(fs, PCI_PATH(address, ""), O_PATH | O_DIRECTORY);

        return fd == -ENOENT;
}

/* What was so before this run is left alone: it is not this run's to undo. */
static int undo_all(const Sysfs *fs, const StepList *steps, size_t failed, const bool *changed, ReportFunction report,
                    void *userdata) {
        int result = 1;

        for (size_t i = failed + 1; i-- > 0;) {
                const Step *s = &steps->steps[i];
                int r;

                if (!changed[i] && (i != failed || step_table[s->kind].undoes_itself))
                        continue;
                r = step_table[s->kind].undo(fs, s);
                /* A device that is gone has taken along what there was to undo. */
                if (r >= 0 || is_gone(fs, s->device))
                        continue;
                report(&(Report){ .kind = REPORT_UNDO_FAILED, .step = (uint32_t) i, .error = r }, userdata);
                result = r;
        }
        return result;
}

int executor_run(const Sysfs *fs, const StepList *steps, ReportFunction report, void *userdata) {
        _cleanup_free_ bool *changed = calloc(steps->n + 1, sizeof(*changed));

        if (!changed)
                return -ENOMEM;
        for (size_t i = 0; i < steps->n; i++) {
                const Step *s = &steps->steps[i];
                int r;

                report(&(Report){ .kind = REPORT_STEP, .step = (uint32_t) i }, userdata);
                r = step_table[s->kind].run(fs, s);
                if (r < 0 && steps->gone_is_done && is_gone(fs, s->device))
                        r = 0;
                if (r < 0) {
                        report(&(Report){ .kind = REPORT_FAILED, .step = (uint32_t) i, .error = r }, userdata);
                        return undo_all(fs, steps, i, changed, report, userdata);
                }
                changed[i] = r > 0;
        }
        return 0;
}
