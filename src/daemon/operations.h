/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Operations: what a call does, from its checks to its job. An operation decides on known facts, saves its intent in
 * the ledger and starts a job. Settle starts some of them without a caller.
 */

#include "state.h"

/* op-allocate.c */
/* *ret_job: 0 when the allocation is there already, as request_is_again() tells, and no job works on it. */
Verdict manager_allocate(Manager *m, const char *name, const Request *request, uint32_t owner, uint32_t *ret_job,
                         Refusal *ret);
/*
 * Plans with fresh facts. Skips devices in use while others are free. When none is left, the refusal names the first
 * user that was found. attach_to: as plan_attach(), NULL for plan_make().
 */
Verdict manager_plan_idle(Manager *m, const Request *request, const Allocation *attach_to, Plan **ret,
                          Refusal *ret_refusal);

/* op-prepare.c */
/* VERDICT_NO_VFIO_DRIVER when the VFIO driver of a device of a is not registered with the kernel. */
Verdict manager_check_drivers(const HostState *host, const Allocation *a, Refusal *ret);
/*
 * Starts the job that prepares a; its steps depend on the present drivers of the devices. again: a was prepared
 * before, so a guest may have the devices; as steps_activate().
 */
Verdict manager_start_prepare(Manager *m, const Allocation *a, bool again, uint32_t *ret_job, Refusal *ret);

/* op-release.c */
/*
 * VERDICT_NONE when a (the allocation called name; NULL: none) has this generation and no job, is not used by a domain,
 * and no orphan blocks its devices.
 */
Verdict manager_check_tenancy(const Manager *m, const Allocation *a, const char *name, uint64_t generation,
                              Refusal *ret);
/* VERDICT_NONE when there is such an allocation. a: the allocation called name; NULL: none. */
Verdict manager_check_generation(const Allocation *a, const char *name, uint64_t generation, Refusal *ret);
/* As manager_check_tenancy(), but a domain may run with a. */
Verdict manager_check_state(const Manager *m, const Allocation *a, const char *name, uint64_t generation, Refusal *ret);
/* VERDICT_NONE when a has a device that is not stuck, and nothing blocks the devices that are not stuck. A release puts
 * the stuck ones in quarantine. */
