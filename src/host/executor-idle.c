/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks that a device is idle: before a run unbinds it, and after a guest has given it back. */

#include "executor-idle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "host/nvidia.h"
#include "host/pcipath.h"
#include "steps/step.h"
#include "util/clock.h"
#include "util/strings.h"

/* The IOMMU group of a function; -1: none. */
static int read_group(const Sysfs *fs, PciAddress device) {
        char group[SYSFS_ATTRIBUTE_MAX];
        uint64_t number;

        return sysfs_link_name(fs, PCI_PATH(device, "iommu_group"), group, sizeof(group)) >= 0 &&
                               parse_unsigned(group, INT_MAX, &number) >= 0
                       ? (int) number
                       : -1;
}

static void describe_user(const Holder *holder, char *buf, size_t size) {
        (void) snprintf(buf, size, "%s is in use by %s. %s", holder->subject, holder->text, holder->remedy);
}

static bool has_nvidia_driver(const Step *s) {
        return s->from && streq(s->from, NVIDIA_DRIVER);
}

/* NVIDIA's driver takes the memory of a GPU offline when the last process closes the GPU. As find_user(). */
static int find_online_memory(const Sysfs *fs, const Step *s, size_t n, char *buf, size_t size) {
        for (size_t i = 0; i < n; i++) {
                bool online;
                int node;

                if (!has_nvidia_driver(&s[i]) || !nvidia_read_memory(fs, s[i].device, &node, &online) || !online)
                        continue;
                (void) snprintf(buf, size, "The host has the memory of %s online, as NUMA node %d.",
                                PCI_ADDRESS_STR(s[i].device), node);
                return 1;
        }
        return 0;
}

/* Looks for users of the devices of n steps. is_locked: no process can have the devices open. Returns 1 and a sentence
 * in buf when a device is in use, 0 when none is, or a negative errno. */
static int find_user(const Sysfs *fs, const Step *s, size_t n, bool is_locked, char *buf, size_t size) {
        _cleanup_free_ HolderQuery *queries = calloc(n, sizeof(*queries));
        Holder holder;
        int r;

        if (!queries)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                queries[i] = (HolderQuery) { .address = s[i].device,
                                             .group = -1,
                                             .driver = s[i].from,
                                             .is_vf = s[i].vf > 0,
                                             .nvidia_minor = NVIDIA_MINOR_UNKNOWN,
                                             .is_locked = is_locked };
                /* Reading the minor may resume the GPU. The daemon already knows the minor of a GPU to unbind. */
                if (s[i].checks_idle)
                        queries[i].nvidia_minor = s[i].gpu_node - 1;
                else if (has_nvidia_driver(&s[i]))
                        queries[i].nvidia_minor = nvidia_read_minor(fs, s[i].device);
        }
        r = holders_find(fs, queries, n, &holder);
        if (r > 0)
                describe_user(&holder, buf, size);
        return r == 0 ? find_online_memory(fs, s, n, buf, size) : r;
}

/* found: the result of find_user(), with the sentence in failed->message. */
static int report_user(Report *failed, int found, ReportFunction report, void *userdata) {
        if (found == 0)
                return 0;
        failed->error = found > 0 ? -EBUSY : found;
        (void) report(failed, userdata);
        return failed->error;
}

int devices_check_idle(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata) {
        Report failed = { .kind = REPORT_FAILED, .step = (uint32_t) i };
        size_t n = 0;

        /* The check of the preceding step covered this device. */
        if (i > 0 && steps->steps[i - 1].kind == STEP_CHECK_IDLE)
                return 0;
        while (i + n < steps->n && steps->steps[i + n].kind == STEP_CHECK_IDLE)
                n++;
        return report_user(&failed, find_user(fs, &steps->steps[i], n, false, failed.message, sizeof(failed.message)),
                           report, userdata);
}

/* s: as step i of the list, which reports name. */
static int check_unbind(const Sysfs *fs, const Step *s, size_t i, ReportFunction report, void *userdata) {
        Report failed = { .kind = REPORT_FAILED, .step = (uint32_t) i };
        int locked = has_nvidia_driver(s) ? nvidia_lock_unbind(fs, s->device) : 0;
        int r = locked >= 0 || locked == -EBUSY
                        ? find_user(fs, s, 1, locked > 0, failed.message, sizeof(failed.message))
                        : locked;

        /* The user is a client in the kernel, or a process that is about to end and has closed its descriptors. */
        if (r == 0 && locked == -EBUSY) {
                (void) snprintf(failed.message, sizeof(failed.message),
                                "%s is in use: NVIDIA's driver refuses its unbind lock, and no process has the GPU "
                                "open. Try again in a minute, and see the kernel log.",
                                PCI_ADDRESS_STR(s->device));
                r = 1;
        }
        return report_user(&failed, r, report, userdata);
}

int idle_check_unbind(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata) {
        return check_unbind(fs, &steps->steps[i], i, report, userdata);
}

int idle_check_undo(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata) {
        Step s = steps->steps[i];

        s.from = s.to;
        return s.kind == STEP_BIND && has_nvidia_driver(&s) ? check_unbind(fs, &s, i, report, userdata) : 0;
}

/*
 * vfio-pci enables a device while a process has it open (vfio_pci_core_enable() in
 * drivers/vfio/pci/vfio_pci_core.c), so one that is not enabled needs no search. A host driver may have left it
 * enabled.
 */
int idle_check_closed(const Sysfs *fs, const StepList *steps, size_t i, ReportFunction report, void *userdata) {
        Report failed = { .kind = REPORT_FAILED, .step = (uint32_t) i };
        const Step *s = &steps->steps[i];
        HolderQuery query = { .address = s->device, .is_vf = true };
        char enabled[16];
        Holder holder;
        int r;

        if (sysfs_read(fs, PCI_PATH(s->device, "enable"), enabled, sizeof(enabled)) < 0 || streq(enabled, "0"))
                return 0;
        query.group = read_group(fs, s->device);
        if (query.group < 0)
                return 0;
        r = holders_find(fs, &query, 1, &holder);
        if (r > 0)
                describe_user(&holder, failed.message, sizeof(failed.message));
        else if (r < 0)
                (void) snprintf(failed.message, sizeof(failed.message),
                                "It cannot be determined whether a process has %s open (%s). See the log of "
                                "passthroughd-holders.",
                                PCI_ADDRESS_STR(s->device), strerror(-r));
        return report_user(&failed, r, report, userdata);
}

/* QEMU closes a device shortly after libvirt has said that it is removed. */
#define CLOSE_WAIT_USEC (5U * 1000U * 1000U)
#define CLOSE_POLL_MSEC 50

int idle_check_unused(const Sysfs *fs, const Step *s, VfAttributes *found _unused_) {
        const struct timespec interval = { .tv_nsec = CLOSE_POLL_MSEC * 1000000 };
        const uint64_t end = clock_usec(CLOCK_MONOTONIC) + CLOSE_WAIT_USEC;
        const PciAddress function = pci_address_function(s->device);
        _cleanup_close_ int types = sysfs_open(fs, PCI_PATH(function, "mdev_supported_types"), O_PATH | O_DIRECTORY);
        HolderQuery query = {
                .address = function, .group = read_group(fs, function), .is_vf = s->vf > 0, .only_parts = types >= 0
        };
        Holder holder;
        int r;

        if (query.only_parts)
                query.mdev = s->from;
        while ((r = holders_find(fs, &query, 1, &holder)) > 0 && !s->may_lack && clock_usec(CLOCK_MONOTONIC) < end)
                (void) nanosleep(&interval, NULL);
        return r > 0 ? -EBUSY : r;
}
