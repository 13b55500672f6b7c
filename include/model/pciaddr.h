/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The address of a PCI function, a value. Inside the program addresses are values, text only at the edges. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The kernel's PCI domains have 32 bits: those of Intel VMD start at 10000. QEMU reads 16 bits of the domain of a host
 * device (-device vfio-pci,host=), so no guest can be given a function of a higher one.
 */
#define PCI_DOMAIN_ASSIGNABLE_MAX 0xffffU

typedef struct PciAddress {
        uint32_t domain;
        uint8_t bus;
        uint8_t slot;     /* 0..31 */
        uint8_t function; /* 0..7 */
} PciAddress;

/* Canonical text only, DDDD:BB:SS.F with four to eight domain digits, as the kernel prints it. -EINVAL otherwise. */
int pci_address_parse(const char *s, PciAddress *ret);

#define PCI_ADDRESS_STRING_MAX 20
const char *pci_address_format(PciAddress a, char buf[static PCI_ADDRESS_STRING_MAX]);
/* Lives until the end of the enclosing block. */
#define PCI_ADDRESS_STR(a) pci_address_format((a), (char[PCI_ADDRESS_STRING_MAX]){ 0 })

/* Ascending as the addresses are. */
static inline uint64_t pci_address_key(PciAddress a) {
        return (uint64_t) a.domain << 24 | (uint64_t) a.bus << 16 | (uint64_t) a.slot << 8 | a.function;
}
static inline int pci_address_compare(PciAddress a, PciAddress b) {
        uint64_t x = pci_address_key(a), y = pci_address_key(b);

        return (x > y) - (x < y);
}
static inline bool pci_address_equal(PciAddress a, PciAddress b) {
        return pci_address_compare(a, b) == 0;
}
/* Appends to an array that began as NULL and 0. -ENOMEM leaves it as it was. */
int pci_address_append(PciAddress **array, size_t *n, PciAddress a);
/* Ascending, each once; *n becomes how many are left. */
void pci_addresses_sort(PciAddress *array, size_t *n);
/* array: sorted. */
bool pci_addresses_have(const PciAddress *array, size_t n, PciAddress a);

/* Same domain, bus and slot: functions of one card. */
bool pci_address_same_slot(PciAddress a, PciAddress b);

static inline bool pci_address_is_assignable(PciAddress a) {
        return a.domain <= PCI_DOMAIN_ASSIGNABLE_MAX;
}
