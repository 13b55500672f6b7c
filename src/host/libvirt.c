/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/libvirt.h"

#include <fcntl.h>

#include "util/fileio.h"
#include "util/strings.h"

#define SCHEMA_MAX       (4U * 1024U * 1024U)
#define CAPABILITIES_MAX (16U * 1024U * 1024U)
#define QEMUS_MAX        1024U

static void read_schemas(const Sysfs *fs, LibvirtFeatures *f) {
        /* The driver of a host device is in the first since it has a model. */
        static const char *const names[] = { "basictypes.rng", "cputypes.rng" };
        _cleanup_close_ int dir = sysfs_open(fs, LIBVIRT_SCHEMAS_DIR, O_RDONLY | O_DIRECTORY);

        for (size_t i = 0; dir >= 0 && i < ELEMENTSOF(names); i++) {
                _cleanup_free_ char *text = NULL;

                if (read_file_at(dir, names[i], SCHEMA_MAX, &text, NULL) >= 0)
                        libvirt_features_add_schema(f, text);
        }
}

static bool qemus_have_iommufd(const Sysfs *fs) {
        _cleanup_close_ int dir = sysfs_open(fs, LIBVIRT_CAPABILITIES_DIR, O_RDONLY | O_DIRECTORY);
        char **names = NULL;
        size_t n = 0, seen = 0, have = 0;

        if (dir < 0 || list_dir_at(dir, ".", QEMUS_MAX, &names, &n) < 0)
                return false;
        for (size_t i = 0; i < n; i++) {
                const char *suffix = strrchr(names[i], '.');
                _cleanup_free_ char *text = NULL;

                if (!suffix || !streq(suffix, ".xml"))
                        continue;
                seen++;
                have += read_file_at(dir, names[i], CAPABILITIES_MAX, &text, NULL) >= 0 &&
                        libvirt_qemu_has_iommufd(text);
        }
        (void) free_names(names, n);
        return seen > 0 && have == seen;
}

static bool kernel_has_iommufd(const Sysfs *fs) {
        _cleanup_close_ int fd = sysfs_open(fs, "dev/iommu", O_PATH);

        return fd >= 0;
}

void libvirt_features_read(const Sysfs *fs, LibvirtFeatures *ret) {
        LibvirtFeatures f = { 0 };

        read_schemas(fs, &f);
        f.iommufd = f.iommufd && kernel_has_iommufd(fs) && qemus_have_iommufd(fs);
        *ret = f;
}
