/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The facts of the node as last read, and what follows at once from a difference. */

#include "manager.h"

/* inventory.c */
/* Logs the problems that the policy found with the pools on this node. */
void log_policy(const Policy *policy);
/* Scans the whole node and publishes the differences. Returns 0 or a negative errno. */
int manager_scan(Manager *m);
/* Scans only these devices and the others of their slot, their PF and their VFs. locked: a driver may hold their device
 * locks; see host/scan.h. */
int manager_scan_devices(Manager *m, const PciAddress *devices, size_t n, bool locked);
/*
 * Reads driver and override of these devices again; scans the whole node when that is not enough. locked: a driver may
 * hold their device locks; see host/scan.h. Returns 1 when a fact changed, 0 when none did, or -ENOMEM. After 1
 * pointers into the inventory are invalid. Publishes nothing unless the whole node was scanned.
 */
int manager_refresh(Manager *m, const PciAddress *devices, size_t n, bool locked);
/* manager_refresh() of the devices of a, of their IOMMU groups, and of all VFs of a GPU that has a vGPU of a. */
int manager_refresh_groups(Manager *m, const Allocation *a);
/* Reads CPUs, memory and hugepages again. Returns 1 when this took a scan of the whole node, so that pointers into the
 * inventory are invalid, 0, or a negative errno. */
int manager_refresh_nodes(Manager *m);
/* manager_refresh() of the PFs through which the GUIDs of their VFs cannot be set. */
int manager_refresh_guids(Manager *m);
/* manager_refresh_guids(), and manager_refresh() of all devices that can have vGPUs, or are to have them. */
int manager_refresh_refused(Manager *m);
/* Reads the list of registered PCI drivers again. Returns as manager_refresh(). */
int manager_refresh_drivers(Manager *m);
/* Reads again which devices the host needs: mounts, routes, consoles. Returns as manager_refresh(). */
int manager_refresh_host(Manager *m);

/* The device is in a Bind=start pool, is available, and is not bound to a VFIO driver or may be suspended there. */
bool manager_wants_binding(const HostState *host, const PciDevice *dev);
/* Appends the devices for which manager_wants_binding() is true, in ascending order. */
int manager_list_unbound(const Manager *m, PciAddress **ret, size_t *ret_n);
/* After a change of drivers or policy: notes as arrived the devices that want binding and are not in unbound, the list
 * from before it. */
void manager_bind_late(Manager *m, const PciAddress *unbound, size_t n);

/* serials.c */
/*
 * Reads the serial numbers of allocated and quarantined devices. Takes the known ones from old (NULL the first time),
 * the inventory that was just replaced.
 */
void manager_read_serials(Manager *m, const Inventory *old);
/* Reads the serial numbers of the devices of a into a. */
void manager_note_serials(Manager *m, Allocation *a);
/* Corrects the addresses in the ledger of devices that moved to another address, as a boot can do. */
void manager_find_moved(Manager *m);

/* Reads the serial number of the device, unless it is known. */
void manager_read_serial(Manager *m, PciDevice *dev);

/* modules.c */
/*
 * The NVLink module ids that were learnt while NVIDIA's driver had the GPUs, by serial number. manager_load_modules()
 * reads them from disk; manager_apply_modules() enters them into the inventory, with those that old has (NULL the first
 * time).
 */
void manager_load_modules(Manager *m);
void manager_apply_modules(Manager *m, const Inventory *old);
/* Remembers the module id of the GPU. */
void manager_learn_module(Manager *m, PciAddress gpu, unsigned module);

/* mlx4.c */
/*
 * Writes the module options of mlx4_core that the policy wants, and records their file, or the problem, in the host
 * state. Call it after the policy was made, before it is published. logged: the policy's problems are in the journal
 * already; the file is compared even when the options are unchanged.
 */
void manager_write_options(Manager *m, bool logged);
