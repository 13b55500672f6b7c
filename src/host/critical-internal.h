/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Interfaces between the files that find the devices the host uses. All functions return 0 or -ENOMEM unless noted. A
 * missing file or an invalid value is skipped, because devices come and go. An existing file that cannot be read sets
 * Inventory.critical_error, except attributes of memory, names of device mapper devices, and attributes that tell
 * whether an export or netconsole is enabled, which then count as missing.
 */

#include "host/critical.h"

#define CRITICAL_ENTRIES_MAX 65536U /* a directory with more entries counts as unreadable */

/* The network addresses that the host uses, with the interfaces through which routes lead to them. */
typedef struct Peers Peers;

typedef struct Critical {
        const Sysfs *fs;
        const Config *config; /* may be NULL */
        Inventory *inv;
        Peers *peers;
        const char *remedy; /* for PciDevice.critical_remedy; static */
} Critical;

/* critical.c: reads the files that show what the host uses. */

/* Calls take() for each line of the file. A file that cannot be read sets Inventory.critical_error, also if it is
 * missing, unless `optional` is set. */
int critical_lines(const Critical *c, const char *path, bool optional, int (*take)(const Critical *, char *));
/* Handles an error of reading path. Returns -ENOMEM for that error. Ignores errors that mean that the file does not
 * exist. Any other error sets Inventory.critical_error, which keeps the first reason. */
int critical_unreadable(const Critical *c, const char *path, int error);
/* Lists the names in a directory below the root. An error goes to critical_unreadable(), and the list is empty. */
int critical_list(const Critical *c, const char *path, char ***ret, size_t *ret_n);
/* Calls mark() for the name of each entry of the directory. */
int critical_each(const Critical *c, const char *path, int (*mark)(const Critical *c, const char *name));
typedef int (*CriticalTake)(const Critical *c, const char *path, const void *userdata);
/* Calls take() for each path that matches pattern. "*" stands for the rest of a name. The part after the last "*" need
 * not exist. */
int critical_walk(const Critical *c, const char *pattern, CriticalTake take, const void *userdata);
/* Sets *ret to the real path of a link. An error goes to critical_unreadable(), and *ret is NULL. */
int critical_realpath(const Critical *c, const char *path, char **ret);

/* critical-network.c. */

/* Marks the devices that a network interface needs. use: "default route", "KeepInterfaces=". */
int critical_mark_interface(const Critical *c, const char *name, const char *use);

Peers *critical_peers_new(void);
Peers *critical_peers_free(Peers *peers);
DEFINE_CLEANUP(Peers *, critical_peers_free)
/*
 * Notes a network address that the host uses. text: the address, with or without port and scope: "10.1.0.5",
 * "10.1.0.5:4420", "fd00::5", "[fd00::5]:4420", "fe80::5%eth0". Other text, loopback addresses and the unspecified
 * address are ignored. own: the address is the host's, not a peer's. use: "/data (nfs4)". If the scope is the name of
 * an interface, marks that interface at once.
 */
int critical_note_address(const Critical *c, const char *text, bool own, const char *use);

/* critical-peers.c. */

/* Notes the servers of a network file system from the fields of a mountinfo line. Ignores types that other users than
 * root can mount, because such a user can name any server. mount: the mount point. Modifies source and options. */
int critical_note_mount(const Critical *c, const char *type, char *source, char *options, const char *mount);

/* critical.c: follows stacks of devices. */

/*
 * Marks a function, all other functions in path, and, for a VF, its PF. path: the real path of the function or of a
 * device below it, or "". address: that of the function, the last one in path. chain: the way from the function to its
 * use, "sda1 <- / (mounted)". If the function is marked already, does nothing: the first chain stays.
 */
int critical_mark_function(const Critical *c, const char *path, PciAddress address, const char *chain);
/* Finds the last PCI address in path, which is that of the function itself. Returns false if there is none. */
bool critical_last_function(const char *path, PciAddress *ret);
/* Marks the PCI functions below a device, through all devices that it is stacked on. link: the device in sysfs, such as
 * sys/dev/block/M:m, sys/class/block/NAME or sys/class/net/NAME. use: "/ (mounted)", "swap", "default route". */
int critical_mark_user(const Critical *c, const char *link, const char *use);
/* Returns the part after the last slash: "dm-0" of "/dev/dm-0". */
const char *critical_last_component(const char *path);

/* critical-storage.c. */

#define CRITICAL_OTHER_NAMESPACE "a file system (mounted)" /* in an unknown mount namespace */

/* Marks the devices below a block device with this kernel name. */
int critical_mark_block(const Critical *c, const char *name, const char *use);
/* Sets *ret to the real path of a device node, with links followed. An error goes to critical_unreadable(), and *ret is
 * a copy of node. */
int critical_resolve_node(const Critical *c, const char *node, char **ret);
/* Marks a block device by its node, "/dev/sda1" or "/dev/mapper/vg-root" (a link to ../dm-0), and the other devices of
 * its btrfs. Ignores other paths. Modifies node. */
int critical_mark_node(const Critical *c, char *node, const char *use);

/* Mark the devices that the host uses for storage, memory, network and display. */
int critical_mark_storage(const Critical *c);
int critical_mark_exports(const Critical *c);
int critical_mark_memory(const Critical *c);
/* Marks the devices of storage clients and servers in the kernel and of netconsole, or notes their network addresses,
 * which critical_mark_network() follows. */
int critical_mark_peers(const Critical *c);
int critical_mark_network(const Critical *c);
int critical_mark_display(const Critical *c);
