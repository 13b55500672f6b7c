/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Defines how each kind of step is run and undone, and what the executor does for several steps together: services that
 * stop and start, commands that clean devices, questions to NVIDIA's driver. */

#include "executor-steps.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "control.h"
#include "executor-idle.h"
#include "executor-plug.h"
#include "host/health.h"
#include "host/nvidia.h"
#include "host/pcipath.h"
#include "host/region.h"
#include "host/rootservice.h"
#include "host/vfattr.h"
#include "mdev.h"
#include "sriov.h"
#include "util/clock.h"
#include "util/strings.h"

static unsigned parse_count(const char *text) {
        uint64_t n = 0;

        (void) parse_unsigned(text, UINT16_MAX, &n);
        return (unsigned) n;
}

static int run_override(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        int r = driver_set_override(fs, s->device, s->to);
        int unlocked = r >= 0 && s->unlocks ? nvidia_unlock_unbind(fs, s->device) : 0;

        return unlocked < 0 ? unlocked : r;
}

static int undo_override(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return driver_set_override(fs, s->device, s->from);
}

static int run_unbind(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return driver_unbind(fs, s->device, s->from, s->to);
}

static int undo_unbind(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        int r = driver_bind(fs, s->device, s->from);

        /* -EBUSY: the device is bound to another driver by now. The undo leaves that driver alone. */
        if (r == -EBUSY)
                return 0;
        return r >= 0 && s->checks_idle ? nvidia_unlock_unbind(fs, s->device) : r;
}

static int run_runtime_pm(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return power_set_control(fs, s->device, s->to);
}

static int undo_runtime_pm(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return power_set_control(fs, s->device, s->from);
}

static int run_d3cold(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return power_set_d3cold(fs, s->device, s->to);
}

static int undo_d3cold(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return power_set_d3cold(fs, s->device, s->from);
}

static int run_bind(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return driver_bind(fs, s->device, s->to);
}

static int undo_bind(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        int r = driver_unbind(fs, s->device, s->to, NULL);

        /* -EBUSY: the device is bound to another driver, so this step did not bind it. */
        return r == -EBUSY ? 0 : r;
}

static int run_autoprobe(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return sriov_set_autoprobe(fs, s->device, s->to);
}

static int undo_autoprobe(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return sriov_set_autoprobe(fs, s->device, s->from);
}

static int run_remove_vfs(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return sriov_remove_vfs(fs, s->device, parse_count(s->from));
}

static int undo_remove_vfs(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return sriov_set_numvfs(fs, s->device, parse_count(s->from));
}

static int run_numvfs(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return sriov_set_numvfs(fs, s->device, parse_count(s->to));
}

static int undo_numvfs(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return sriov_remove_vfs(fs, s->device, parse_count(s->to));
}

static int run_reset(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        int r = reset_check(fs, s->device);

        /* A device that is off the bus does not come back, and the kernel would wait 65.5 s for it. */
        if (r == -EIO || r == -ENXIO)
                return r == -EIO ? -ENOLINK : -EREMCHG;
        r = reset_device(fs, s->device, s->to, s->from);
        if ((r == -ENOENT && s->may_lack_method) || (r == -ENOTTY && s->may_stay))
                return 0;
        return r;
}

static int run_check(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        HealthReading now;
        uint64_t before;

        health_read(fs, &(PciDevice) { .address = s->device }, &now);
        if (now.error < 0 || !s->from || !now.counted || parse_unsigned(s->from, UINT64_MAX, &before) < 0)
                return now.error;
        return now.fatal > before ? -EBADE : 0;
}

/* How long to wait for the interface of a PF after its driver was bound: IPoIB is a separate module. */
#define INTERFACE_WAIT_MSEC 5000
#define INTERFACE_POLL_MSEC 50

/* Whether the PF is a network or InfiniBand device whose interface may still appear. It is polled, because sysfs does
 * not notify of new entries. */
static bool may_appear(const Sysfs *fs, const Step *s) {
        char class[SYSFS_ATTRIBUTE_MAX];

        return (s->kind == STEP_ATTRIBUTES || s->kind == STEP_RESTORE) &&
               sysfs_read(fs, PCI_PATH(s->device, "class"), class, sizeof(class)) >= 0 &&
               (strncmp(class, "0x02", strlen("0x02")) == 0 || strncmp(class, "0x0c06", strlen("0x0c06")) == 0);
}

