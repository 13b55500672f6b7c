/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Operations: what a D-Bus call does, from its checks to its job. An operation decides on known facts, saves its intent
 * in the ledger and starts a job. settle.h starts some operations without a call.
 */

#include "state.h"

/* op-allocate.c */
/* Allocates. *ret_job: 0 when the allocation exists already (request_is_again()) and no job works on it. */
Verdict manager_allocate(Manager *m, const char *name, const Request *request, uint32_t owner, uint32_t *ret_job,
                         Refusal *ret);
/*
 * Plans with fresh facts. Skips devices in use while others are free. When only devices in use are left, the refusal
 * names the first user that was found. attach_to: the allocation for plan_attach(), or NULL for plan_make().
 */
Verdict manager_plan_idle(Manager *m, const Request *request, const Allocation *attach_to, Plan **ret,
                          Refusal *ret_refusal);

/* op-prepare.c */
/* Refuses with VERDICT_NO_VFIO_DRIVER when the VFIO driver of a device of `a` is not registered with the kernel. */
Verdict manager_check_drivers(const HostState *host, const Allocation *a, Refusal *ret);
/*
 * Starts the job that prepares `a`; its steps depend on the present drivers of the devices. again: `a` was prepared
 * before, so a guest may have the devices, as in steps_activate().
 */
Verdict manager_start_prepare(Manager *m, const Allocation *a, bool again, uint32_t *ret_job, Refusal *ret);

/* op-release.c */
/*
 * Refuses unless a (the allocation called name; NULL: none) has this generation, has no job, is not used by a domain,
 * and no orphan blocks its devices.
 */
Verdict manager_check_tenancy(const Manager *m, const Allocation *a, const char *name, uint64_t generation,
                              Refusal *ret);
/* Refuses unless a (the allocation called name; NULL: none) exists and has this generation. */
Verdict manager_check_generation(const Allocation *a, const char *name, uint64_t generation, Refusal *ret);
/* As manager_check_tenancy(), but a domain may run with `a`. */
Verdict manager_check_state(const Manager *m, const Allocation *a, const char *name, uint64_t generation, Refusal *ret);
/* Refuses when all devices of a are stuck, or when a device that is not stuck is blocked. A release puts stuck devices
 * in quarantine. */
Verdict manager_check_releasable(const Manager *m, const Allocation *a, Refusal *ret);
/* Removes the steps of devices that are in quarantine, because an earlier attempt failed with them or they are
 * stuck. */
