/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates and removes the virtual functions of a PF. */

#include "sriov.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "host/pcipath.h"
#include "util/clock.h"
#include "util/fileio.h"
#include "util/strings.h"

/* The most entries of a PF's directory: attributes, and up to 65535 links virtfnN. */
#define ENTRIES_MAX         70000U
/* How long to wait for the links virtfnN after a write to sriov_numvfs. */
#define LINKS_WAIT_USEC     2000000U
#define LINKS_INTERVAL_USEC 5000U

int sriov_set_autoprobe(const Sysfs *fs, PciAddress pf, bool on) {
        int r = sysfs_set(fs, PCI_PATH(pf, "sriov_drivers_autoprobe"), on ? "1" : "0");

        /* Before Linux 4.12 the attribute does not exist, and the kernel binds drivers to new VFs. The job that gives a
         * VF to a guest, or removes it, unbinds the driver. */
        return r == -ENOENT ? 0 : r;
}

/* Counts the links virtfnN of the PF. Adds the number of VFs that have a driver to *ret_bound, unless ret_bound is
 * NULL. */
static int count_links(const Sysfs *fs, PciAddress pf, unsigned *ret, unsigned *ret_bound) {
        _cleanup_close_ int fd = -1;
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r;

        fd = sysfs_open(fs, PCI_PATH(pf, ""), O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        r = list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);
        if (r < 0)
                return r;
        *ret = 0;
        for (size_t i = 0; i < n; i++) {
                char path[300], driver[256];

                if (strncmp(names[i], "virtfn", strlen("virtfn")) != 0)
                        continue;
                *ret += 1;
                if (!ret_bound)
                        continue;
                (void) snprintf(path, sizeof(path), "%s/driver", names[i]);
                *ret_bound += sysfs_link_name(fs, PCI_PATH(pf, path), driver, sizeof(driver)) >= 0;
        }
        return 0;
}

/* Waits until the PF has `count` links virtfnN: a PF driver may still add or remove VFs when the write to sriov_numvfs
 * has returned. sysfs does not notify of new links, so poll. */
static int wait_for_links(const Sysfs *fs, PciAddress pf, unsigned count) {
        const struct timespec interval = { .tv_nsec = LINKS_INTERVAL_USEC * 1000 };
        uint64_t end = clock_usec(CLOCK_MONOTONIC) + LINKS_WAIT_USEC;

        for (;;) {
                unsigned links;
                int r = count_links(fs, pf, &links, NULL);

                if (r < 0 || links == count)
                        return r;
                if (clock_usec(CLOCK_MONOTONIC) >= end)
                        return -EIO;
                (void) nanosleep(&interval, NULL);
        }
}

/* Writes sriov_numvfs, and waits for the links. Returns 1 after a change, 0 if it has the value already, or a negative
 * errno. */
static int change_numvfs(const Sysfs *fs, PciAddress pf, unsigned count) {
        char value[16];
        int changed, r;

        (void) snprintf(value, sizeof(value), "%u", count);
        changed = sysfs_set(fs, PCI_PATH(pf, "sriov_numvfs"), value);
        if (changed < 0)
                return changed;
        r = wait_for_links(fs, pf, count);
        return r < 0 ? r : changed;
}

int sriov_set_numvfs(const Sysfs *fs, PciAddress pf, unsigned count) {
        unsigned links;
        int r = count_links(fs, pf, &links, NULL);

        if (r < 0)
                return r;
        if (links != 0 && links != count)
                return -EBUSY;
        r = change_numvfs(fs, pf, count);
        /*
         * The kernel only logs a warning when the driver enabled fewer VFs: remove these VFs. After other errors than
         * -EIO the VFs may be those of another program, created since they were counted.
         */
        if (r == -EIO && links == 0)
                (void) sysfs_set(fs, PCI_PATH(pf, "sriov_numvfs"), "0");
        return r;
}

int sriov_remove_vfs(const Sysfs *fs, PciAddress pf, unsigned count) {
        unsigned links, bound = 0;
        int r = count_links(fs, pf, &links, &bound);

        if (r < 0)
                return r;
        /* Removing a VF blocks while a guest has it open (pci_disable_sriov() waits with pci_rescan_remove_lock held).
         * A guest can open a VF only through a driver, so VFs with a driver are not removed. */
        if (bound > 0 || (links != 0 && links != count))
                return -EBUSY;
        return change_numvfs(fs, pf, 0);
}

bool sriov_has_vf(const Sysfs *fs, PciAddress pf, unsigned vf) {
        char link[32], target[PCI_ADDRESS_STRING_MAX];

        (void) snprintf(link, sizeof(link), "virtfn%u", vf);
        return sysfs_link_name(fs, PCI_PATH(pf, link), target, sizeof(target)) >= 0;
}
