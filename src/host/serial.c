/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the Device Serial Number capability (PCI Express Base 7.9.3). */

#include "host/serial.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <unistd.h>

#include "model/serial.h"

/* Offsets of the two halves of the serial number in the capability. */
#define SERIAL_LOW       4
#define SERIAL_HIGH      8
/* The number of capabilities that fit into extended config space. Ends the walk of a list with a loop. */
#define CAPABILITIES_MAX ((PCI_CFG_SPACE_EXP_SIZE - PCI_CFG_SPACE_SIZE) / 8)

/* Reads a register of config space. -ENODATA: it is beyond what this process may read. */
static int read_word(int fd, int at, uint32_t *ret) {
        uint32_t word;
        ssize_t n = pread(fd, &word, sizeof(word), at);

        if (n < 0)
                return -errno;
        if (n != sizeof(word))
                return -ENODATA;
        *ret = le32toh(word);
        return 0;
}

static int read_serial_at(int fd, int at, uint64_t *ret) {
        uint32_t low = 0, high = 0;
        int r = read_word(fd, at + SERIAL_LOW, &low);

        if (r < 0)
                return r;
        r = read_word(fd, at + SERIAL_HIGH, &high);
        if (r < 0)
                return r;
        *ret = pci_serial_known((uint64_t) high << 32 | low);
        return r;
}

static int find_serial(int fd, uint64_t *ret) {
        int at = PCI_CFG_SPACE_SIZE;

        *ret = 0;
        for (unsigned i = 0; i < CAPABILITIES_MAX && at >= PCI_CFG_SPACE_SIZE; i++) {
                uint32_t header = 0;
                int r = read_word(fd, at, &header);

                if (r < 0)
                        return r;
                /* All ones: the card does not respond. */
                if (header == UINT32_MAX)
                        return -EIO;
                if (header == 0)
                        return 0;
                if (PCI_EXT_CAP_ID(header) == PCI_EXT_CAP_ID_DSN)
                        return read_serial_at(fd, at, ret);
                at = PCI_EXT_CAP_NEXT(header);
        }
        return 0;
}

int serial_read(const Sysfs *fs, PciAddress address, uint64_t *ret) {
        char path[sizeof("sys/bus/pci/devices//config") + PCI_ADDRESS_STRING_MAX];
        _cleanup_close_ int fd = -1;
        uint64_t serial = 0;
        int r = 0;

        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/config", PCI_ADDRESS_STR(address));
        fd = sysfs_open(fs, path, O_RDONLY);
        if (fd < 0)
                return fd == -ENOENT ? -ENODEV : fd;
        /* config has 256 bytes for a conventional device, which has no extended config space, and 4096 for an express
         * device. An unprivileged reader gets 64 bytes of either. */
        if (lseek(fd, 0, SEEK_END) != PCI_CFG_SPACE_SIZE)
                r = find_serial(fd, &serial);
        if (r < 0)
                return r;
        *ret = serial;
        return 0;
}
