/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "libvirt.h"

#include <fcntl.h>

#include "util/fileio.h"
#include "util/strings.h"

#define SCHEMA_MAX       (4U * 1024U * 1024U)
#define CAPABILITIES_MAX (16U * 1024U * 1024U)
#define QEMUS_MAX        1024U

static void read_schemas(const Sysfs *fs, LibvirtFeatures *f) {
        /* cputypes.rng defines <maxphysaddr>. basictypes.rng defines the <driver> of a host device since libvirt added
         * its model attribute. domaincommon.rng defines the <acpi> of a device. */
        static const char *const names[] = { "basictypes.rng", "cputypes.rng", "domaincommon.rng" };
        _cleanup_close_ int dir = sysfs_open(fs, LIBVIRT_SCHEMAS_DIR, O_RDONLY | O_DIRECTORY);

        for (size_t i = 0; dir >= 0 && i < ELEMENTSOF(names); i++) {
                _cleanup_free_ char *text = NULL;

                if (read_file_at(dir, names[i], SCHEMA_MAX, &text, NULL) >= 0)
                        libvirt_features_add_schema(f, text);
        }
}

/* Keeps the features that every QEMU supports. A QEMU whose capabilities cannot be read supports none. */
static void limit_to_qemus(const Sysfs *fs, LibvirtFeatures *f) {
        _cleanup_close_ int dir = sysfs_open(fs, LIBVIRT_CAPABILITIES_DIR, O_RDONLY | O_DIRECTORY);
        _cleanup_names_ char **names = NULL;
        size_t n = 0, seen = 0;

        if (dir >= 0)
                (void) list_dir_at(dir, ".", QEMUS_MAX, &names, &n);
        for (size_t i = 0; i < n && (f->iommufd || f->acpi_nodeset); i++) {
                const char *suffix = strrchr(names[i], '.');
                _cleanup_free_ char *text = NULL;

                if (!suffix || !streq(suffix, ".xml"))
                        continue;
                (void) read_file_at(dir, names[i], CAPABILITIES_MAX, &text, NULL);
                seen += libvirt_features_limit(f, text ?: "");
        }
        if (seen == 0)
                f->iommufd = f->acpi_nodeset = false;
}

static bool kernel_has_iommufd(const Sysfs *fs) {
        _cleanup_close_ int fd = sysfs_open(fs, "dev/iommu", O_PATH);

        return fd >= 0;
}

void libvirt_features_read(const Sysfs *fs, LibvirtFeatures *ret) {
        LibvirtFeatures f = { 0 };

        read_schemas(fs, &f);
        limit_to_qemus(fs, &f);
        f.iommufd = f.iommufd && kernel_has_iommufd(fs);
        *ret = f;
}
