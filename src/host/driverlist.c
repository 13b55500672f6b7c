/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists the PCI drivers in sysfs, and the VFIO variant drivers among them. */

#include "host/driverlist.h"

#include <errno.h>
#include <fcntl.h>

#include "host/modalias.h"
#include "util/fileio.h"
#include "util/strings.h"

#define DRIVERS       "sys/bus/pci/drivers"
#define DRIVERS_PROBE "sys/bus/pci/drivers_probe"
#define DRIVERS_MAX   4096U

/* Reads the driver names, not the variants. */
static int read_names(const Sysfs *fs, Inventory *inv) {
        _cleanup_close_ int probe_fd = sysfs_open(fs, DRIVERS_PROBE, O_PATH), fd = -1;
        int r = probe_fd < 0 ? probe_fd : (fd = sysfs_open(fs, DRIVERS, O_RDONLY | O_DIRECTORY));

        if (r >= 0)
                r = list_dir_at(fd, ".", DRIVERS_MAX, &inv->drivers, &inv->n_drivers);
        inv->drivers_known = r >= 0;
        return r == -ENOMEM ? r : 0;
}

int driver_list_scan(const Sysfs *fs, Inventory *inv) {
        int r = read_names(fs, inv);

        return r < 0 ? r : modalias_scan(fs, inv);
}

static bool same_names(const Inventory *a, const Inventory *b) {
        if (a->drivers_known != b->drivers_known || a->n_drivers != b->n_drivers)
                return false;
        for (size_t i = 0; i < a->n_drivers; i++)
                if (!streq(a->drivers[i], b->drivers[i]))
                        return false;
        return true;
}

int driver_list_refresh(const Sysfs *fs, Inventory *inv) {
        _cleanup_(cleanup_inventory_free) Inventory *now = inventory_new();
        int r = now ? read_names(fs, now) : -ENOMEM;

        if (r < 0 || same_names(inv, now))
                return r;
        r = modalias_scan(fs, now);
        if (r < 0)
                return r;
        inventory_swap_drivers(inv, now);
        return 1;
}