/* Waits for one interval. Returns false when the time is up or no interface can appear. */
static bool wait_for_interface(const Sysfs *fs, const Step *s, unsigned attempts) {
        const struct timespec interval = { .tv_nsec = INTERFACE_POLL_MSEC * 1000000 };

        if (attempts > INTERFACE_WAIT_MSEC / INTERFACE_POLL_MSEC || !may_appear(fs, s))
                return false;
        (void) nanosleep(&interval, NULL);
        return true;
}

int step_read_attributes(const Sysfs *fs, const Step *s, VfAttributes *found) {
        unsigned attempts = 0;
        int r;

        do
                r = vf_attributes_read(fs, s->device, s->vf, found);
        while (r == -EOPNOTSUPP && wait_for_interface(fs, s, ++attempts));
        if (r != -EOPNOTSUPP)
                return r;
        *found = (VfAttributes) { 0 };
        return 0;
}

static int write_attributes(const Sysfs *fs, const Step *s, bool only_offered, VfAttributes *found) {
        _cleanup_free_ char *problem = NULL;
        unsigned attempts = 0;
        VfAttributes to;
        VfChange c;
        int r = vf_attributes_parse(s->to, &to, &problem);

        if (r < 0)
                return r;
        do {
                c = (VfChange) { .vf = s->vf, .wanted = to, .only_offered = only_offered };
                vf_attributes_write(fs, s->device, &c, 1, NULL, NULL);
        } while (c.result == -EOPNOTSUPP && c.had.set == 0 && wait_for_interface(fs, s, ++attempts));
        *found = c.had;
        return c.result;
}

static int run_attributes(const Sysfs *fs, const Step *s, VfAttributes *found) {
        return write_attributes(fs, s, false, found);
}

static int run_offered(const Sysfs *fs, const Step *s, VfAttributes *found) {
        return write_attributes(fs, s, true, found);
}

static int restore_attributes(const Sysfs *fs, const Step *s, const VfAttributes *had) {
        VfChange c = { .vf = s->vf, .wanted = *had };

        vf_attributes_write(fs, s->device, &c, 1, NULL, NULL);
        return c.result;
}

static int undo_attributes(const Sysfs *fs, const Step *s, const VfAttributes *found) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes to, back = *found;
        int r = vf_attributes_parse(s->to, &to, &problem);

        if (r < 0)
                return r;
        vf_attributes_keep(&back, vf_attributes_touched(to.set));
        return back.set != 0 ? restore_attributes(fs, s, &back) : 0;
}

static int run_save_vf_state(const Sysfs *fs, const Step *s, VfAttributes *found) {
        int r = step_read_attributes(fs, s, found);

        /* A dangling virtfn link is not a VF that can be given attributes. */
        if (r == -ENODEV)
                return 0;
        return r < 0 ? r : found->set != 0;
}

static int run_vgpu(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return vgpu_set_type(fs, s->device, s->from, s->to);
}

static int undo_vgpu(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return vgpu_set_type(fs, s->device, s->to, s->from);
}

static int run_make_region(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return region_make(fs, &s->region, s->to);
}

/* The run has just created the region, so no guest uses it yet. */
static int undo_make_region(const Sysfs *fs, const Step *s, const VfAttributes *found _unused_) {
        return region_remove(fs, &s->region);
}

static int run_remove_region(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        return region_remove(fs, &s->region);
}

/* Time for one call of Fabric Manager. */
#define FABRIC_USEC 20000000U

static int set_partition(const Step *s, bool active) {
        return root_set_partition(s->partition, active, clock_usec(CLOCK_MONOTONIC) + FABRIC_USEC);
}

static int run_fabric(const Sysfs *fs _unused_, const Step *s, VfAttributes *found _unused_) {
        return set_partition(s, s->kind == STEP_ACTIVATE);
}

/*
 * A Fabric Manager that does not run, or is not ready, has no active partitions, or asks for them when it starts. One
 * with another version or other partitions refused the step too.
 */
