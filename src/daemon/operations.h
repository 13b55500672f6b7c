/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Operations: what a D-Bus call does, from its checks to the start of its job. An operation decides on known facts,
 * writes what it is about to do to the ledger, and starts a job. settle.h starts some operations without a call. */

#include "state.h"

/* op-allocate.c */
/* Allocates. *ret_job: the job that prepares the allocation; 0 for a lease, which has no job. If the same request was
 * made before (request_is_again()), only sets *ret_job: to the job that works on its allocation now, or to 0. */
Verdict manager_allocate(Manager *m, const char *name, const Request *request, uint32_t owner, uint32_t *ret_job,
                         Refusal *ret);
/* Makes a plan from facts that were just read. Skips up to 8 devices that are in use. If the remaining free devices do
 * not suffice, the refusal names the first user that was found. attach_to: the allocation that gets the devices
 * (plan_attach()); NULL: a new allocation (plan_make()). ret_refusal must be empty. */
Verdict manager_plan_idle(Manager *m, const Request *request, const Allocation *attach_to, Plan **ret,
                          Refusal *ret_refusal);

/* op-prepare.c */
/* Refuses with VERDICT_NO_VFIO_DRIVER when the driver that a device of `a` is to be bound to (allocation_driver()) is
 * known not to be registered with the kernel. */
Verdict manager_check_drivers(const HostState *host, const Allocation *a, Refusal *ret);
/* Starts the job that prepares `a`. Its steps depend on the present drivers of the devices. again: `a` may have been
 * prepared before, so a guest may have its devices (steps_activate()). */
Verdict manager_start_prepare(Manager *m, const Allocation *a, bool again, uint32_t *ret_job, Refusal *ret);

/* op-release.c */
/* Refuses as manager_check_state(), and when a domain is known to run with `a`. While libvirt does not report guests,
 * does not check the domain of an allocation with devices: manager_check_use() with USE_RELEASE finds a guest by the
 * devices that it has open. */
Verdict manager_check_tenancy(const Manager *m, const Allocation *a, const char *name, uint64_t generation,
                              Refusal *ret);
/* Refuses unless `a` exists and has this generation. `a`: the allocation with this name; NULL: there is none. */
Verdict manager_check_generation(const Allocation *a, const char *name, uint64_t generation, Refusal *ret);
/* Refuses when changes are not possible now, or when `a` does not exist, has another generation, is neither ready nor
 * failed, or has a job. `a`: the allocation with this name; NULL: there is none. */
Verdict manager_check_state(const Manager *m, const Allocation *a, const char *name, uint64_t generation, Refusal *ret);
/* Refuses when all devices of `a` are stuck, or when a device that is not stuck, or its PF, is blocked. Otherwise a
 * release can put the stuck devices in quarantine, and return the others. */
Verdict manager_check_releasable(const Manager *m, const Allocation *a, Refusal *ret);
/* Removes the steps for devices in quarantine, for example because the devices are stuck, or an earlier release has
 * failed with them. */
void manager_leave_out_quarantined(const Ledger *l, StepList *steps);
/* Releases an allocation. *ret_job: the job that does it, which may run already; 0 when the allocation was a lease, or
 * was released before. */
