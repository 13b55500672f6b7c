/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "firmware.h"

#include <fcntl.h>
#include <unistd.h>

#include "guest/domain-facts.h"
#include "util/fileio.h"
#include "util/strings.h"

#define DESCRIPTORS_MAX 1024U
#define DESCRIPTOR_MAX  65536U

static int open_directory(const char *root, const char *path) {
        _cleanup_free_ char *full = string_format("%s/%s", root, path);

        return full ? open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* Reads each descriptor in the directory `fd`, unless the directory `above` has a file of the same name. Either is -1
 * if its directory is missing. */
static void read_descriptors(int fd, int above, LibvirtFeatures *f) {
        _cleanup_names_ char **names = NULL;
        size_t n = 0;

        if (fd < 0 || list_dir_at(fd, ".", DESCRIPTORS_MAX, &names, &n) < 0)
                return;
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *text = NULL;
                size_t size;

                if ((above < 0 || faccessat(above, names[i], F_OK, 0) < 0) &&
                    read_file_at(fd, names[i], DESCRIPTOR_MAX, &text, &size) >= 0)
                        domain_facts_firmware(text, size, f);
        }
}

/* An administrator's descriptor hides a package's descriptor of the same name (docs/interop/firmware.json of QEMU). */
void firmware_find(const char *root, LibvirtFeatures *f) {
        _cleanup_close_ int ours = open_directory(root, "etc/qemu/firmware"),
                            packaged = open_directory(root, "usr/share/qemu/firmware");

        read_descriptors(ours, -1, f);
        read_descriptors(packaged, ours, f);
}