void manager_leave_out_quarantined(const Ledger *l, StepList *steps);
/* Releases an allocation. *ret_job: 0 when it is released already; the running job when it is being released. */
Verdict manager_release(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
/* Releases `a`, which is ready or failed and is not used by a domain. */
Verdict manager_release_now(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret);
/* Starts the job that releases `a`; its steps depend on the present drivers of the devices. */
Verdict manager_start_release(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret);

/* op-quarantine.c */
/* JobKind.device_failed for jobs that release an allocation: puts the device in quarantine. */
void manager_device_failed(Manager *m, Job *job, const Step *step, const char *message);
/*
 * Puts each device of a whose pool has OneTimeUse=yes in quarantine. Returns 0, or a negative errno when a quarantine
 * could not be written to disk.
 */
int manager_quarantine_used(Manager *m, const Allocation *a);
/* Puts each stuck device of `a` in quarantine. Returns as manager_quarantine_used(). */
int manager_quarantine_stuck(Manager *m, const Allocation *a);
/* Ends the quarantine at an admin's request: the device returns to the host and can be allocated again. */
Verdict manager_clear_quarantine(Manager *m, PciAddress device, uint32_t *ret_job, Refusal *ret);
/*
 * Records that Nova's guest uses the device or may have used it, as the sentence message says. The device is put in
 * quarantine, on disk, so that it is cleaned after the guest even if the daemon does not run when the guest ends.
 */
void manager_note_used(Manager *m, PciAddress device, const char *message);
/* Starts to reset, check and clean a device that Nova's guest has used and released. Returns false when that is not
 * possible now, for example because the device is still open; try again later. */
bool manager_clean_used(Manager *m, PciAddress device);
/* Resumes an interrupted manager_clear_quarantine(). Returns true when a job was started. */
bool manager_resume_clearing(Manager *m, PciAddress device, uint32_t *ret_job);

/* op-allocation.c: accepting changed devices */
/* Takes the cards that replaced devices of the allocation as its devices, and starts the job that prepares it. */
Verdict manager_accept(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);

/* op-lease.c */
/* Makes `a`, which is not in the ledger yet, a lease of so many seconds from now. */
void manager_lease(Allocation *a, uint32_t seconds);
/* Removes the leases that are over, and sets a timer for the others. Call it when a lease was made or changed, and at
 * the start. */
void manager_follow_leases(Manager *m);

/* Ends the lease of a reserved allocation, and starts the job that prepares it. *ret_job: as in manager_allocate(). */
Verdict manager_prepare(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
/* Renews a lease: it ends after so many seconds from now. */
Verdict manager_renew(Manager *m, const char *name, uint64_t generation, uint32_t seconds, Refusal *ret);

/* op-attach.c */
/* Plans further devices for the allocation, and starts the job that binds them and plugs them into its guest. */
Verdict manager_attach(Manager *m, const char *name, uint64_t generation, const Request *request, uint32_t *ret_job,
                       Refusal *ret);

/* Starts the job that takes the device in the slot from the guest and returns it to the host. */
Verdict manager_detach(Manager *m, const char *name, uint64_t generation, const char *slot, uint32_t *ret_job,
                       Refusal *ret);
/* Starts the job that detaches the devices of allocations that were being attached or detached when the daemon
 * ended. */
void manager_continue_changes(Manager *m);

/* op-sriov.c */
/*
 * Sets the attributes of existing VFs that are neither bound nor allocated and lack them, as after a crash. Returns
 * true when a job was started.
 */
bool manager_identify_vfs(Manager *m, const PciDevice *pf, uint32_t *ret_job);
/* Reads the VFs of these PFs and the drivers of the VFs. No job may run on the PFs. Returns 0 or a negative errno. */
int manager_read_vfs(Manager *m, const PciAddress *pfs, size_t n_pfs);
/* Creates VFs on a PF that has none, for VirtualFunctions=. */
Verdict manager_create_vfs(Manager *m, const PciDevice *pf, unsigned count, uint32_t *ret_job, Refusal *ret);
/* Changes the number of VFs of the PF, when none of its VFs is in use. */
Verdict manager_set_virtual_functions(Manager *m, PciAddress pf, unsigned count, uint32_t *ret_job, Refusal *ret);

/* op-reload.c */
/* Reads the configuration at startup. Returns 0 or a negative errno. */
int manager_load_config(Manager *m);
/* Checks the configuration after the first scan: returns 0, or EX_CONFIG when it would offer hardware twice. */
int manager_check_config(const HostState *host);
/* Returns what a release of `a` does: AfterRelease=, or a return to the host when the pool no longer offers a device of
 * `a`. */
AfterRelease manager_after_release(const HostState *host, const Allocation *a);
/* Reads the configuration again. Applies it completely, or refuses it and keeps the old one; logs the outcome. */
Verdict manager_reload(Manager *m, Refusal *ret);

/* op-allocation.c */
/* Refuses when the ledger is read-only or the daemon is stopping. */
Verdict manager_check_may_change(const Manager *m, Refusal *ret);
/* Refuses when a device of `a`, or the PF of one of its VFs, is blocked; with only_orphaned, only when an orphan blocks
 * it. */
Verdict manager_check_blocked(const Manager *m, const Allocation *a, bool only_orphaned, Refusal *ret);
/* Gives `a`, which is not in the ledger yet, the next generation. */
Verdict manager_next_generation(Manager *m, Allocation *a, Refusal *ret);
/*
 * Sets the state in memory and on disk, and notes it for clients. reason is copied; NULL for none. Returns 0, also when
 * nothing is written because the ledger is read-only; or a negative errno when the file may still have the previous
 * state, from which a restart repeats the work.
 */
int manager_set_state(Manager *m, Allocation *a, AllocationState state, const char *reason);
/* Returns the allocation of a job that runs: it stays in the ledger until the job has ended. */
Allocation *manager_find_subject(const Manager *m, const Job *job);
/*
 * Sets the state that `a` has while its job runs, so that a restart continues from there. On a refusal, `a` keeps its
 * state in memory and on disk; or it has failed, because the disk may have the new state.
 */
Verdict manager_begin_state(Manager *m, Allocation *a, AllocationState state, Refusal *ret);
/*
 * Replaces `a` by *b, which has the same name, in the ledger and on disk. On success *b is `a`, which the caller frees.
 * On a refusal both are unchanged; or b, which claims more, has replaced `a`, because the file may be that of b.
 */
Verdict manager_replace_allocation(Manager *m, Allocation *a, Allocation **b, Refusal *ret);
/* Removes `a` from ledger and disk, and frees it. When the file cannot be removed, `a` stays in state failed. */
void manager_delete_allocation(Manager *m, Allocation *a);
Verdict refuse_storage(Refusal *ret, int error);
/* Refuses unless all devices of a are present, are the allocated cards, and are neither used nor needed by the host. */
Verdict manager_check_hardware(const Manager *m, const Allocation *a, Refusal *ret);
/*
 * Refuses when the allocation called name is ready, has no running guest, and no guest could run with it as promised.
 * Reads hugepages again, for whose changes the kernel has no notification. Afterwards pointers into the inventory may
 * be invalid.
 */
Verdict manager_check_runnable(Manager *m, const char *name, Refusal *ret);

/* op-allocation.c: shared memory */
/*
 * Checks the files of the shared memory regions in the request: VERDICT_SHARED_MEMORY_TAKEN when a file exists for a
 * region that no allocation has, VERDICT_WRONG_STATE when it is missing for a region that an allocation has.
 */
Verdict manager_check_regions(const Manager *m, const Request *request, Refusal *ret);
/* Returns true when the files of all shared memory regions of a exist. A boot removes them. */
bool manager_has_regions(const Manager *m, const Allocation *a);
/* Records in the ledger which region files of `a` were removed while `a` is ready. */
void manager_look_at_regions(Manager *m, const Allocation *a);
/* Watches dev/shm: when the file of a region is removed, promises are checked. */
void manager_follow_regions(Manager *m);
/* Logs region files that belong to no allocation. They are not removed. */
void manager_report_unknown_regions(const Manager *m);
/*
 * JobKind.begun of releases: skips the steps that would remove regions which other allocations share. Jobs with the
 * same region wait for each other, so its members are known only when the job begins.
 */
void manager_keep_shared(Manager *m, Job *job);

/* op-prepare.c */
/* JobKind.found and all_found for jobs that set the attributes of an allocation's VFs. */
void manager_found_attributes(Manager *m, const Job *job, const Step *step, const VfAttributes *found);
int manager_all_attributes_found(Manager *m, const Job *job);
