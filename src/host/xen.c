/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the devices that guests of Xen have. */

#include "host/xen.h"

#include <errno.h>
#include <fcntl.h>

#include "host/rootservice.h"
#include "model/inventory.h"
#include "util/clock.h"
#include "util/fileio.h"

#define BACKENDS     "sys/bus/xen-backend/devices"
#define PCIBACK      "sys/bus/pci/drivers/" PCIBACK_DRIVER
#define ENTRIES_MAX  65536U
/* How long to wait for xenstore, in the event loop and in a child. */
#define ANSWER_USEC  1000000U
#define PATIENT_USEC 5000000U
/* After a timeout, fail at once for this time: each question blocks the process. */
#define SILENCE_USEC 5000000U

static uint64_t silent_until, patience = ANSWER_USEC;

void xen_guests_may_block(void) {
        silent_until = 0;
        patience = PATIENT_USEC;
}

void xen_guests_done(XenGuests *g) {
        free(g->devices);
}

bool xen_is_dom0(const Sysfs *fs) {
        char text[SYSFS_ATTRIBUTE_MAX];

        if (sysfs_read(fs, "sys/hypervisor/type", text, sizeof(text)) < 0 || !streq(text, "xen"))
                return false;
        return sysfs_read(fs, "proc/xen/capabilities", text, sizeof(text)) < 0 || strstr(text, "control_d");
}

/* Lists a directory. A missing directory counts as empty. Returns 0 or a negative errno. */
static int list_entries(const Sysfs *fs, const char *path, char ***ret, size_t *n) {
        _cleanup_close_ int fd = sysfs_open(fs, path, O_RDONLY | O_DIRECTORY);
        int r = fd < 0 ? fd : list_dir_at(fd, ".", ENTRIES_MAX, ret, n);

        return r == -ENOENT ? 0 : MIN(r, 0);
}

/* Returns 1 when a guest has PCI devices, 0 when none has, or a negative errno. The kernel's xenbus names a backend
 * TYPE-DOMAIN-NUMBER (backend_bus_id() in xenbus_probe_backend.c). */
static int has_backend(const Sysfs *fs) {
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = list_entries(fs, BACKENDS, &names, &n);

        for (size_t i = 0; r == 0 && i < n; i++)
                r = strncmp(names[i], "pci-", strlen("pci-")) == 0;
        return r;
}

/* Adds every device that is bound to pciback. */
static int read_bound(const Sysfs *fs, XenGuests *ret) {
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = list_entries(fs, PCIBACK, &names, &n);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                XenGuestDevice device = { .domain = XEN_DOMAIN_UNKNOWN };

                if (pci_address_parse(names[i], &device.address) < 0)
                        continue;
                r = ARRAY_RESERVE(ret->devices, ret->n);
                if (r < 0)
                        return r;
                ret->devices[ret->n++] = device;
        }
        return r;
}

static int ask_root(XenGuests *ret) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC);
        int r = now < silent_until ? -EHOSTDOWN : root_read_xen_guests(now + patience, ret);

        if (now >= silent_until && (r == -ETIMEDOUT || r == -EHOSTDOWN))
                silent_until = clock_usec(CLOCK_MONOTONIC) + SILENCE_USEC;
        return r;
}

int xen_guests_read(const Sysfs *fs, XenGuests *ret) {
        int r = ask_root(ret);

        if (r == 0 || r == -ENOMEM)
                return r;
        r = has_backend(fs);
        return r > 0 ? read_bound(fs, ret) : r;
}