static int undo_fabric(const Sysfs *fs _unused_, const Step *s, const VfAttributes *found _unused_) {
        static const int harmless[] = { ENOTCONN, ELIBACC, EAGAIN, EPROTO, ENOENT, EXDEV, EOPNOTSUPP, EPERM };
        int r = set_partition(s, s->kind == STEP_DEACTIVATE);

        for (size_t i = 0; i < ELEMENTSOF(harmless); i++)
                if (r == -harmless[i])
                        return 0;
        return r;
}

/* The driver initializes a GPU that no process has open, which takes seconds. */
#define GPU_USEC 20000000U

/* Returns 0: a failure is logged by passthroughd-root. */
static int restore_persistence(const Sysfs *fs _unused_, const Step *s, VfAttributes *found _unused_) {
        (void) root_set_persistence(s->device, clock_usec(CLOCK_MONOTONIC) + GPU_USEC);
        return 0;
}

const StepAction step_actions[_STEP_KIND_MAX] = {
        [STEP_OVERRIDE] = { run_override, undo_override, false },
        [STEP_UNBIND] = { run_unbind, undo_unbind, false },
        [STEP_RUNTIME_PM] = { run_runtime_pm, undo_runtime_pm, false },
        [STEP_D3COLD] = { run_d3cold, undo_d3cold, false },
        [STEP_BIND] = { run_bind, undo_bind, false },
        [STEP_AUTOPROBE] = { run_autoprobe, undo_autoprobe, false },
        [STEP_SAVE_VF_STATE] = { run_save_vf_state, restore_attributes, true },
        [STEP_REMOVE_VFS] = { run_remove_vfs, undo_remove_vfs, false },
        [STEP_NUMVFS] = { run_numvfs, undo_numvfs, true },
        [STEP_RESET] = { run_reset, NULL, true, true },
        [STEP_CHECK] = { run_check, NULL, true, true },
        [STEP_ATTRIBUTES] = { run_attributes, undo_attributes, false },
        [STEP_SUPPORTED_ATTRIBUTES] = { run_offered, undo_attributes, false },
        [STEP_RESTORE] = { run_attributes, undo_attributes, false, true },
        [STEP_VGPU] = { run_vgpu, undo_vgpu, false },
        [STEP_MAKE_REGION] = { run_make_region, undo_make_region, true },
        [STEP_REMOVE_REGION] = { run_remove_region, NULL, true },
        [STEP_ACTIVATE] = { run_fabric, undo_fabric, false },
        [STEP_DEACTIVATE] = { run_fabric, undo_fabric, false },
        /* executor.c runs these steps. */
        [STEP_TRY_ATTRIBUTES] = { NULL, undo_attributes, false, true },
        [STEP_STOP_SERVICE] = { NULL, NULL, true },
        [STEP_START_SERVICE] = { NULL, NULL, true },
        [STEP_CHECK_IDLE] = { NULL, NULL, true },
        [STEP_CHECK_HEALTH] = { NULL, NULL, true },
        [STEP_CLEAN] = { NULL, NULL, true, true },
        [STEP_FIND_PORTS] = { NULL, NULL, true },
        [STEP_PLUG] = { NULL, plug_undo, false },
        [STEP_UNPLUG] = { NULL, NULL, true },
        [STEP_PERSISTENCE] = { restore_persistence, NULL, true },
        [STEP_CHECK_GPU] = { NULL, NULL, true, true },
        [STEP_CHECK_UNUSED] = { idle_check_unused, NULL, true },
};

/* The time (CLOCK_MONOTONIC, microseconds) when 1/part of the timeout of the job has passed from now. */
static uint64_t job_deadline(const StepList *steps, unsigned part) {
        return clock_usec(CLOCK_MONOTONIC) + steps->timeout_sec * UINT64_C(1000000) / part;
}

int service_report_active(const StepList *steps, size_t i, ServiceState *state, ReportFunction report, void *userdata) {
        int r;

        /* All services share one deadline: half of the timeout of the job. */
        state->stop_by = job_deadline(steps, 2);
        r = unit_read_use(steps->steps[i].to, state->stop_by, &state->use);
        if (r < 0 || state->use == UNIT_UNUSED)
                return r;
        (void) report(&(Report) { .kind = REPORT_ACTIVE, .step = (uint32_t) i }, userdata);
        return 1;
}

int service_stop(const Step *s, const ServiceState *state) {
        return state->use != UNIT_UNUSED ? root_stop_unit(s->to, state->stop_by) : 0;
}

