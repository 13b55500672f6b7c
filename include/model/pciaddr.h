/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The address of a PCI function, or of a slot for a mediated device of it (model/mdev-slots.h). Addresses are passed by
 * value. Only input and output have them as text. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * PCI domain numbers have 32 bits in the kernel; those of Intel VMD start at 0x10000. QEMU parses only 16 bits in
 * -device vfio-pci,host=, so a function in a higher domain cannot be assigned to a guest.
 */
#define PCI_DOMAIN_ASSIGNABLE_MAX 0xffffU

typedef struct PciAddress {
        uint32_t domain;
        uint8_t bus;
        uint8_t slot;     /* 0..31 */
        uint8_t function; /* 0..7 */
        uint8_t instance; /* 0: the function itself; 1..PCI_INSTANCE_MAX: a slot for a mediated device on it */
} PciAddress;

#define PCI_INSTANCE_MAX 99U

/*
 * Parses canonical text, DDDD:BB:SS.F with four to eight domain digits, as the kernel prints it, or DDDD:BB:SS.F.N with
 * the instance N. 0 or -EINVAL.
 */
int pci_address_parse(const char *s, PciAddress *ret);
/* As pci_address_parse(), for the first n bytes of s: an address within a path. */
int pci_address_parse_part(const char *s, size_t n, PciAddress *ret);

/* Returns whether a function or slot can have this address, which another program has sent as numbers. */
bool pci_address_is_valid(PciAddress a);

/* Room for the text of a valid address and its NUL. */
#define PCI_ADDRESS_STRING_MAX 20
const char *pci_address_format(PciAddress a, char buf[static PCI_ADDRESS_STRING_MAX]);
/* The address as text. The string lives until the end of the block. */
#define PCI_ADDRESS_STR(a) pci_address_format((a), (char[PCI_ADDRESS_STRING_MAX]) { 0 })

/* Returns the address without its instance: a path in sysfs has none. */
static inline PciAddress pci_address_function(PciAddress a) {
        a.instance = 0;
        return a;
}
/* Returns a number that sorts addresses by domain, bus, slot, function and instance. */
static inline uint64_t pci_address_key(PciAddress a) {
        return (uint64_t) a.domain << 32 | (uint64_t) a.bus << 24 | (uint64_t) a.slot << 16 |
               (uint64_t) a.function << 8 | a.instance;
}
static inline int pci_address_compare(PciAddress a, PciAddress b) {
        uint64_t x = pci_address_key(a), y = pci_address_key(b);

        return (x > y) - (x < y);
}
static inline bool pci_address_equal(PciAddress a, PciAddress b) {
        return pci_address_compare(a, b) == 0;
}
/* Appends an address to an array, which is NULL at first, with *n 0. The caller frees it. 0, or -ENOMEM, which changes
 * nothing. */
int pci_address_append(PciAddress **array, size_t *n, PciAddress a);
/* Sorts the addresses ascending and removes duplicates; *n is then the number that is left. */
void pci_addresses_sort(PciAddress *array, size_t *n);
/* Returns whether the sorted array has the address. */
bool pci_addresses_have(const PciAddress *array, size_t n, PciAddress a);

/* Returns true when domain, bus and slot are the same: both are functions of one card. */
bool pci_address_same_slot(PciAddress a, PciAddress b);

static inline bool pci_address_is_assignable(PciAddress a) {
        return a.domain <= PCI_DOMAIN_ASSIGNABLE_MAX;
}

/* Finds the address in a sorted array of n elements of size bytes, each of which begins with a PciAddress. Returns its
 * index, or where to insert it. */
static inline size_t pci_address_find(const void *array, size_t n, size_t size, PciAddress address, bool *ret_found) {
        size_t low = 0, high = n;

        *ret_found = false;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const PciAddress *at = (const void *) ((const char *) array + middle * size);
                int c = pci_address_compare(*at, address);

                if (c == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (c < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}
#define PCI_ADDRESS_FIND(array, n, address, found) pci_address_find((array), (n), sizeof(*(array)), (address), (found))
