/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The facts of the node: reads them again, finds the users of devices, and keeps what jobs and watches have found. */

#include "state.h"

/* facts-inventory.c */
/* Logs the problems of the configuration that the policy found on this node. */
void log_policy(const Policy *policy);
/* Scans the whole node, and notes the differences from the old inventory. Returns 0 or a negative errno. */
int manager_scan(Manager *m);
/* Scans these devices, the other functions of their slots, their PFs and their VFs; or the whole node if the inventory
 * has notes (Inventory.notes). Notes the differences as manager_scan() does. locked: a driver may hold their device
 * locks; see host/scan.h. Returns 0 or a negative errno. */
int manager_scan_devices(Manager *m, const PciAddress *devices, size_t n, bool locked);
/* Reads again the facts of these devices that may change while a device stays, such as its driver and its override. If
 * that is not enough, scans the whole node. locked: a driver may hold their device locks; see host/scan.h. Returns 1
 * when a fact has changed, and pointers into the inventory may then be invalid; 0 when none has; or -ENOMEM. If it
 * scans the whole node or makes the policy again, notes all devices; otherwise notes none. */
int manager_refresh(Manager *m, const PciAddress *devices, size_t n, bool locked);
/* Calls manager_refresh() for the devices of `a`, the members of their IOMMU groups, all VFs or slots of each GPU that
 * has a vGPU of `a`, and the GPU of each slot for mediated devices that is missing. Returns as manager_refresh(). */
int manager_refresh_groups(Manager *m, const Allocation *a);
/* Reads CPUs, memory and hugepages again. Returns 1 if the whole node was scanned for this, and pointers into the
 * inventory are then invalid; otherwise 0 or -ENOMEM. */
int manager_refresh_nodes(Manager *m);
/* Calls manager_refresh() for each InfiniBand PF that has VFs and could not set their GUIDs when it was last read.
 * Returns as manager_refresh(). */
int manager_refresh_guids(Manager *m);
/* Reads facts again that may have caused a refusal: calls manager_refresh() for the devices that have vGPU types or are
 * in a pool with VgpuType=, and then manager_refresh_guids(). Returns as manager_refresh(). */
int manager_refresh_refused(Manager *m);
/* Reads the list of registered PCI drivers again. If it has changed, makes the policy again, and notes as new the
 * devices that the daemon has to bind now. Returns as manager_refresh(). */
int manager_refresh_drivers(Manager *m);
/* Reads again which devices the host needs for mounts, routes and consoles. If that has changed, makes the policy
 * again. Returns as manager_refresh(). */
int manager_refresh_host(Manager *m);

/* Returns true when the daemon has to bind the device to its VFIO driver. The device is available, has no vGPU, and is
 * in a pool without VgpuType= that has Bind=start or Scheduler=nova. The device is on no VFIO driver; or it is on one,
 * may still suspend there, and is in no pool of Nova. */
bool manager_wants_binding(const HostState *host, const PciDevice *dev);
/* Appends the devices for which manager_wants_binding() is true to *ret, in ascending order; none before the
 * announcement. The caller frees *ret. Returns 0 or -ENOMEM. */
int manager_list_unbound(const Manager *m, PciAddress **ret, size_t *ret_n);
/* Notes as new the devices that the daemon has to bind now, after drivers or the policy have changed. unbound: the
 * result of manager_list_unbound() before the change, whose devices are not noted. */
void manager_bind_late(Manager *m, const PciAddress *unbound, size_t n);

/* facts-serials.c */
/* Reads the serial numbers of allocated and quarantined devices. old: the inventory before this one, from which known
 * numbers are copied; NULL the first time. */
void manager_read_serials(Manager *m, const Inventory *old);
/* Reads the serial numbers of the devices of `a`, and stores them in `a`, not on disk. */
void manager_note_serials(Manager *m, Allocation *a);
/* Finds allocated and quarantined cards that have another address now, for example after a boot, and corrects their
 * addresses in the ledger. Does nothing while the ledger is read-only. If the old addresses cannot be removed from
 * disk, makes the ledger read-only. */
void manager_find_moved(Manager *m);

/* Reads the serial number of the device, unless it is known or must not be read now. */
void manager_read_serial(Manager *m, PciDevice *dev);

/* facts-modules.c */
/* The NVLink module ids and confidential modes, by the serial numbers of GPUs; they were read while NVIDIA's driver had
 * the GPUs. manager_load_modules() reads them from disk. manager_apply_modules() sets them in the inventory. It copies
 * the values that `old`, the previous inventory, has. For the other GPUs it sets the values that were read from disk or
 * learned since. old: NULL at first, and after a reload. */
void manager_load_modules(Manager *m);
void manager_apply_modules(Manager *m, const Inventory *old);
/* Stores the module id and the mode of the GPU, also on disk if the GPU has a serial number. module 0, or mode unknown:
 * the known value stays. */
void manager_learn_gpu(Manager *m, PciAddress gpu, unsigned module, ConfidentialMode mode);
/* Forgets the confidential mode of each GPU that is not on NVIDIA's driver. */
void manager_forget_modes(Manager *m);

