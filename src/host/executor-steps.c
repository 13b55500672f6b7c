/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How each kind of step is run and undone: a table of functions. */

#include <errno.h>
#include <time.h>

#include "control.h"
#include "executor-run.h"
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

static int run_override(const Run *run, const Step *s) {
        int r = driver_set_override(run->fs, s->device, s->override.to);
        int unlocked = r >= 0 && s->override.unlocks ? nvidia_unlock_unbind(run->fs, s->device) : 0;

        return unlocked < 0 ? unlocked : r;
}

static int undo_override(const Run *run, const Step *s) {
        return driver_set_override(run->fs, s->device, s->override.from);
}

static int run_unbind(const Run *run, const Step *s) {
        int r = s->unbind.checks_idle     ? idle_check_unbind(run, s, s->unbind.driver)
                : s->unbind.checks_closed ? idle_check_closed(run, s)
                                          : 0;

        return r < 0 ? r : driver_unbind(run->fs, s->device, s->unbind.driver, s->unbind.instead);
}

static int undo_unbind(const Run *run, const Step *s) {
        int r = driver_bind(run->fs, s->device, s->unbind.driver);

        /* -EBUSY: another driver is bound by now. Leave it alone. */
        if (r == -EBUSY)
                return 0;
        return r >= 0 && s->unbind.checks_idle ? nvidia_unlock_unbind(run->fs, s->device) : r;
}

static int run_runtime_pm(const Run *run, const Step *s) {
        return power_set_control(run->fs, s->device, s->on);
}

static int undo_runtime_pm(const Run *run, const Step *s) {
        return power_set_control(run->fs, s->device, !s->on);
}

static int run_d3cold(const Run *run, const Step *s) {
        return power_set_d3cold(run->fs, s->device, s->on);
}

static int undo_d3cold(const Run *run, const Step *s) {
        return power_set_d3cold(run->fs, s->device, !s->on);
}

static int run_bind(const Run *run, const Step *s) {
        int r = driver_bind(run->fs, s->device, s->driver);
        int dead = r >= 0 && run->steps->checks_health ? run_check_health(run, s) : 0;

        return dead < 0 ? dead : r;
}

static int undo_bind(const Run *run, const Step *s) {
        int r = streq(s->driver, NVIDIA_DRIVER) ? idle_check_unbind(run, s, s->driver) : 0;

        if (r < 0)
                return r;
        r = driver_unbind(run->fs, s->device, s->driver, NULL);
        /* -EBUSY: another driver is bound, so there is no s->driver to unbind. */
        return r == -EBUSY ? 0 : r;
}

static int run_autoprobe(const Run *run, const Step *s) {
        return sriov_set_autoprobe(run->fs, s->device, s->on);
}

static int undo_autoprobe(const Run *run, const Step *s) {
        return sriov_set_autoprobe(run->fs, s->device, !s->on);
}

static int create_vfs(const Run *run, const Step *s) {
        return sriov_set_numvfs(run->fs, s->device, s->count);
}

static int remove_vfs(const Run *run, const Step *s) {
        return sriov_remove_vfs(run->fs, s->device, s->count);
}

static int run_reset(const Run *run, const Step *s) {
        const char *method = s->reset.method != RESET_METHOD_DEFAULT ? reset_method_to_string(s->reset.method) : NULL;
        int r = s->reset.checks_closed ? idle_check_closed(run, s) : 0;

        if (r < 0)
                return r;
        r = reset_check(run->fs, s->device);
        /* -EIO: the device is off the bus. -ENXIO: another device is in its place. A reset does not bring the device
         * back, and the kernel would wait 65.5 s for it. */
        if (r == -EIO || r == -ENXIO)
                return r == -EIO ? -ENOLINK : -EREMCHG;
        r = reset_device(run->fs, s->device, method, s->reset.before);
        if ((r == -ENOENT && s->reset.may_lack_method) || (r == -ENOTTY && s->reset.may_stay))
                return 0;
        return r;
}

static int run_check(const Run *run, const Step *s) {
        HealthReading now;

        health_read(run->fs, &(PciDevice) { .address = s->device }, &now);
        if (now.error < 0)
                return now.error;
        return s->check.compares && now.counted && now.fatal > s->check.fatal ? -EBADE : 0;
}

