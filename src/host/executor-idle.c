/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks that a device is idle: before a run unbinds or resets it, before its NVLink partition is activated, and after
 * a guest has given it back. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <time.h>

#include "executor-run.h"
#include "host/nvidia.h"
#include "host/pcipath.h"
#include "util/clock.h"
#include "util/strings.h"

/* Returns the IOMMU group of a function; -1: none. */
static int read_group(const Sysfs *fs, PciAddress device) {
        char group[SYSFS_ATTRIBUTE_MAX];
        uint64_t number;

        return sysfs_link_name(fs, PCI_PATH(device, "iommu_group"), group, sizeof(group)) >= 0 &&
                               parse_unsigned(group, INT_MAX, &number) >= 0
                       ? (int) number
                       : -1;
}

static bool is_of_nvidia(const char *driver) {
        return streq_ptr(driver, NVIDIA_DRIVER);
}

static HolderQuery make_query(const Run *run, const Step *s, const char *driver) {
        HolderQuery query = { .address = s->device,
                              .group = -1,
                              .driver = driver,
                              .is_vf = s->kind != STEP_BIND && s->unbind.is_vf,
                              .nvidia_minor = NVIDIA_MINOR_UNKNOWN };

        /* A read of the minor may resume the GPU. For an unbind the read is not needed, because the daemon has put the
         * minor into the step. */
        if (s->kind == STEP_UNBIND)
                query.nvidia_minor = s->unbind.gpu_node - 1;
        else if (is_of_nvidia(driver))
                query.nvidia_minor = nvidia_read_minor(run->fs, s->device);
        return query;
}

static int fail_with_user(const Run *run, const Step *s, const Holder *holder) {
        return run_fail(run, s, -EBUSY, "%s is in use by %s. %s", holder->subject, holder->text, holder->remedy);
}

/* Looks for users of n devices. Returns 0 if there are none, or a negative errno after a report. */
static int find_user(const Run *run, const Step *s, const HolderQuery *queries, size_t n) {
        Holder holder;
        int r = holders_find(run->fs, queries, n, &holder);

        if (r != 0)
                return r > 0 ? fail_with_user(run, s, &holder) : run_fail(run, s, r, "%s", "");
        /* NVIDIA's driver keeps a GPU's memory online until the last process has closed the GPU. */
        for (size_t i = 0; i < n; i++) {
                bool online;
                int node;

                if (is_of_nvidia(queries[i].driver) &&
                    nvidia_read_memory(run->fs, queries[i].address, &node, &online) && online)
                        return run_fail(run, s, -EBUSY, "The host has the memory of %s online, as NUMA node %d.",
                                        PCI_ADDRESS_STR(queries[i].address), node);
        }
        return 0;
}

int run_check_idle(const Run *run, const Step *s) {
        const Step *const end = step_list_end(run->steps);
        _cleanup_free_ HolderQuery *queries = calloc((size_t) (end - s), sizeof(*queries));
        size_t n = 0;

        if (!queries)
                return -ENOMEM;
        /* An earlier run_check_idle() has checked this device, too, with all STEP_CHECK_IDLE that directly follow one
         * another. */
        if (s > run->steps->steps && s[-1].kind == STEP_CHECK_IDLE)
                return 0;
        for (; s + n < end && s[n].kind == STEP_CHECK_IDLE; n++)
                queries[n] = make_query(run, &s[n], s[n].unbind.driver);
        return find_user(run, s, queries, n);
}

int idle_check_unbind(const Run *run, const Step *s, const char *driver) {
        HolderQuery query = make_query(run, s, driver);
        int locked = is_of_nvidia(driver) ? nvidia_lock_unbind(run->fs, s->device) : 0, r;

        if (locked < 0 && locked != -EBUSY)
                return run_fail(run, s, locked, "%s", "");
        query.is_locked = locked > 0;
        r = find_user(run, s, &query, 1);
        /* If there is no holder, the lock was refused because the GPU is used by the kernel itself, or by a process
         * that is ending and has no descriptors any more. */
        if (r == 0 && locked == -EBUSY)
                return run_fail(run, s, -EBUSY,
                                "%s is in use: NVIDIA's driver refuses its unbind lock, and no process has the GPU "
                                "open. Try again in a minute, and see the kernel log.",
                                PCI_ADDRESS_STR(s->device));
        return r;
}

/*
 * vfio-pci enables a device while a process has it open (vfio_pci_core_enable() in drivers/vfio/pci/vfio_pci_core.c),
 * so a device that is not enabled needs no search. An enabled device need not be open: its former host driver may have
 * left it enabled.
 */
int idle_check_closed(const Run *run, const Step *s) {
        HolderQuery query = { .address = s->device, .is_vf = true };
        char enabled[16];
        Holder holder;
        int r;

        if (sysfs_read(run->fs, PCI_PATH(s->device, "enable"), enabled, sizeof(enabled)) < 0 || streq(enabled, "0"))
                return 0;
        query.group = read_group(run->fs, s->device);
        if (query.group < 0)
                return 0;
        r = holders_find(run->fs, &query, 1, &holder);
        if (r < 0)
                return run_fail(run, s, r,
                                "It cannot be determined whether a process has %s open (%s). See the log of "
                                "passthroughd-holders.",
                                PCI_ADDRESS_STR(s->device), strerror(-r));
        return r > 0 ? fail_with_user(run, s, &holder) : 0;
}

/* Time limit for QEMU, which closes a device shortly after libvirt has reported its removal. */
#define CLOSE_WAIT_USEC (5U * 1000U * 1000U)
#define CLOSE_POLL_MSEC 50

int run_check_unused(const Run *run, const Step *s) {
        const Sysfs *fs = run->fs;
        const struct timespec interval = { .tv_nsec = CLOSE_POLL_MSEC * 1000000 };
        const uint64_t end = clock_usec(CLOCK_MONOTONIC) + CLOSE_WAIT_USEC;
        const PciAddress function = pci_address_function(s->device);
        _cleanup_close_ int types = sysfs_open(fs, PCI_PATH(function, "mdev_supported_types"), O_PATH | O_DIRECTORY);
        HolderQuery query = { .address = function,
                              .group = read_group(fs, function),
                              .is_vf = s->unused.is_vf,
                              .only_parts = types >= 0 };
        Holder holder;
        int r;

        if (query.only_parts)
                query.mdev = s->unused.mdev;
        while ((r = holders_find(fs, &query, 1, &holder)) > 0 && !s->may_lack && clock_usec(CLOCK_MONOTONIC) < end)
                (void) nanosleep(&interval, NULL);
        return r > 0 ? -EBUSY : r;
}
