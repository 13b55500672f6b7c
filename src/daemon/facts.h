/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the facts of the node, and notes the consequences of each difference. */

#include "state.h"

/* facts-inventory.c */
/* Logs the problems that the policy found with the pools on this node. */
void log_policy(const Policy *policy);
/* Scans the whole node and notes the differences. Returns 0 or a negative errno. */
int manager_scan(Manager *m);
/* Scans only these devices, the other functions of their slots, their PFs and their VFs. locked: a driver may hold
 * their device locks; see host/scan.h. Returns 0 or a negative errno. */
int manager_scan_devices(Manager *m, const PciAddress *devices, size_t n, bool locked);
/*
 * Reads driver and override of these devices again; scans the whole node when that is not enough. locked: a driver may
 * hold their device locks; see host/scan.h. Returns 1 when a fact changed, 0 when none did, or -ENOMEM. After 1,
 * pointers into the inventory are invalid. Adds no notes unless the whole node was scanned.
 */
int manager_refresh(Manager *m, const PciAddress *devices, size_t n, bool locked);
/* Calls manager_refresh() for the devices of `a`, their IOMMU groups, and all VFs of each GPU that has a vGPU of
 * `a`. */
int manager_refresh_groups(Manager *m, const Allocation *a);
/* Reads CPUs, memory and hugepages again. Returns 1 when this needed a scan of the whole node, so that pointers into
 * the inventory are invalid, 0 otherwise, or a negative errno. */
int manager_refresh_nodes(Manager *m);
/* Calls manager_refresh() for the PFs that cannot set the GUIDs of their VFs. */
int manager_refresh_guids(Manager *m);
/* Calls manager_refresh_guids(), and manager_refresh() for all devices that can have vGPUs, or are to have them. */
int manager_refresh_refused(Manager *m);
/* Reads the list of registered PCI drivers again. Returns as manager_refresh(). */
int manager_refresh_drivers(Manager *m);
/* Reads again which devices the host needs: mounts, routes, consoles. Returns as manager_refresh(). */
int manager_refresh_host(Manager *m);

/* Returns true when the device must be bound: it is in a pool with Bind=start, is available, and is not bound to a VFIO
 * driver or may still suspend there. */
bool manager_wants_binding(const HostState *host, const PciDevice *dev);
/* Lists the devices for which manager_wants_binding() is true, in ascending order. */
int manager_list_unbound(const Manager *m, PciAddress **ret, size_t *ret_n);
/* Notes as new the devices that must be bound now, after a change of drivers or policy, and are not in the earlier list
 * unbound. */
void manager_bind_late(Manager *m, const PciAddress *unbound, size_t n);

/* facts-serials.c */
/*
 * Reads the serial numbers of allocated and quarantined devices. Copies known ones from old, the inventory that was
 * just replaced (NULL the first time).
 */
void manager_read_serials(Manager *m, const Inventory *old);
/* Reads the serial numbers of the devices of `a`, and stores them in `a`. */
void manager_note_serials(Manager *m, Allocation *a);
/* Corrects the addresses in the ledger of devices whose address has changed, for example with a boot. */
void manager_find_moved(Manager *m);

/* Reads the serial number of the device, unless it is known. */
void manager_read_serial(Manager *m, PciDevice *dev);

/* facts-modules.c */
/*
 * The NVLink module ids and confidential modes that were learnt while NVIDIA's driver had the GPUs, by serial number.
 * manager_load_modules() reads them from disk; manager_apply_modules() enters them into the inventory, with those that
 * old has (NULL the first time).
 */
void manager_load_modules(Manager *m);
void manager_apply_modules(Manager *m, const Inventory *old);
/* Remembers the module id of the GPU, 0: none, and its mode. */
void manager_learn_gpu(Manager *m, PciAddress gpu, unsigned module, ConfidentialMode mode);
/* Forgets the confidential modes of GPUs that NVIDIA's driver does not have. */
void manager_forget_modes(Manager *m);

/* facts-mlx4.c */
/*
 * Writes the module options of mlx4_core that the policy requires, and records their file, or the problem, in the host
 * state. Call it after the policy was made and before clients see it. logged: the journal already has the policy's
 * problems; the file is compared even when the options are unchanged.
 */
