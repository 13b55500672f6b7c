/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists the PCI drivers in sysfs, and the VFIO variant drivers among them. */

#include "host/driverlist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "util/fileio.h"
#include "util/strings.h"

#define DRIVERS       "sys/bus/pci/drivers"
#define DRIVERS_PROBE "sys/bus/pci/drivers_probe"
#define DRIVERS_MAX   4096U
#define ALIASES_MAX   (64U * 1024U * 1024U)
/* A line of modules.alias: "alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci". */
#define PREFIX        "alias vfio_pci:"
#define PLAIN         "vfio_pci" /* the module that matches every device; it is no variant driver */

/* Reads the driver names, without the variants. Sets drivers_known. Returns 0 or -ENOMEM. */
static int read_names(const Sysfs *fs, Inventory *inv) {
        _cleanup_close_ int probe_fd = sysfs_open(fs, DRIVERS_PROBE, O_PATH), fd = -1;
        int r = probe_fd < 0 ? probe_fd : (fd = sysfs_open(fs, DRIVERS, O_RDONLY | O_DIRECTORY));

        if (r >= 0)
                r = list_dir_at(fd, ".", DRIVERS_MAX, &inv->drivers, &inv->n_drivers);
        inv->drivers_known = r >= 0;
        return r == -ENOMEM ? r : 0;
}

static bool driver_is_registered(const Sysfs *fs, const char *driver) {
        char path[SYSFS_ATTRIBUTE_MAX];
        _cleanup_close_ int fd = -1;

        /* "." and ".." are not drivers. */
        if (!*driver || *driver == '.' || strchr(driver, '/') ||
            (size_t) snprintf(path, sizeof(path), DRIVERS "/%s", driver) >= sizeof(path))
                return false;
        fd = sysfs_open(fs, path, O_PATH | O_DIRECTORY);
        return fd >= 0;
}

/* Finds the driver of a module: '_' in the name of a module may be '-' in that of its driver. Changes `module` to the
 * name of the driver. Returns false when no such driver is registered; then `module` has no '_' any more. */
static bool find_driver(const Sysfs *fs, char *module) {
        if (driver_is_registered(fs, module))
                return true;
        for (char *c = module; (c = strchr(c, '_'));)
                *c = '-';
        return driver_is_registered(fs, module);
}

static int add_line(const Sysfs *fs, Inventory *inv, char *line) {
        char *pattern = line + strlen(PREFIX), *module = strchr(pattern, ' ');
        _cleanup_free_ char *driver = NULL;
        bool loaded;

        if (!module)
                return 0;
        *module++ = '\0';
        driver = strdup(module);
        if (!driver)
                return -ENOMEM;
        if (streq(module, PLAIN))
                return 0;
        loaded = find_driver(fs, driver);
        return inventory_add_variant(inv, pattern, loaded ? driver : module, loaded);
}

int driver_list_modules_alias(const Sysfs *fs, char ret[static MODULES_ALIAS_MAX]) {
        char release[256];

        if (sysfs_read(fs, "proc/sys/kernel/osrelease", release, sizeof(release)) <= 0 || strchr(release, '/') ||
            streq(release, "..") || streq(release, "."))
                return -ENOENT;
        (void) snprintf(ret, MODULES_ALIAS_MAX, "lib/modules/%s/modules.alias", release);
        return 0;
}

static int read_aliases(const Sysfs *fs, char **ret) {
        char path[MODULES_ALIAS_MAX];
        _cleanup_close_ int fd = -1;
        int r = driver_list_modules_alias(fs, path);

        if (r < 0)
                return r;
        fd = sysfs_open(fs, path, O_RDONLY | O_NONBLOCK);
        return fd < 0 ? fd : read_file_fd(fd, ALIASES_MAX, ret, NULL);
}

/* Adds the variant drivers in modules.alias, if that can be read. Returns 0 or -ENOMEM. */
static int scan_variants(const Sysfs *fs, Inventory *inv) {
        _cleanup_free_ char *text = NULL;
        char *rest, *line;
        int r = read_aliases(fs, &text);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        rest = text;
        while (r >= 0 && (line = strsep(&rest, "\n")))
                if (strncmp(line, PREFIX, strlen(PREFIX)) == 0)
                        r = add_line(fs, inv, line);
        return r == -ENOMEM ? r : 0;
}

int driver_list_scan(const Sysfs *fs, Inventory *inv) {
        int r = read_names(fs, inv);

        return r < 0 ? r : scan_variants(fs, inv);
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
        r = scan_variants(fs, now);
        if (r < 0)
                return r;
        inventory_swap_drivers(inv, now);
        return 1;
}
