/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Device Serial Number capability (PCI Express Base 7.9.3). */

#include "host/serial.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <unistd.h>

#include "model/serial.h"

/* Its two registers. */
#define SERIAL_LOW       4
#define SERIAL_HIGH      8
/* As many as fit between the two ends: a list that runs in a circle ends, too. */
#define CAPABILITIES_MAX ((PCI_CFG_SPACE_EXP_SIZE - PCI_CFG_SPACE_SIZE) / 8)

/* -ENODATA past the end of what may be read. */
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

        if (r == 0)
                r = read_word(fd, at + SERIAL_HIGH, &high);
        if (r == 0)
                *ret = pci_serial_known((uint64_t) high << 32 | low);
        return r;
}

static int find_serial(int fd, uint64_t *ret) {
        int at = PCI_CFG_SPACE_SIZE;

        *ret = 0;
        for (unsigned i = 0; i < CAPABILITIES_MAX && at >= PCI_CFG_SPACE_SIZE; i++) {
                uint32_t header;
                int r = read_word(fd, at, &header);

                if (r < 0)
                        return r;
                /* A card that fell off the bus reads all ones, and says nothing about who it is. */
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

/* A conventional device has 256 bytes for everybody; of an express one an unprivileged reader gets 64. */
static bool is_conventional(int fd) {
        off_t end = lseek(fd, 0, SEEK_END);

        return end == PCI_CFG_SPACE_SIZE;
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
        if (!is_conventional(fd))
                r = find_serial(fd, &serial);
        if (r < 0)
                return r;
        *ret = serial;
        return 0;
}
