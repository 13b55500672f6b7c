/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Serial numbers of cards: their text, and their place in config space. */

#include <errno.h>

#include "unit.h"

#include "host/serial.h"
#include "model/serial.h"
#include "scanfixture.h"

#define NIC_ADDRESS "0000:01:00.0"
#define SERIAL      UINT64_C(0x0002c90300123456)

TEST(test_text) {
        static const char *const wrong[] = {
                "",
                "0",
                "00-02-c9-03-00-12-34",
                "00-02-c9-03-00-12-34-5",
                "00-02-c9-03-00-12-34-56-",
                "00-02-c9-03-00-12-34-567",
                "00-02-C9-03-00-12-34-56",
                "00:02:c9:03:00:12:34:56",
                "00-02-c9-03-00-12-34-5g",
                "000-2-c9-03-00-12-34-56",
                "00-00-00-00-00-00-00-00",
                "ff-ff-ff-ff-ff-ff-ff-ff",
        };
        char text[PCI_SERIAL_STRING_MAX];
        uint64_t serial = 0;

        assert_string_equal(pci_serial_format(SERIAL, text), "00-02-c9-03-00-12-34-56");
        assert_int_equal(pci_serial_parse(text, &serial), 0);
        assert_true(serial == SERIAL);
        assert_string_equal(pci_serial_format(UINT64_C(0xfedcba9876543210), text), "fe-dc-ba-98-76-54-32-10");
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                serial = 7;
                assert_int_equal(pci_serial_parse(wrong[i], &serial), -EINVAL);
                assert_true(serial == 7);
        }
}

static PciAddress address_of(const char *text) {
        PciAddress address;

        assert_int_equal(pci_address_parse(text, &address), 0);
        return address;
}

static void put(uint8_t *config, size_t at, uint32_t word) {
        for (unsigned i = 0; i < 4; i++)
                config[at + i] = (uint8_t) (word >> 8 * i);
}

/* Writes an extended capability and the offset of the next one. */
static void put_capability(uint8_t *config, size_t at, uint16_t id, uint32_t next) {
        put(config, at, id | 1U << 16 | next << 20);
}

static void put_serial(uint8_t *config, size_t at, uint32_t next, uint64_t serial) {
        put_capability(config, at, 3, next);
        put(config, at + 4, (uint32_t) serial);
        put(config, at + 8, (uint32_t) (serial >> 32));
}

static int read_back(const Fixture *f, const uint8_t *config, size_t size, uint64_t *ret) {
        tree_bytes(f->root, "sys/bus/pci/devices/" NIC_ADDRESS "/config", config, size);
        *ret = 7;
        return serial_read(f->fs, address_of(NIC_ADDRESS), ret);
}

static void assert_serial(const Fixture *f, const uint8_t *config, size_t size, uint64_t expected) {
        uint64_t serial;

        assert_int_equal(read_back(f, config, size, &serial), 0);
        assert_true(serial == expected);
}

static void assert_unknown(const Fixture *f, const uint8_t *config, size_t size) {
        uint64_t serial;

        assert_true(read_back(f, config, size, &serial) < 0);
        assert_true(serial == 7);
}

TEST_WITH(test_config, setup, teardown) {
        const Fixture *f = *state;
        uint8_t config[4096] = { 0 };

        /* No serial number: a conventional device, one without extended capabilities, and unset numbers. */
        assert_serial(f, config, 256, 0);
        assert_serial(f, config, 4096, 0);
        put_serial(config, 0x100, 0, 0);
        assert_serial(f, config, 4096, 0);
        put_serial(config, 0x100, 0, UINT64_MAX);
        assert_serial(f, config, 4096, 0);

        put_serial(config, 0x100, 0, SERIAL);
        assert_serial(f, config, 4096, SERIAL);
        put_capability(config, 0x100, 0x10, 0xff4);
        put_serial(config, 0xff4, 0, SERIAL);
        assert_serial(f, config, 4096, SERIAL);
        /* A capability that reaches past the end. */
        put_capability(config, 0x100, 0x10, 0xffc);
        put_serial(config, 0xff0, 0, 0);
        put_capability(config, 0xffc, 3, 0);
        assert_unknown(f, config, 4096);
        /* A list with a loop, and a list that leads below the extended config space. */
        put_capability(config, 0x100, 0x10, 0x140);
        put_capability(config, 0x140, 0x0d, 0x100);
        assert_serial(f, config, 4096, 0);
        put_capability(config, 0x140, 0x0d, 0x40);
        assert_serial(f, config, 4096, 0);
}

TEST_WITH(test_unreadable, setup, teardown) {
        const Fixture *f = *state;
        uint8_t config[4096];
        uint64_t serial = 7;

        /* A device that fell off the bus. */
        memset(config, 0xff, sizeof(config));
        assert_unknown(f, config, 4096);
        /* As an unprivileged reader sees it. */
        memset(config, 0, sizeof(config));
        assert_unknown(f, config, 64);
        assert_int_equal(serial_read(f->fs, address_of("0000:02:00.0"), &serial), -ENODEV);
        assert_true(serial == 7);
}