/* Reports the health of the device. Returns -ENOLINK if config space reads as all ones, -EREMCHG if it reads as that of
 * another device. Any other reading counts as alive: returns 0. */
int run_check_health(const Run *run, const Step *s) {
        Report r = { .kind = REPORT_HEALTH };

        health_read(run->fs, &(PciDevice) { .address = s->device }, &r.health);
        run_report(run, s, r);
        return r.health.error == -EIO ? -ENOLINK : r.health.error == -ENXIO ? -EREMCHG : 0;
}

/* How long to wait for the network interface of a PF after its driver was bound. The interface of an InfiniBand PF
 * comes later than the driver, from the module ib_ipoib. */
#define INTERFACE_WAIT_MSEC 5000
#define INTERFACE_POLL_MSEC 50

/* Returns true when the interface of the PF may still appear and the step must wait for it: the PF is a network or
 * InfiniBand device, and the step fails if the PF offers no attributes. sysfs does not notify, so the caller polls. */
static bool may_appear(const Sysfs *fs, const Step *s) {
        char class[SYSFS_ATTRIBUTE_MAX];

        return (s->kind == STEP_ATTRIBUTES || s->kind == STEP_RESTORE) &&
               sysfs_read(fs, PCI_PATH(s->device, "class"), class, sizeof(class)) >= 0 &&
               (strncmp(class, "0x02", strlen("0x02")) == 0 || strncmp(class, "0x0c06", strlen("0x0c06")) == 0);
}

/* Waits for one interval and returns true. Returns false at once when the time is over, or when may_appear() is
 * false. */
static bool wait_for_interface(const Sysfs *fs, const Step *s, unsigned attempts) {
        const struct timespec interval = { .tv_nsec = INTERFACE_POLL_MSEC * 1000000 };

        if (attempts > INTERFACE_WAIT_MSEC / INTERFACE_POLL_MSEC || !may_appear(fs, s))
                return false;
        (void) nanosleep(&interval, NULL);
        return true;
}

int step_read_attributes(const Run *run, const Step *s, VfAttributes *found) {
        unsigned attempts = 0;
        int r;

        do
                r = vf_attributes_read(run->fs, s->device, s->vf.index, found);
        while (r == -EOPNOTSUPP && wait_for_interface(run->fs, s, ++attempts));
        if (r != -EOPNOTSUPP)
                return r;
        *found = (VfAttributes) { 0 };
        return 0;
}

static int run_attributes(const Run *run, const Step *s) {
        const bool only_offered = s->kind == STEP_SUPPORTED_ATTRIBUTES;
        unsigned attempts = 0;
        VfChange c;

        do {
                c = (VfChange) { .vf = s->vf.index, .wanted = s->vf.attributes, .only_offered = only_offered };
                vf_attributes_write(run->fs, s->device, &c, 1, NULL, NULL);
        } while (c.result == -EOPNOTSUPP && c.had.set == 0 && wait_for_interface(run->fs, s, ++attempts));
        step_result(run, s)->found = c.had;
        return c.result;
}

static int write_back(const Run *run, const Step *s, unsigned mask) {
        VfChange c = { .vf = s->vf.index, .wanted = step_result(run, s)->found };

        vf_attributes_keep(&c.wanted, mask);
        if (c.wanted.set != 0)
                vf_attributes_write(run->fs, s->device, &c, 1, NULL, NULL);
        return c.result;
}

static int undo_attributes(const Run *run, const Step *s) {
        return write_back(run, s, vf_attributes_touched(s->vf.attributes.set));
}

static int run_save_vf_state(const Run *run, const Step *s) {
        VfAttributes *found = &step_result(run, s)->found;
        int r = step_read_attributes(run, s, found);

        /* -ENODEV: the PF has no VF with this index, so there are no attributes to save. */
        if (r == -ENODEV)
                return 0;
        return r < 0 ? r : found->set != 0;
}

static int undo_save_vf_state(const Run *run, const Step *s) {
        return write_back(run, s, ~0U);
}

static int run_vgpu(const Run *run, const Step *s) {
        return vgpu_set(run->fs, s->device, s->vgpu.type, s->vgpu.mdev, s->vgpu.wanted);
}