/* All starts together get a quarter of the timeout of the job. After that the job goes on while systemd continues to
 * start the service. */
void service_start(const StepList *steps, size_t i, UnitUse use, ReportFunction report, void *userdata) {
        unsigned part, starts = 0;
        bool asked;
        int r;

        for (size_t k = 0; k < steps->n; k++)
                starts += steps->steps[k].kind == STEP_START_SERVICE;
        /* One second is enough to queue the start again. */
        part = use == UNIT_QUEUED ? MAX(steps->timeout_sec, 1U) : 4 * MAX(starts, 1U);
        r = root_start_unit(steps->steps[i].to, job_deadline(steps, part), &asked);
        (void) report(&(Report) { .kind = asked ? REPORT_STARTED : REPORT_NOT_STARTED,
                                  .step = (uint32_t) i,
                                  .error = asked && r == -ETIMEDOUT ? 0 : r },
                      userdata);
}

bool clean_is_shared(const StepList *steps, size_t i, size_t j) {
        return steps->steps[j].kind == STEP_CLEAN && streq(steps->steps[i].from, steps->steps[j].from);
}

/* Whether step i is the first STEP_CLEAN of its pool. */
static bool is_first_clean(const StepList *steps, size_t i) {
        for (size_t j = 0; j < i; j++)
                if (clean_is_shared(steps, i, j))
                        return false;
        return true;
}

static unsigned count_commands(const StepList *steps) {
        unsigned n = 0;

        for (size_t i = 0; i < steps->n; i++)
                n += steps->steps[i].kind == STEP_CLEAN && is_first_clean(steps, i);
        return n;
}

int devices_clean(const StepList *steps, size_t first, const bool *skipped, int *ret_status) {
        _cleanup_free_ PciAddress *devices = calloc(steps->n, sizeof(*devices));
        size_t n = 0;

        if (!devices)
                return -ENOMEM;
        for (size_t i = first; i < steps->n; i++)
                if (clean_is_shared(steps, first, i) && !skipped[i])
                        devices[n++] = steps->steps[i].device;
        return root_clean(steps->steps[first].from, devices, n, job_deadline(steps, 2 * count_commands(steps)),
                          ret_status);
}

/* A GPU in persistence mode is initialized. */
#define PERSISTENCE_USEC 3000000U

/*
 * The driver takes interrupts (MSI) when it initializes a GPU, and returns them when the last process closes a GPU that
 * is not in persistence mode (nv_shutdown_adapter() in its nv.c). So a GPU without them is not, and is not asked: that
 * would initialize it.
 */
bool gpu_may_be_persistent(const Sysfs *fs, const Step *s) {
        _cleanup_close_ int fd = s->kind == STEP_UNBIND && streq(s->from, NVIDIA_DRIVER)
                                         ? sysfs_open(fs, PCI_PATH(s->device, "msi_irqs"), O_PATH | O_DIRECTORY)
                                         : -EINVAL;

        return fd >= 0;
}

typedef int (*Question)(const PciAddress *gpus, size_t n, uint64_t end, int32_t *results);

/* Asks passthroughd-root, which cannot answer while it waits for the kernel: then the driver does not answer for the
 * first of the GPUs, as far as is known. After a GPU for which it does not answer, no other is asked about. */
static void ask_driver(Question ask, uint64_t usec, const PciAddress *gpus, size_t n, int32_t *results) {
        size_t part;

        for (size_t i = 0; i < n; i += part) {
                uint64_t end;
                int r;

                part = MIN(n - i, ROOT_GPUS_MAX);
                end = clock_usec(CLOCK_MONOTONIC) + part * usec;
                r = ask(&gpus[i], part, end, &results[i]);
                if (r == -EHOSTDOWN && clock_usec(CLOCK_MONOTONIC) >= end)
                        results[i] = r = -ETIMEDOUT;
                if (r == -ETIMEDOUT)
                        return;
        }
}

void gpus_read_persistence(const PciAddress *gpus, size_t n, int32_t *results) {
        ask_driver(root_read_persistence, PERSISTENCE_USEC, gpus, n, results);
}

void gpus_check(const PciAddress *gpus, size_t n, int32_t *results) {
        ask_driver(root_check_health, GPU_USEC, gpus, n, results);
}
