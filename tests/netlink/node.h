/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interfaces of the simulated node, and its files with the VFs of their PFs. Values are those of linux/if_link.h.
 * All functions return a negative errno on failure. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_MAX 32

typedef struct Netdev {
        char name[NAME_MAX + 1];
        uint32_t ifindex;
        uint16_t type; /* ARPHRD_ */
        uint8_t address[ADDRESS_MAX];
        unsigned address_size;
        char pci[64];       /* the device of the interface; "" for none */
        char port_name[32]; /* phys_port_name */
        uint8_t switch_id[ADDRESS_MAX];
        unsigned switch_id_size;
        int n_vfs; /* -1: the device has no VFs */
        bool told; /* the interface reports VFs */
} Netdev;

/* Calls each() until it returns another value than 0, and returns that value. */
int netdevs_each(int (*each)(const Netdev *dev, void *userdata), void *userdata);
int netdev_find(uint32_t ifindex, const char *name, Netdev *ret); /* by name if ifindex is 0; -ENODEV */

/* Reads the eswitch mode of a PCI function's driver as in linux/devlink.h. -ENODEV: no devlink. -EOPNOTSUPP: no
 * eswitch. Waits as long as a read of the file. */
int eswitch_read_mode(const char *address, uint16_t *ret);

/* Reads one line of a VF's file, without the newline. -EINVAL: no such VF. -EOPNOTSUPP: the driver lacks it. */
int vf_read(const Netdev *dev, uint32_t vf, const char *file, char buf[static 64]);
/* Writes value and a newline in one write, which is counted, logged and refused like any other, and may wait. */
int vf_write(const Netdev *dev, uint32_t vf, const char *file, const char *value);
