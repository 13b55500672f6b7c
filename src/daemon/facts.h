/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The facts of the node as last read, and what follows at once from a difference. */

#include "state.h"

/* facts-inventory.c */
/* Logs the problems that the policy found with the pools on this node. */
void log_policy(const Policy *policy);
/* Scans the whole node and notes the differences. Returns 0 or a negative errno. */
int manager_scan(Manager *m);
/* Scans only these devices and the others of their slot, their PF and their VFs. locked: a driver may hold their device
 * locks; see host/scan.h. */
int manager_scan_devices(Manager *m, const PciAddress *devices, size_t n, bool locked);
/*
 * Reads driver and override of these devices again; scans the whole node when that is not enough. locked: a driver may
 * hold their device locks; see host/scan.h. Returns 1 when a fact changed, 0 when none did, or -ENOMEM. After 1
 * pointers into the inventory are invalid. Notes nothing unless the whole node was scanned.
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

/* facts-serials.c */
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

/* facts-modules.c */
/*
 * The NVLink module ids and confidential modes that were learnt while NVIDIA's driver had the GPUs, by serial number.
 * manager_load_modules() reads them from disk; manager_apply_modules() enters them into the inventory, with those that
 * old has (NULL the first time).
 */
void manager_load_modules(Manager *m);
void manager_apply_modules(Manager *m, const Inventory *old);
/* Remembers the module id of the GPU, 0: none, and 1 + its ConfidentialMode, 0: unknown. */
void manager_learn_gpu(Manager *m, PciAddress gpu, unsigned module, unsigned mode);
/* Forgets the confidential modes of GPUs that NVIDIA's driver does not have. */
void manager_forget_modes(Manager *m);

/* facts-mlx4.c */
/*
 * Writes the module options of mlx4_core that the policy wants, and records their file, or the problem, in the host
 * state. Call it after the policy was made, before it is published. logged: the policy's problems are in the journal
 * already; the file is compared even when the options are unchanged.
 */
void manager_write_options(Manager *m, bool logged);

/* facts-holders.c: who has devices open */
typedef enum UseCheck {
        USE_ALLOCATE, /* no device may be in use */
        USE_RESUME,   /* no device may be in use, but devices already bound to their VFIO driver are not checked */
        USE_RELEASE,  /* no device may be open on its VFIO driver; devices with host drivers are not checked */
} UseCheck;
/* VERDICT_NONE when no device is in use. Reads /proc/PID/fd of all processes once. */
Verdict manager_check_use(const Manager *m, const Allocation *a, UseCheck check, Refusal *ret);
/* Reads the devices and the other members of their IOMMU groups again, then does as manager_check_use(). */
Verdict manager_check_use_again(Manager *m, const Allocation *a, UseCheck check, Refusal *ret);
/*
 * Finds an allocation with a device that a process has open on its VFIO driver, and sets *ret to its index. Reads
 * /proc/PID/fd of all processes once. fs: that of the calling process. Returns 1, 0 when there is none, or a negative
 * errno: -EBUSY when the host uses a device without a process, or one of holders_find().
 */
int manager_find_open(const Manager *m, const Sysfs *fs, Allocation *const *allocations, size_t n, size_t *ret);
/* The refusal for an error of holders_find(), a negative errno. */
Verdict refuse_use_unknown(const PciAddress *device, int error, Refusal *ret);

/* facts.c */
GpuMinor *manager_find_gpu(const Manager *m, PciAddress gpu);
/* Returns NVIDIA_MINOR_UNKNOWN while the minor was not read. */
uint32_t manager_gpu_minor(const Manager *m, const PciDevice *gpu);
/* Puts the node of the GPU among its kernel_names, or removes it, as far as the minor is known. dev: also one that is
 * no GPU. */
void manager_name_gpu(const Manager *m, PciDevice *dev);
/* Sets Step.gpu_node of the steps that check whether a GPU is idle. */
void manager_note_gpus(const Manager *m, StepList *steps);
/* Drops the minor of the GPU: it is being unbound from its driver. */
void manager_forget_gpu(Manager *m, PciAddress gpu);
/* Asks about the GPU again at the next probe; what is known stays until then. suspect: ask NVIDIA's library, too. */
void manager_doubt_gpu(Manager *m, PciAddress gpu, bool suspect);
/* Notes in the allocation that the GPU of the step was in persistence mode before the job.
 * manager_all_attributes_found() saves the note. */
void manager_found_persistent(Manager *m, const Job *job, const Step *step);
/* Records in the history that the device is unhealthy, or with why NULL healthy again, and publishes it. finding: of
 * those that device_status_check_unhealthy() checks. */
void manager_set_unhealthy(Manager *m, PciAddress device, DeviceFinding finding, const char *why);
/* The job is about to give the device of the step to a guest, and has read its health: marks a dead device as
 * unhealthy, and notes the fatal errors of any other in its allocation, which the job saves. */
void manager_found_health(Manager *m, const Job *job, const Step *step, const HealthReading *reading);
/* Clears the unhealthy mark of devices that were removed or replaced. */
void manager_forget_health(Manager *m);
/* Drops what was read of the VFs of a: a job has written their attributes since. */
void manager_forget_attributes(Manager *m, const Allocation *a);
/* libvirt reports which guests run. Otherwise the last known guests may have ended, and others may run. */
bool manager_knows_guests(const Manager *m);
/* libvirt may run guests, but does not report them. */
bool manager_may_miss_guests(const Manager *m);
/* The UUID of the domain that runs with a, else that of the domain document of a. Borrowed. */
const char *manager_find_uuid(const Manager *m, const Allocation *a);
/* Marks in the ledger whether the guest of a (NULL: none is known) has allocated its memory. */
void manager_mark_running(Manager *m, Allocation *a, const Guest *guest);
/* The same for all allocations, by the last report of libvirt. */
void manager_mark_all_running(Manager *m);
/* The guest that has a device of a, or the UUID of a. NULL: none. */
const Guest *manager_find_guest(const GuestList *guests, const Allocation *a);