static int undo_vgpu(const Run *run, const Step *s) {
        return vgpu_set(run->fs, s->device, s->vgpu.type, s->vgpu.mdev, !s->vgpu.wanted);
}

static int make_region(const Run *run, const Step *s) {
        return region_make(run->fs, &s->memory.region, s->memory.group);
}

/* Frees a region. Also undoes make_region(): a region that this run has created has no guest yet. */
static int remove_region(const Run *run, const Step *s) {
        return region_remove(run->fs, &s->memory.region);
}

/* Time limit of one call of Fabric Manager. */
#define FABRIC_USEC 20000000U

static int set_partition(const Step *s, bool active) {
        return root_set_partition(s->partition, active, clock_usec(CLOCK_MONOTONIC) + FABRIC_USEC);
}

static int run_fabric(const Run *run _unused_, const Step *s) {
        return set_partition(s, s->kind == STEP_ACTIVATE);
}

/* Ignores errors after which there is nothing to undo. Fabric Manager may not run or not be ready: when it has started
 * and waits for the ids of the active partitions, root_follow_partitions() sends them. Other causes, such as another
 * version or other partitions, have made the step itself fail. */
static int undo_fabric(const Run *run _unused_, const Step *s) {
        static const int harmless[] = { ENOTCONN, ELIBACC, EAGAIN, EPROTO, ENOENT, EXDEV, EOPNOTSUPP, EPERM };
        int r = set_partition(s, s->kind == STEP_DEACTIVATE);

        for (size_t i = 0; i < ELEMENTSOF(harmless); i++)
                if (r == -harmless[i])
                        return 0;
        return r;
}

const StepAction step_actions[_STEP_KIND_MAX] = {
        [STEP_OVERRIDE] = { run_override, undo_override },
        [STEP_UNBIND] = { run_unbind, undo_unbind },
        [STEP_RUNTIME_PM] = { run_runtime_pm, undo_runtime_pm },
        [STEP_D3COLD] = { run_d3cold, undo_d3cold },
        [STEP_BIND] = { run_bind, undo_bind },
        [STEP_AUTOPROBE] = { run_autoprobe, undo_autoprobe },
        [STEP_SAVE_VF_STATE] = { run_save_vf_state, undo_save_vf_state, .undoes_itself = true },
        [STEP_REMOVE_VFS] = { remove_vfs, create_vfs },
        [STEP_NUMVFS] = { create_vfs, remove_vfs, .undoes_itself = true },
        [STEP_RESET] = { run_reset, NULL },
        [STEP_CHECK] = { run_check, NULL },
        [STEP_ATTRIBUTES] = { run_attributes, undo_attributes },
        [STEP_SUPPORTED_ATTRIBUTES] = { run_attributes, undo_attributes },
        [STEP_TRY_ATTRIBUTES] = { run_try_attributes, undo_attributes },
        [STEP_RESTORE] = { run_attributes, undo_attributes },
        [STEP_CLEAN] = { run_clean, NULL },
        [STEP_STOP_SERVICE] = { run_stop_service, NULL },
        [STEP_START_SERVICE] = { run_start_service, NULL },
        [STEP_CHECK_IDLE] = { run_check_idle, NULL },
        [STEP_MAKE_REGION] = { make_region, remove_region, .undoes_itself = true },
        [STEP_REMOVE_REGION] = { remove_region, NULL },
        [STEP_FIND_PORTS] = { run_find_ports, NULL },
        [STEP_PLUG] = { run_plug, undo_plug },
        [STEP_UNPLUG] = { run_unplug, NULL },
        [STEP_VGPU] = { run_vgpu, undo_vgpu },
        [STEP_CHECK_UNUSED] = { run_check_unused, NULL },
        [STEP_ACTIVATE] = { run_fabric, undo_fabric },
        [STEP_DEACTIVATE] = { run_fabric, undo_fabric },
        [STEP_CHECK_HEALTH] = { run_check_health, NULL },
        [STEP_PERSISTENCE] = { run_persistence, NULL },
        [STEP_CHECK_GPU] = { run_check_gpu, NULL },
};