Verdict manager_check_releasable(const Manager *m, const Allocation *a, Refusal *ret);
/* Removes the steps of devices that are in quarantine: an earlier attempt put them there, or they are stuck. */
void manager_leave_out_quarantined(const Ledger *l, StepList *steps);
/* *ret_job: 0 when the allocation is gone already; the present job when it is being released. */
Verdict manager_release(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
/* Releases a, which is ready or failed and is not used by a domain. */
Verdict manager_release_now(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret);
/* Starts the job that releases a; its steps depend on the present drivers of the devices. */
Verdict manager_start_release(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret);

/* op-quarantine.c */
/* JobKind.device_failed of jobs that release an allocation: puts the device in quarantine. */
void manager_device_failed(Manager *m, Job *job, const Step *step, const char *message);
/*
 * Puts each device of a whose pool says OneTimeUse= in quarantine. Returns 0, or a negative errno when a quarantine
 * could not be written to disk.
 */
int manager_quarantine_used(Manager *m, const Allocation *a);
/* Puts each stuck device of a in quarantine. Returns as manager_quarantine_used(). */
int manager_quarantine_stuck(Manager *m, const Allocation *a);
/* Ends the quarantine at an admin's request: the device returns to the host and can be allocated again. */
Verdict manager_clear_quarantine(Manager *m, PciAddress device, uint32_t *ret_job, Refusal *ret);
/*
 * Nova's guest uses the device or may have used it, as message says. It is entered in the quarantine, on disk, so that
 * it is cleaned after the guest even if the daemon does not run when the guest ends.
 */
void manager_note_used(Manager *m, PciAddress device, const char *message);
/* Starts to reset, check and clean a device that Nova's guest has used and left. False: not now, for example because
 * the device is still open; try again. */
bool manager_clean_used(Manager *m, PciAddress device);
/* Resumes an interrupted manager_clear_quarantine(). Returns true when a job was started. */
bool manager_resume_clearing(Manager *m, PciAddress device, uint32_t *ret_job);

/* op-allocation.c: accepting changed devices */
/* Takes the cards that replaced devices of the allocation as its devices, and starts the job that prepares it. */
Verdict manager_accept(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);

/* op-lease.c */
/* Makes a, which is not in the ledger yet, an allocation with a lease of so many seconds from now. */
void manager_lease(Allocation *a, uint32_t seconds);
/* Ends the leases that are over, and has a timer end the others. Call it when a lease was made or changed, or the
 * daemon has started. */
void manager_follow_leases(Manager *m);

/* Starts the job that prepares a reserved allocation, whose lease ends. *ret_job: as manager_allocate(). */
Verdict manager_prepare(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
/* The lease then ends in so many seconds. */
Verdict manager_renew(Manager *m, const char *name, uint64_t generation, uint32_t seconds, Refusal *ret);

/* op-attach.c */
/* Plans further devices for the allocation, and starts the job that binds them and plugs them into its guest. */
Verdict manager_attach(Manager *m, const char *name, uint64_t generation, const Request *request, uint32_t *ret_job,
                       Refusal *ret);

/* Starts the job that takes the device in the slot from the guest and returns it to the host. */
Verdict manager_detach(Manager *m, const char *name, uint64_t generation, const char *slot, uint32_t *ret_job,
                       Refusal *ret);
/* Starts the same job for the devices of allocations that were being attached or detached when the daemon ended. */
void manager_continue_changes(Manager *m);

/* op-sriov.c */
/*
 * Sets the attributes of existing VFs that are neither bound nor allocated and lack them, as after a crash. Returns
 * true when a job was started.
 */
bool manager_identify_vfs(Manager *m, const PciDevice *pf, uint32_t *ret_job);
/* Reads the VFs of these PFs and their drivers; no job may run on the PFs. Returns 0 or a negative errno. */
int manager_read_vfs(Manager *m, const PciAddress *pfs, size_t n_pfs);
/* Creates VFs on a PF that has none, for VirtualFunctions=. */
Verdict manager_create_vfs(Manager *m, const PciDevice *pf, unsigned count, uint32_t *ret_job, Refusal *ret);
/* Changes the number of VFs of the PF, when none of its VFs is in use. */
Verdict manager_set_virtual_functions(Manager *m, PciAddress pf, unsigned count, uint32_t *ret_job, Refusal *ret);

/* op-reload.c */
/* Reads the configuration at startup. Returns 0 or a negative errno. */
int manager_load_config(Manager *m);
/* After the first scan: returns 0, or EX_CONFIG when the configuration would offer hardware twice. */
int manager_check_config(const HostState *host);
/* What a release of a does: AfterRelease=, or a return to the host when its pool no longer offers a device of it. */
AfterRelease manager_after_release(const HostState *host, const Allocation *a);
/* Reads the configuration again. Applies it completely, or refuses it and keeps the old one; logs the outcome. */
Verdict manager_reload(Manager *m, Refusal *ret);

/* op-allocation.c */
/* VERDICT_NONE unless the ledger is read-only or the daemon is stopping. */
Verdict manager_check_may_change(const Manager *m, Refusal *ret);
/* VERDICT_NONE when no device of a, and no PF of its VFs, is blocked. only_orphaned: by an orphan. */
Verdict manager_check_blocked(const Manager *m, const Allocation *a, bool only_orphaned, Refusal *ret);
/* Gives a, which is not in the ledger, the next generation. */
Verdict manager_next_generation(Manager *m, Allocation *a, Refusal *ret);
/*
 * Sets the state in memory, on disk and on the bus. reason is copied; NULL for none. Returns 0, also when nothing is
 * written because the ledger is read-only; or a negative errno when the file may have the previous state, from which a
 * restart repeats the work.
 */
int manager_set_state(Manager *m, Allocation *a, AllocationState state, const char *reason);
/*
 * Sets the state that a has from the first step of its job on, so that a restart goes on from there. On a refusal, a
 * has its present state in memory and on disk; or it has failed, because the disk may have the new state.
 */
Verdict manager_begin_state(Manager *m, Allocation *a, AllocationState state, Refusal *ret);
/*
 * Puts *b in the place of a, which has the same name, in the ledger and on disk. On success *b is a, which the caller
 * frees. On a refusal both are unchanged; or b, which claims more, has replaced a, because the file may be that of b.
 */
Verdict manager_replace_allocation(Manager *m, Allocation *a, Allocation **b, Refusal *ret);
/* Removes a from ledger and disk, and frees it. When the file cannot be removed, a stays, in state failed. */
void manager_delete_allocation(Manager *m, Allocation *a);
Verdict refuse_storage(Refusal *ret, int error);
/* VERDICT_NONE when all devices of a are present, are the allocated cards, and are not used or needed by the host. */
Verdict manager_check_hardware(const Manager *m, const Allocation *a, Refusal *ret);
/*
 * VERDICT_NONE unless the allocation called name is ready, has no running guest, and a guest could not run with it as
 * promised. Reads hugepages again, for whose changes the kernel has no notification. Pointers into the inventory may be
 * invalid afterwards.
 */
Verdict manager_check_runnable(Manager *m, const char *name, Refusal *ret);

/* op-allocation.c: shared memory */
/*
 * Checks the files of the shared memory regions in the request: VERDICT_SHARED_MEMORY_TAKEN when a file exists for a
 * region that no allocation has, VERDICT_WRONG_STATE when it is missing for a region that an allocation has.
 */
Verdict manager_check_regions(const Manager *m, const Request *request, Refusal *ret);
/* The files of all shared memory regions of a exist. A boot removes them. */
bool manager_has_regions(const Manager *m, const Allocation *a);
/* Notes in the ledger which region files of a were removed while it is ready. */
void manager_look_at_regions(Manager *m, const Allocation *a);
/* Watches dev/shm, and has promises checked when the file of a region is removed. */
void manager_follow_regions(Manager *m);
/* Logs region files that belong to no allocation. They are not removed. */
void manager_report_unknown_regions(const Manager *m);
/*
 * JobKind.begun of releases: skips the steps that would remove regions which other allocations share. Jobs with the
 * same region wait for each other, so its members are known only when the job begins.
 */
void manager_keep_shared(Manager *m, Job *job);

/* op-prepare.c */
/* JobKind.found and all_found of jobs that set the attributes of an allocation's VFs. */
void manager_found_attributes(Manager *m, const Job *job, const Step *step, const VfAttributes *found);
int manager_all_attributes_found(Manager *m, const Job *job);