void manager_write_options(Manager *m, bool logged);

/* facts-holders.c: who has devices open */
typedef enum UseCheck {
        USE_ALLOCATE, /* no device may be in use */
        USE_RESUME,   /* no device may be in use, but devices already bound to their VFIO driver are not checked */
        USE_RELEASE,  /* no device may be open on its VFIO driver; devices with host drivers are not checked */
} UseCheck;
/* Refuses when a device of `a` is in use. Reads /proc/PID/fd of all processes once. */
Verdict manager_check_use(const Manager *m, const Allocation *a, UseCheck check, Refusal *ret);
/* As manager_check_use(), but first reads the devices and the other members of their IOMMU groups again. */
Verdict manager_check_use_again(Manager *m, const Allocation *a, UseCheck check, Refusal *ret);
/*
 * Finds an allocation with a device that a process has open on its VFIO driver, and sets *ret to its index. Reads
 * /proc/PID/fd of all processes once. fs: that of the calling process. Returns 1 when there is such an allocation, 0
 * when not, or a negative errno: -EBUSY when the host uses a device without a process, or an error of holders_find().
 */
int manager_find_open(const Manager *m, const Sysfs *fs, Allocation *const *allocations, size_t n, size_t *ret);
/* Refuses because of an error of holders_find(), a negative errno. */
Verdict refuse_use_unknown(const PciAddress *device, int error, Refusal *ret);

/* facts.c */
GpuMinor *manager_find_gpu(const Manager *m, PciAddress gpu);
/* Returns NVIDIA_MINOR_UNKNOWN while the minor was not read. */
uint32_t manager_gpu_minor(const Manager *m, const PciDevice *gpu);
/* Adds the GPU's device node to its kernel_names when the minor is known, otherwise removes it. Does nothing for a
 * device that is no GPU. */
void manager_name_gpu(const Manager *m, PciDevice *dev);
/* Sets gpu_node of the steps that check whether a GPU is idle. */
void manager_note_gpus(const Manager *m, StepList *steps);
/* Drops the minor of the GPU, which is being unbound from its driver. */
void manager_forget_gpu(Manager *m, PciAddress gpu);
/* Has the next probe ask about the GPU again; the known answer stays until then. suspect: NVIDIA's library is asked,
 * too. */
void manager_doubt_gpu(Manager *m, PciAddress gpu, bool suspect);
/* Records in the allocation that the GPU of the step was in persistence mode before the job.
 * manager_all_attributes_found() saves this. */
void manager_found_persistent(Manager *m, const Job *job, const Step *step);
/* Sets the device as unhealthy, or with why NULL as healthy, records this in the history, and notes the change for
 * clients. finding: one that device_status_check_unhealthy() checks. */
void manager_set_unhealthy(Manager *m, PciAddress device, DeviceFinding finding, const char *why);
/* Handles the health of the step's device that the job has read before it gives the device to a guest. Marks a dead
 * device as unhealthy, and otherwise stores the number of fatal errors in the allocation, which the job saves. */
void manager_found_health(Manager *m, const Job *job, const Step *step, const HealthReading *reading);
/* Clears the unhealthy mark of devices that were removed or replaced. */
void manager_forget_health(Manager *m);
/* Drops the read attributes of the VFs of `a`, because a job has written attributes since. */
void manager_forget_attributes(Manager *m, const Allocation *a);
/* Returns true when libvirt reports which guests run. Otherwise the last known guests may have ended, and others may
 * run. */
bool manager_knows_guests(const Manager *m);
/* Returns true when libvirt may run guests but does not report them. */
bool manager_may_miss_guests(const Manager *m);
/* Returns the UUID of the domain that runs with `a`, otherwise that of the domain document of `a`. Borrowed. */
const char *manager_find_uuid(const Manager *m, const Allocation *a);
/* Records in the ledger whether the guest of a (NULL: none is known) has allocated its memory. */
void manager_mark_running(Manager *m, Allocation *a, const Guest *guest);
/* Calls manager_mark_running() for all allocations, with the last report of libvirt. */
void manager_mark_all_running(Manager *m);
/* Returns the guest that has a device of `a`, or the UUID of `a`. NULL: none. */
const Guest *manager_find_guest(const GuestList *guests, const Allocation *a);
