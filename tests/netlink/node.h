/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interfaces of the simulated node, and the files in which it keeps what their PF says of its VFs. Values are those
 * of the wire (linux/if_link.h). All return a negative errno. */
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
        char pci[64];       /* the device it belongs to; "" if none */
        char port_name[32]; /* phys_port_name */
        uint8_t switch_id[ADDRESS_MAX];
        unsigned switch_id_size;
        int n_vfs; /* -1: its device has none to offer */
        bool told; /* it answers for VFs */
} Netdev;

/* Calls back until that returns other than 0, and returns that. */
int netdevs_each(int (*each)(const Netdev *dev, void *userdata), void *userdata);
int netdev_find(uint32_t ifindex, const char *name, Netdev *ret); /* by name where ifindex is 0; -ENODEV */

/* As the driver of a PCI function says it, in the numbers of linux/devlink.h. -ENODEV: it has no devlink. -EOPNOTSUPP:
 * no such switch. Waits as long as the file does. */
int eswitch_read_mode(const char *address, uint16_t *ret);

/* One line of a file of that VF, without the newline. -EINVAL: no such VF. -EOPNOTSUPP: its driver has none. */
int vf_read(const Netdev *dev, uint32_t vf, const char *file, char buf[static 64]);
/* "%s\n" in one write: counted, logged and refused as any other. Waits as long as that does. */
int vf_write(const Netdev *dev, uint32_t vf, const char *file, const char *value);