/* facts-mlx4.c */
/* Writes the module options of mlx4_core that the policy requires, and stores the path of their file, or the problem,
 * in the host state. Call it when the policy was made, before clients see it. logged: the journal already has the
 * problems of the policy; the file is then compared even if the options have not changed. */
void manager_write_options(Manager *m, bool logged);

/* facts-holders.c: which processes have devices open. */
typedef enum UseCheck {
        USE_ALLOCATE, /* no device may be in use, except by the services of StopServices=, which the job stops first */
        USE_RESUME,   /* as USE_ALLOCATE, but devices on their allocation_driver() are not checked */
        USE_RELEASE,  /* no device may be open that is on its allocation_driver() or on a VFIO driver; other devices are
                         only checked under Xen */
} UseCheck;
/* Refuses when a device of `a` is in use in a way that `check` does not allow, or when that cannot be determined. Costs
 * at most one search of /proc/PID/fd of all processes. */
Verdict manager_check_use(const Manager *m, const Allocation *a, UseCheck check, Refusal *ret);
/* As manager_check_use(), but first reads the devices and the other members of their IOMMU groups again. */
Verdict manager_check_use_again(Manager *m, const Allocation *a, UseCheck check, Refusal *ret);
/*
 * Searches for a use that USE_RELEASE does not allow: a process, or a guest of Xen, has a device of one of the
 * allocations open. Sets *ret to the index of this allocation. Costs at most one search of /proc/PID/fd of all
 * processes. fs: the Sysfs of the calling process. Returns 1 when there is such a use, 0 when there is none, or a
 * negative errno: -EBUSY when the host uses a device without a process, -ENOMEM, or an error of holders_find().
 */
int manager_find_open(const Manager *m, const Sysfs *fs, Allocation *const *allocations, size_t n, size_t *ret);
/* Refuses because it is unknown whether the device is in use. error: the negative errno of holders_find(). */
Verdict refuse_use_unknown(const PciAddress *device, int error, Refusal *ret);

/* facts.c */
GpuMinor *manager_find_gpu(const Manager *m, PciAddress gpu);
/* Returns the minor of the GPU; NVIDIA_MINOR_UNKNOWN until it was read. */
uint32_t manager_gpu_minor(const Manager *m, const PciDevice *gpu);
/* Adds the name of the GPU's device node to its kernel_names if the minor is known, otherwise removes that name. Also
 * sets the NUMA node of the GPU's memory. Does nothing for a device that is not on NVIDIA's driver. */
void manager_name_gpu(const Manager *m, PciDevice *dev);
/* Sets gpu_node in the steps that check whether a GPU is idle before they unbind it. */
void manager_note_gpus(const Manager *m, StepList *steps);
/* Forgets the GpuMinor of the GPU, for example because the GPU is being unbound from its driver. */
void manager_forget_gpu(Manager *m, PciAddress gpu);
/* Has the next probe ask about the GPU again; what is known about it stays until then. suspect: the driver may have
 * lost the GPU, so NVIDIA's library is asked too. */
void manager_doubt_gpu(Manager *m, PciAddress gpu, bool suspect);
/* Records in the allocation that the GPU of the step was in persistence mode before the job.
 * manager_all_attributes_found() writes this to disk. */
void manager_found_persistent(Manager *m, const Job *job, const Step *step);
/* Sets the finding of the device to the sentence `why`; NULL removes the finding. Records in the history that the
 * device is unhealthy, or that it is healthy again because no other such finding is left, and notes the device for
 * clients. finding: one of those that device_status_check_unhealthy() checks. */
void manager_set_unhealthy(Manager *m, PciAddress device, DeviceFinding finding, const char *why);
/* Handles the health of the step's device, which the job has read before a guest gets the device. Marks a device that
 * does not answer as unhealthy. If the device answers, stores its number of fatal errors in the allocation, in memory;
 * the end of the job writes it to disk. */
void manager_found_health(Manager *m, const Job *job, const Step *step, const HealthReading *reading);
/* Removes the finding DEVICE_UNHEALTHY of devices that were removed or replaced. */
void manager_forget_health(Manager *m);
/* Forgets the attributes that were read of the VFs of `a`, because a job may have written other attributes since. */
void manager_forget_attributes(Manager *m, const Allocation *a);
/* Returns true when libvirt reports which guests run. While it does not, the last known guests may have ended, and
 * others may run. */
bool manager_knows_guests(const Manager *m);
/* Returns true when libvirt may have running guests that it does not report. */
bool manager_may_miss_guests(const Manager *m);
/* Returns the UUID of the domain that runs with `a`. If none is known, returns the UUID in the domain document of `a`.
 * Borrowed. */
const char *manager_find_uuid(const Manager *m, const Allocation *a);
/* Records in the ledger whether the guest that runs with `a` has allocated its memory. guest NULL: none is known. */
void manager_mark_running(Manager *m, Allocation *a, const Guest *guest);
/* Calls manager_mark_running() for all allocations, with the guests that libvirt reports. While it does not report
 * which guests run, no guest is known. */
void manager_mark_all_running(Manager *m);
/* Returns the guest that has a device of `a`, or whose UUID is the id of `a`. NULL: none. */
const Guest *manager_find_guest(const GuestList *guests, const Allocation *a);
