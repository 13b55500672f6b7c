/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resets a device and checks that it responds afterwards. */

#include "reset.h"

#include <errno.h>
#include <fcntl.h>

#include "host/pcipath.h"
#include "pciback.h"
#include "sriov.h"
#include "util/strings.h"

/* Sets the reset methods, separated by spaces. -EINVAL: the device does not offer one of them. */
static int set_methods(const Sysfs *fs, PciAddress address, const char *methods) {
        const char *path = PCI_PATH(address, "reset_method");
        char now[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_read(fs, path, now, sizeof(now));

        if (r >= 0 && streq(now, methods))
                return 0;
        if (r >= 0)
                r = sysfs_write(fs, path, methods);
        if (r >= 0)
                r = sysfs_read(fs, path, now, sizeof(now));
        if (r < 0)
                return r == -ENOENT ? -EINVAL : r; /* before Linux 5.15 there is no such file */
        return streq(now, methods) ? 0 : -EIO;
}

int reset_device(const Sysfs *fs, PciAddress address, const char *method, const char *before) {
        int r = sriov_has_vf(fs, address, 0) ? -ENOTEMPTY : pciback_check_unused(fs, address), restored = 0;

        if (r == 0 && method)
                r = set_methods(fs, address, method);
        if (r == 0)
                r = sysfs_write(fs, PCI_PATH(address, "reset"), "1");
        if (method && before)
                restored = set_methods(fs, address, before);
        if (r >= 0 && restored < 0)
                return restored;
        return r < 0 ? r : 1;
}

/* The standard header of config space. A device that does not respond reads as all ones (domain.md H, PCI 3.0 6.1). */
#define HEADER_SIZE 64

static bool all_ones(const uint8_t *bytes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (bytes[i] != 0xff)
                        return false;
        return true;
}

int reset_check(const Sysfs *fs, PciAddress address) {
        _cleanup_close_ int fd = sysfs_open(fs, PCI_PATH(address, "config"), O_RDONLY);
        uint8_t header[HEADER_SIZE];
        char text[SYSFS_ATTRIBUTE_MAX];
        uint64_t vendor;
        ssize_t n;
        int r;

        if (fd < 0)
                return fd;
        n = pread(fd, header, sizeof(header), 0);
        if (n < 0)
                return -errno;
        if (n < 2 || all_ones(header, (size_t) n))
                return -EIO;
        /* The vendor ID register of a VF is all ones (SR-IOV 9.3.4.1). */
        if (all_ones(header, 2))
                return 0;
        r = sysfs_read(fs, PCI_PATH(address, "vendor"), text, sizeof(text));
        if (r >= 0)
                r = parse_hex(text, UINT16_MAX, &vendor);
        if (r < 0)
                return r;
        return vendor == (unsigned) (header[0] | header[1] << 8) ? 0 : -ENXIO;
}