Verdict manager_release(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
/* Starts the release of `a`, which is ready, failed, or interrupted while an orphan works on its devices. The caller
 * has checked that no domain is known to run with it. */
Verdict manager_release_now(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret);
/* Starts the job that releases `a`. Its steps depend on the present drivers of the devices. */
Verdict manager_start_release(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret);

/* op-quarantine.c */
/* Puts the device of the failed step in quarantine, and sets job->unsaved if that fails or is not on disk. For
 * JobKind.device_failed of releases and detaches. */
void manager_device_failed(Manager *m, Job *job, const Step *step, const char *message);
/* Puts in quarantine each device of `a` that a guest may have used and whose pool has OneTimeUse=yes. Returns 0, or a
 * negative errno when an entry could not be made, or not be written to disk. */
int manager_quarantine_used(Manager *m, const Allocation *a);
/* Puts each stuck device of `a` in quarantine. Returns as manager_quarantine_used(). */
int manager_quarantine_stuck(Manager *m, const Allocation *a);
/* Starts the job that ends the quarantine of a device, which can be allocated again then. An admin asks for it, or
 * manager_clean_used() does. */
Verdict manager_clear_quarantine(Manager *m, PciAddress device, uint32_t *ret_job, Refusal *ret);
/* Records that a guest of Nova uses the device, or may have used it. message: a sentence about that. Puts the device in
 * quarantine, on disk too, so that it is cleaned after the guest even if the daemon does not run when the guest
 * ends. */
void manager_note_used(Manager *m, PciAddress device, const char *message);
/* Starts the job that resets, checks and cleans a device that a guest of Nova has left. Returns false when that was
 * refused, for example because the device is still open; the caller tries again later. Returns true when a job was
 * started, or no try is due: the device needs no cleaning, a job cleans it already, a guest has it, or changes are not
 * possible. */
bool manager_clean_used(Manager *m, PciAddress device);
/* Resumes a manager_clear_quarantine() that was interrupted. Returns true when a job was started. */
bool manager_resume_clearing(Manager *m, PciAddress device, uint32_t *ret_job);

/* op-allocation.c: accepting changed devices */
/* Takes the cards that have replaced devices of the allocation as its devices, and starts the job that prepares
 * them. */
Verdict manager_accept(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);

/* op-lease.c */
/* Sets hold, lease_boot and lease_end of `a`, so that its lease ends this many seconds from now. */
void manager_lease(Allocation *a, uint32_t seconds);
/* Removes the leases that are over, and sets a timer for the end of the next one. Call it at startup, and when
 * a lease was made, renewed, prepared or released. */
void manager_follow_leases(Manager *m);

/* Ends the lease of an allocation, and starts the job that prepares the allocation; removes the allocation if the lease
 * has ended and the job cannot be started. *ret_job: the job, which may run already; 0 when the allocation is ready. */
Verdict manager_prepare(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
/* Renews a lease: it ends this many seconds from now. */
Verdict manager_renew(Manager *m, const char *name, uint64_t generation, uint32_t seconds, Refusal *ret);

/* op-attach.c */
/* Plans further devices for the allocation, and starts the job that binds them and, if a guest runs with the
 * allocation, plugs them into the guest. */
Verdict manager_attach(Manager *m, const char *name, uint64_t generation, const Request *request, uint32_t *ret_job,
                       Refusal *ret);

/* Starts the job that takes the device in this slot of the allocation from its guest, if one runs, and releases the
 * device. */
Verdict manager_detach(Manager *m, const char *name, uint64_t generation, const char *slot, uint32_t *ret_job,
                       Refusal *ret);
/* Starts jobs that detach the devices which were being attached or detached when the daemon ended. */
void manager_continue_changes(Manager *m);

/* op-sriov.c */
/* Starts a job that sets the attributes of existing VFs of the PF, which may lack them after a crash. Leaves out VFs of
 * mlx4 cards, and VFs that have a driver, are allocated, or are refused by ledger_check_kept(). Returns true when a job
 * was started. */
bool manager_identify_vfs(Manager *m, const PciDevice *pf, uint32_t *ret_job);
/* Reads the VFs of these PFs, and the drivers of the VFs. Call it only while no job works on the PFs. Returns 0 or a
 * negative errno. */
int manager_read_vfs(Manager *m, const PciAddress *pfs, size_t n_pfs);
/* Starts the job that creates `count` VFs on the PF, as VirtualFunctions= asks. Refuses if the PF has VFs; those of an
 * mlx4 card are replaced instead. */
Verdict manager_create_vfs(Manager *m, const PciDevice *pf, unsigned count, uint32_t *ret_job, Refusal *ret);
/* Starts the job that changes the number of VFs of the PF; if the number is right already, the job only sets attributes
 * of the VFs. Refuses to change it while a VF is in use. */
Verdict manager_set_virtual_functions(Manager *m, PciAddress pf, unsigned count, uint32_t *ret_job, Refusal *ret);

/* op-reload.c */
/* Reads the configuration at startup. Returns 0 or a negative errno. */
int manager_load_config(Manager *m);
/* Checks the configuration after the first scan. Returns 0, or EX_CONFIG when it would offer hardware twice. */
int manager_check_config(const HostState *host);
/* Returns what a release does with the devices of `a`: AfterRelease=; but if any of them is not on offer any more, all
 * return to the host. */
AfterRelease manager_after_release(const HostState *host, const Allocation *a);
/* Reads the configuration again. Applies all of it, or refuses it and keeps the old configuration. Logs the outcome. */
Verdict manager_reload(Manager *m, Refusal *ret);

/* op-allocation.c */
/* Refuses when the ledger is read-only or the daemon is stopping. */
Verdict manager_check_may_change(const Manager *m, Refusal *ret);
/* Refuses when a device of `a`, or the PF of one of its VFs, is blocked. only_orphaned: only refuses when an orphan
 * blocks it. */
Verdict manager_check_blocked(const Manager *m, const Allocation *a, bool only_orphaned, Refusal *ret);
/* Gives `a`, which is not in the ledger yet, the next generation number. */
Verdict manager_next_generation(Manager *m, Allocation *a, Refusal *ret);
/* Sets the state in memory and on disk, and notes the change for clients. reason is copied; NULL: none. Returns 0, also
 * when the ledger is read-only and nothing is written; or a negative errno when the file may still have the previous
 * state, from which a start would repeat the work. */
int manager_set_state(Manager *m, Allocation *a, AllocationState state, const char *reason);
/* Returns the allocation of the job. While the job runs, the allocation stays in the ledger. */
Allocation *manager_find_subject(const Manager *m, const Job *job);
/* Sets, in memory and on disk, the state that `a` has while its job runs. After a crash, the next start continues from
 * this state. On a refusal, `a` keeps its state in memory and on disk; or becomes failed, because the disk may have the
 * new state. */
Verdict manager_begin_state(Manager *m, Allocation *a, AllocationState state, Refusal *ret);
/* Replaces `a` by *b, which has the same name, in the ledger and on disk. On success *b becomes `a`, which the caller
 * frees. On a refusal both are unchanged, with one exception: if the file may be that of *b, `a` cannot be written
 * again, and *b does not have fewer devices, then *b replaces `a` as on success. */
Verdict manager_replace_allocation(Manager *m, Allocation *a, Allocation **b, Refusal *ret);
/* Removes `a` from the ledger and from disk, and frees it. If the file cannot be removed, `a` stays, in the state
 * failed. */
void manager_delete_allocation(Manager *m, Allocation *a);
Verdict refuse_storage(Refusal *ret, int error);
/* Refuses unless promise_check_hardware() accepts `a`: its devices are present and are the allocated cards, and their
 * IOMMU groups can be given to a guest. Also refuses when a device that is not on its allocation_driver() is in use or
 * is needed by the host. */
Verdict manager_check_hardware(const Manager *m, const Allocation *a, Refusal *ret);
/* Refuses when the allocation with this name is ready and has no running guest, but no guest could run with it as
 * promised. Reads CPUs, memory and hugepages again, because the kernel has no notification of changes of hugepages.
 * Pointers into the inventory may be invalid afterwards. */
Verdict manager_check_runnable(Manager *m, const char *name, Refusal *ret);

/* op-allocation.c: shared memory */
/* Checks the files of the shared memory regions in the request. VERDICT_SHARED_MEMORY_TAKEN: there is a file for a
 * region that no allocation has, or a server listens for it already. VERDICT_WRONG_STATE: the file of a region that a
 * ready allocation has is missing or incomplete. */
Verdict manager_check_regions(const Manager *m, const Request *request, Refusal *ret);
/* Returns true when the files of all shared memory regions of `a` are there and complete. The files do not survive a
 * boot. */
bool manager_has_regions(const Manager *m, const Allocation *a);
/* Records in the ledger for each region of `a` whether its file was removed or replaced. Call it while `a` is ready. */
void manager_look_at_regions(Manager *m, const Allocation *a);
/* Watches dev/shm below the root. When the file of a region is removed or renamed, settle checks the promises. */
void manager_follow_regions(Manager *m);
/* Logs files of regions that no allocation has. Does not remove them. */
void manager_report_unknown_regions(const Manager *m);
/* Skips the steps of a release that would remove regions which other allocations still have. For JobKind.begun: the
 * members of a region are known when the job begins, because jobs with the same region wait for each other. */
void manager_keep_shared(Manager *m, Job *job);

/* op-prepare.c */
/* For JobKind.found and all_found of jobs that set the attributes of an allocation's VFs. */
void manager_found_attributes(Manager *m, const Job *job, const Step *step, const VfAttributes *found);
int manager_all_attributes_found(Manager *m, const Job *job);
