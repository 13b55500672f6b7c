/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A line of lib/modules/RELEASE/modules.alias: "alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci". */

#include "host/modalias.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "util/fileio.h"
#include "util/strings.h"

#define PREFIX      "alias vfio_pci:"
#define PLAIN       "vfio_pci" /* matches every device, so it is no variant driver */
#define ALIASES_MAX (64U * 1024U * 1024U)
#define DRIVERS     "sys/bus/pci/drivers"

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

/* A module's name has '_' where the name of its driver may have '-'. */
static bool find_driver(const Sysfs *fs, char *module) {
        if (driver_is_registered(fs, module))
                return true;
        for (char *c = module; (c = strchr(c, '_'));)
                *c = '-';
        return driver_is_registered(fs, module);
}

static int add_line(const Sysfs *fs, Inventory *inv, char *line) {
        char *pattern = line + strlen(PREFIX), *module = strchr(pattern, ' ');

        if (!module)
                return 0;
        *module++ = '\0';
        if (streq(module, PLAIN) || !find_driver(fs, module))
                return 0;
        return inventory_add_variant(inv, pattern, module);
}

int modalias_path(const Sysfs *fs, char ret[static MODALIAS_PATH_MAX]) {
        char release[256];

        if (sysfs_read(fs, "proc/sys/kernel/osrelease", release, sizeof(release)) <= 0 || strchr(release, '/') ||
            streq(release, "..") || streq(release, "."))
                return -ENOENT;
        (void) snprintf(ret, MODALIAS_PATH_MAX, "lib/modules/%s/modules.alias", release);
        return 0;
}

static int read_aliases(const Sysfs *fs, char **ret) {
        char path[MODALIAS_PATH_MAX];
        _cleanup_close_ int fd = -1;
        int r = modalias_path(fs, path);

        if (r < 0)
                return r;
        fd = sysfs_open(fs, path, O_RDONLY | O_NONBLOCK);
        return fd < 0 ? fd : read_file_fd(fd, ALIASES_MAX, ret, NULL);
}

int modalias_scan(const Sysfs *fs, Inventory *inv) {
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
