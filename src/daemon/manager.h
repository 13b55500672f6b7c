/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon's state: the devices of the node (inventory), the rules for them (config, policy), the allocations
 * (ledger, store) and the running jobs. The daemon has one thread, so no lock is needed.
 */

#include <systemd/sd-event.h>

#include "bus/changes.h"
#include "bus/server.h"
#include "host/history.h"
#include "host/hoststate.h"
#include "host/nvidia.h"
#include "host/store.h"
#include "job.h"
#include "probe.h"
#include "util/sysfs.h"

/* Jobs at a time, including stuck jobs, whose child has not exited. */
#define MANAGER_JOBS_MAX       SERVER_JOBS_MAX
/* Jobs of a StartPhase that run at the same time. */
#define MANAGER_START_JOBS_MAX 8U
/* Devices whose uevents are queued; on overflow the whole node is scanned. */
#define MANAGER_EVENTS_MAX     256U
/* Queued uevents are handled after a pause of QUIET, and at the latest PATIENCE after the first of them. */
#define MANAGER_QUIET_USEC     (100U * 1000U)
#define MANAGER_PATIENCE_USEC  (500U * 1000U)

/* Health probes at a time. When the children of all of them hang, no new one is started until one has exited. */
#define MANAGER_CHECKUPS_MAX 8U

/* EX_CONFIG of sysexits.h, for an invalid configuration: systemd does not restart the daemon. */
#define EXIT_CONFIG 78

/*
 * The phases of work for new devices, in order. Each phase has a queue of subjects, and runs a few jobs at a time. At
 * startup all devices are new; the daemon is announced after the last phase. A hot-plug later starts a new round of the
 * phases for the new devices.
 */
typedef enum StartPhase {
        START_CONNECTED,
        START_VFS,    /* VirtualFunctions= */
        START_RESUME, /* allocations interrupted by a crash, a boot or a hot-plug */
        START_BIND,   /* Bind=start */
        START_DONE,
} StartPhase;

typedef struct ManagerJob {
        Job *job;
        const struct JobKind *kind;
        AllocationState before; /* state of the allocation before the job; restored when a release fails */
        bool starting;          /* belongs to the current StartPhase */
        bool resumed;           /* continues an earlier job, so its undo does not restore the state before that job */
        bool waited;            /* was held until another job ended */
        bool unsaved;           /* the quarantine of a device could not be written to disk */
        bool timed_out;         /* gone from the bus; its devices stay blocked until the child exits */
        PciAddress *devices;    /* blocked while the job runs; none of them is allocated */
        size_t n_devices;
} ManagerJob;

typedef struct UeventQueue UeventQueue;
typedef struct Orphans Orphans;

/* One run of the health probe. */
typedef struct Checkup {
        struct Manager *manager;
        Probe *probe;    /* NULL when not running */
        PciAddress late; /* the device that the child hangs on, when is_late */
        bool is_late;
} Checkup;

typedef struct Manager {
        Sysfs *fs;
        const char *config_path;
        const char *modprobe_dir;
        HostState host;
        Store *store;
        History *history;       /* NULL when it could not be opened */
        bool history_unwritten; /* the last write failed and was logged */

        sd_event *event;
        Server *server;
        ManagerJob *jobs;
        size_t n_jobs;
        uint32_t last_job;
        StartPhase phase;
        bool announced;
        PciAddress *unread; /* PFs whose VFs were created at startup; scanned once, at the end of the phase */
        size_t n_unread;
        char **queue; /* PCI addresses or allocation names that this phase has not started with */
        size_t n_queue;
        PciAddress *round; /* the new devices of the current round; unused at startup, when all devices are new */
        size_t n_round;
        PciAddress *arrived; /* the new devices of the next round */
        size_t n_arrived;
        DeviceSnapshotList *shown;              /* device properties as last published; NULL before the announcement */
        UeventQueue *uevents;                   /* watch-uevents.c */
        Probe *eswitch_probe;                   /* watch-eswitches.c */
        Probe *attributes_probe;                /* watch-attributes.c */
        sd_event_source *links;                 /* watch-attributes.c: rtnetlink notifications */
        bool attributes_due;                    /* watch-attributes.c: VFs are to be read again */
        bool attributes_busy;                   /* watch-attributes.c: VFs were skipped because of a job */
        sd_event_source *shm;                   /* regions.c: inotify on dev/shm */
        Probe *gpu_probe;                       /* watch-gpus.c */
        ProbeCache gpus;                        /* watch-gpus.c: device minors */
        Checkup checkups[MANAGER_CHECKUPS_MAX]; /* watch-health.c */
        Orphans *orphans;                       /* orphans.c */
        sd_event_source *guests;                /* watch-guests.c */
        bool guests_found;                      /* libvirt's directory itself is watched, not a parent of it */
        bool guests_unread;                     /* a failure to read the guests was logged */
        Mlx4 options;                           /* mlx4.c: module options and problem as of the last write */
        char **stopped;                         /* services.c: services stopped for jobs */
        size_t n_stopped;
        sd_event_source *reconcile; /* runs manager_reconcile() in the next loop iteration when enabled */
        bool guests_read;           /* the guests were read: an allocation may be due for release with its domain */
        bool services_due;          /* a job has ended: start the services that it left stopped */
        bool released;              /* a job's child or an orphan has exited, so its devices can be read */
        bool promises_unchecked;    /* promise.c: facts changed since the last check */
        bool stopping;              /* after SIGTERM: no new jobs, running jobs finish */
} Manager;

/*
 * Reads configuration, node and ledger; changes no hardware. Returns 0, a negative errno, or EXIT_CONFIG when the
 * configuration would offer hardware twice. sysroot, config_path (NULL: default search, see host/configfiles.h),
 * state_dir and modprobe_dir (NULL: the default below sysroot, see host/modprobe.h) are borrowed.
 */
int manager_new(const char *sysroot, const char *config_path, const char *state_dir, const char *modprobe_dir,
                Manager **ret);
Manager *manager_free(Manager *m);
DEFINE_CLEANUP(Manager *, manager_free)

/*
 * Connects to the bus, creates VFs, resumes interrupted allocations, announces the daemon, and serves until SIGTERM.
 * Returns 0, else a failure that was logged.
 */
int manager_run(Manager *m);

/* op-reload.c */
/* Reads the configuration at startup. Returns 0 or a negative errno. */
int manager_load_config(Manager *m);
/* After the first scan: returns 0, or EXIT_CONFIG when the configuration would offer hardware twice. */
int manager_check_config(const Manager *m);
/* What a release of a does: AfterRelease=, or a return to the host when its pool no longer offers a device of it. */
AfterRelease manager_after_release(const Manager *m, const Allocation *a);
/* Reads the configuration again. Applies it completely, or refuses it and keeps the old one; logs the outcome. */
Verdict manager_reload(Manager *m, Refusal *ret);
/* Logs the problems that the policy found with the pools on this node. */
void manager_log_policy(const Policy *policy);

/* inventory.c */
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
/* Reads CPUs, memory and hugepages again. Returns 1 when this took a scan of the whole node, so that pointers into the
 * inventory are invalid, 0, or a negative errno. */
int manager_refresh_nodes(Manager *m);
/* Reads the list of registered PCI drivers again. Returns as manager_refresh(). */
int manager_refresh_drivers(Manager *m);
/* Reads again which devices the host needs: mounts, routes, consoles. Returns as manager_refresh(). */
int manager_refresh_host(Manager *m);

/* publish.c */
/*
 * Emits signals for devices added and removed, and for each property whose value differs from the last one published.
 * Call it after a change of facts, ledger or policy. Does nothing before the announcement.
 */
void manager_publish(Manager *m);
/* Publishes only these devices and the devices whose state depends on them: IOMMU group members, PFs and VFs. */
void manager_publish_devices(Manager *m, const PciAddress *devices, size_t n);
void manager_publish_allocation(Manager *m, const Allocation *a);

/* jobs.c */
typedef struct JobKind {
        const char *verb;
        void (*begun)(Manager *m, const ManagerJob *mj); /* before JobNew; may be NULL */
        /* Checks again whether a job that waited may begin; NULL when its steps check that, as STEP_CHECK_IDLE does. */
        Verdict (*check)(Manager *m, const ManagerJob *mj, Refusal *ret);
        /* As on_found, on_all_found and on_device_failed of JobCallbacks; NULL when the steps never report them. */
        void (*found)(Manager *m, const ManagerJob *mj, const Step *step, const VfAttributes *found);
        int (*all_found)(Manager *m, const ManagerJob *mj);
        void (*device_failed)(Manager *m, const ManagerJob *mj, const Step *step, const char *message);
        /* Reads the devices again and returns the final result; calls job_set_message() when it is worse. */
        JobResult (*finished)(Manager *m, const ManagerJob *mj, JobResult result);
} JobKind;
/*
 * Starts a job; takes ownership of steps. devices (copied): unallocated devices that are blocked while the job runs.
 * Refuses, without any effect, when too many jobs run. A failed fork() later is a failed job, not a refusal.
 */
Verdict manager_start_job(Manager *m, const JobKind *kind, const char *subject, StepList *steps,
                          const PciAddress *devices, size_t n_devices, uint32_t *ret_id, Refusal *ret);
/* VERDICT_NONE when another job may start. */
Verdict manager_check_jobs(const Manager *m, Refusal *ret);
ManagerJob *manager_find_job(Manager *m, uint32_t id);
/* Whether a job has this subject. */
bool manager_has_job(const Manager *m, const char *subject);
/* The number of jobs that are not stuck. */
size_t manager_active_jobs(const Manager *m);

/* orphans.c */
/* Orphans are children of an earlier daemon that are still alive. Their devices are blocked until they exit. */
/* Finds orphans and blocks their devices. Call it before the first scan. Returns 0 or a negative errno. */
int manager_find_orphans(Manager *m, const char *state_dir);
void manager_forget_orphans(Manager *m);
/* The number of orphans. */
size_t manager_orphans(const Manager *m);
/* Whether an orphan works on this device, or did until it exited just now. */
bool manager_is_orphaned(const Manager *m, PciAddress address);
/* Appends the devices of all orphans. */
int manager_orphaned_devices(const Manager *m, PciAddress **devices, size_t *n);
/* Verb and subject of an orphan's job that may hold the kernel's lock for adding and removing VFs; NULL for none. */
const char *manager_find_orphan_at_vfs(const Manager *m);
/* Creates the lock by which a later daemon finds the job's child. Returns its descriptor, or a negative errno. */
int manager_lock_job(Manager *m, const Job *job);
/* Removes the lock of the job; its child has exited. */
void manager_unlock_job(Manager *m, const Job *job);

/* orphans-end.c */
/* Polls from the event loop for the exit of orphans, and queues their devices for manager_reconcile(). */
int manager_follow_orphans(Manager *m);

/* allocation.c */
/* VERDICT_NONE unless the ledger is read-only or the daemon is stopping. */
Verdict manager_check_may_change(const Manager *m, Refusal *ret);
/* VERDICT_NONE when no device of a, and no PF of its VFs, is blocked. only_orphaned: by an orphan. */
Verdict manager_check_blocked(const Manager *m, const Allocation *a, bool only_orphaned, Refusal *ret);
/* manager_refresh() of the devices of a and of their IOMMU groups. */
int manager_refresh_groups(Manager *m, const Allocation *a);
/* Every device of a is present, is the allocated card, and is bound to its VFIO driver. A boot undoes the binding. */
bool manager_is_bound(const Manager *m, const Allocation *a);
/* Sets the state in memory, on disk and on the bus. reason is copied; NULL for none. */
void manager_set_state(Manager *m, Allocation *a, AllocationState state, const char *reason);
/* Removes a from ledger and disk, and frees it. When the file cannot be removed, a stays, in state failed. */
void manager_delete_allocation(Manager *m, Allocation *a);
Verdict manager_refuse_storage(Refusal *ret, int error);

/* op-allocate.c */
Verdict manager_allocate(Manager *m, const char *name, const Request *request, uint32_t owner, uint32_t *ret_job,
                         Refusal *ret);
/* VERDICT_NO_VFIO_DRIVER when the VFIO driver of a device of a is not registered with the kernel. */
Verdict manager_check_drivers(const Manager *m, const Allocation *a, Refusal *ret);
/* Starts the job that prepares a; its steps depend on the present drivers of the devices. */
Verdict manager_start_prepare(Manager *m, const Allocation *a, uint32_t *ret_job, Refusal *ret);

/* op-release.c */
/*
 * VERDICT_NONE when a (the allocation called name; NULL: none) has this generation and no job, is not used by a domain,
 * and its devices are not blocked.
 */
Verdict manager_check_tenancy(const Manager *m, const Allocation *a, const char *name, uint64_t generation,
                              Refusal *ret);
Verdict manager_release(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
/* Releases a, which is ready or failed and is not used by a domain. */
Verdict manager_release_now(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret);
/* Starts the job that releases a; its steps depend on the present drivers of the devices. */
Verdict manager_start_release(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret);

/* watch-attributes.c */
/* Has a child read the attributes of allocated VFs again, once the daemon is announced. */
void manager_make_attributes_due(Manager *m);
/* Reads the VFs that were skipped because of a job; that job has ended. */
void manager_attributes_job_gone(Manager *m);
/* Drops what was read of the VFs of a: a job has written their attributes since. */
void manager_forget_attributes(Manager *m, const Allocation *a);
/* Calls manager_make_attributes_due() when rtnetlink reports a change on a PF with allocated VFs. */
void manager_follow_links(Manager *m);
/* JobKind.found and all_found of jobs that set the attributes of an allocation's VFs. */
void manager_found_attributes(Manager *m, const ManagerJob *mj, const Step *step, const VfAttributes *found);
int manager_all_attributes_found(Manager *m, const ManagerJob *mj);

/* holders.c */
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
 * The index of an allocation with a device that a process has open on its VFIO driver; n when there is none. Reads
 * /proc/PID/fd of all processes once.
 */
size_t manager_find_open(const Manager *m, Allocation *const *allocations, size_t n);
/* The refusal for an error of holders_find(), a negative errno. */
Verdict manager_refuse_use_unknown(const PciAddress *device, int error, Refusal *ret);

/* regions.c */
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
/* Skips the steps of a release that would remove regions which other allocations share. */
void manager_keep_shared(const Manager *m, Job *job);

/* op-quarantine.c */
/* JobKind.device_failed of jobs that release an allocation: puts the device in quarantine. */
void manager_device_failed(Manager *m, const ManagerJob *mj, const Step *step, const char *message);
/*
 * Puts each device of a whose pool says OneTimeUse= in quarantine. Returns 0, or a negative errno when a quarantine
 * could not be written to disk.
 */
int manager_quarantine_used(Manager *m, const Allocation *a);
/* Ends the quarantine at an admin's request: the device returns to the host and can be allocated again. */
Verdict manager_clear_quarantine(Manager *m, PciAddress device, uint32_t *ret_job, Refusal *ret);
/* Resumes an interrupted manager_clear_quarantine(). Returns true when a job was started. */
bool manager_resume_clearing(Manager *m, PciAddress device, uint32_t *ret_job);

/* resume.c */
/* Whether a stop, crash or boot left work to do for a. */
bool manager_needs_resume(const Manager *m, const Allocation *a);
/* Does that work. Returns true when a job was started. An allocation that cannot be resumed fails, with the reason. */
bool manager_resume(Manager *m, Allocation *a, uint32_t *ret_job);
/* VERDICT_NONE when all devices of a are present, are the allocated cards, and are not used or needed by the host. */
Verdict manager_check_hardware(const Manager *m, const Allocation *a, Refusal *ret);

/* promise.c */
/*
 * Compares what a, when ready, was promised with the known facts, and sets its reason to why a guest cannot run with it
 * as promised. Logs, records and publishes a change of the reason.
 */
void manager_check_promise(Manager *m, Allocation *a);
/* Checks all allocations when facts changed since the last check, except allocations that are about to be resumed. */
void manager_check_promises(Manager *m);
/*
 * VERDICT_NONE unless the allocation called name is ready, has no running guest, and a guest could not run with it as
 * promised. Reads hugepages again, for whose changes the kernel has no notification. Pointers into the inventory may be
 * invalid afterwards.
 */
Verdict manager_check_runnable(Manager *m, const char *name, Refusal *ret);

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

/* op-accept.c */
/* Takes the cards that replaced devices of the allocation as its devices, and starts the job that prepares it. */
Verdict manager_accept(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);

/* op-sriov.c */
/* The verb of jobs that may change the number of VFs. */
#define MANAGER_VERB_VFS "set-vfs"
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

/* mlx4.c */
/*
 * Writes the module options of mlx4_core that the policy wants, and records their file, or the problem, in the host
 * state. Call it after the policy was made, before it is published. logged: the policy's problems are in the journal
 * already; the file is compared even when the options are unchanged.
 */
void manager_write_options(Manager *m, bool logged);

/* services.c */
/* Loads the services that an earlier daemon left stopped. text is from store_load(), and is modified. */
int manager_load_services(Manager *m, char *text);
/* Writes the noted services to disk. Returns 0 or a negative errno. */
int manager_save_services(Manager *m);
/* Notes in memory that the active service is about to be stopped. Returns 0 or -ENOMEM. */
int manager_service_active(Manager *m, const char *name);
/* asked: systemd was asked to start the service, so it is no longer noted. error: why the service is not active. */
void manager_service_started(Manager *m, const char *name, bool asked, int error);
bool manager_service_is_noted(const Manager *m, const char *name);
/* An earlier job stops or starts a service of this job, or creates or removes a shared memory region of it. */
bool manager_job_must_wait(const Manager *m, const Job *job);

/* services-job.c */
#define MANAGER_VERB_START_SERVICES "start-services"
/* Starts a job for the noted services that no running job will start. */
void manager_start_services(Manager *m);

/* history.c */
void manager_open_history(Manager *m, const char *state_dir);
/* Writes an event of a device to journal and history. a: its allocation, or NULL. */
void manager_record(Manager *m, HistoryEvent event, PciAddress device, const Allocation *a, const char *format, ...)
        _printf_(5, 6);
/* manager_record() for each device of a. why: the reason, for HISTORY_FAILED. */
void manager_record_allocation(Manager *m, HistoryEvent event, const Allocation *a, const char *why);
/* Records the failure of a job for the devices of its allocation, or for ManagerJob.devices. */
void manager_record_failure(Manager *m, const ManagerJob *mj);
/* Records that a cannot be resumed. stands: a stays ready. Call it before the state changes. */
void manager_record_deviation(Manager *m, const Allocation *a, const Refusal *why, bool stands);
/* Records that the node cannot keep its promise to a, or (why NULL) can again. Call it before the reason changes. */
void manager_record_promise(Manager *m, const Allocation *a, const Refusal *why);
/* Returns the newest max entries of the device as a JSON array; the caller frees *ret. */
Verdict manager_history(Manager *m, PciAddress device, size_t max, char **ret, Refusal *ret_refusal);

/* arrivals.c */
/* Runs manager_reconcile() in the next loop iteration. Call it when facts changed, a job ended, or a call was handled.
 */
void manager_want_reconcile(Manager *m);
/* Queues the device for the next round of the phases, as after a hot-plug. */
void manager_arrived(Manager *m, PciAddress address);
/* Whether the current round is about the device; at startup all devices are new. */
bool manager_is_new(const Manager *m, PciAddress address);
/* A device of a is new, and its round is not finished. */
bool manager_is_arriving(const Manager *m, const Allocation *a);
/* Starts a round for the devices that arrived. Returns false when there are none. */
bool manager_begin_round(Manager *m);
/* The device is in a Bind=start pool, is available and is not bound to a VFIO driver. */
bool manager_wants_binding(const Manager *m, const PciDevice *dev);
/* Appends the devices for which manager_wants_binding() is true, in ascending order. */
int manager_list_unbound(const Manager *m, PciAddress **ret, size_t *ret_n);
/* After a change of drivers or policy: queues the devices that want binding and are not in unbound, the list from
 * before it.
 */
void manager_bind_late(Manager *m, const PciAddress *unbound, size_t n);

/* busy.c */
/*
 * The devices whose device lock a running job or an orphan may hold: reading driver_override would block, perhaps for
 * ever. The caller frees *ret.
 */
int manager_busy_devices(const Manager *m, PciAddress **ret, size_t *ret_n);
/* Whether the device is one of manager_busy_devices(); true when out of memory. */
bool manager_is_busy(const Manager *m, PciAddress address);

/* contest.c */
/* Finds PFs whose number of VFs another program changed. old: the inventory that was just replaced. */
void manager_check_vfs(Manager *m, const Inventory *old);

/* reconcile.c */
/*
 * Starts the work that no caller asked for: services that a job left stopped, releases of allocations whose domain has
 * ended, and the phases for new devices, after the last of which the daemon is announced. Then checks promises. Ends
 * the event loop when the daemon is stopping and no job runs.
 */
void manager_reconcile(Manager *m);

/* watch-uevents.c */
/* Starts to collect uevents. Call it before the first scan, so that no change is missed. A failure is only logged. */
void manager_open_uevents(Manager *m);
void manager_close_uevents(Manager *m);
/* Handles uevents from the event loop, including those collected so far. Returns 0 or a negative errno. */
int manager_follow_uevents(Manager *m);
/* Handles the uevents that were kept while a job worked on their devices; that job has ended. */
void manager_handle_kept_uevents(Manager *m);

/* watch-eswitches.c */
/* Reads the modes of new eswitches in a child; does nothing before the announcement. Without an answer the mode stays
 * unknown. */
void manager_probe_eswitches(Manager *m);
/* Drops the mode of the PF's eswitch: a driver was bound to the PF. */
void manager_forget_eswitch(Manager *m, PciAddress pf);
/* Reads all modes again; the known modes stay valid until then. */
void manager_probe_eswitches_again(Manager *m);

/* watch-gpus.c */
/* Reads the device minors of new NVIDIA GPUs in a child, also before the announcement. */
void manager_probe_gpus(Manager *m);
/* Drops the minor of the GPU: it is being unbound from its driver. */
void manager_forget_gpu(Manager *m, PciAddress gpu);
/* Reads the minor of the GPU again at the next probe, since its driver was bound again; the old minor stays until then.
 */
void manager_doubt_gpu(Manager *m, PciAddress gpu);
void manager_probe_gpus_again(Manager *m);

/* watch-health.c */
/* Checks the health of all devices that are not in use and have no host driver. */
void manager_check_health(Manager *m, HealthTrigger why);
/* Checks only these devices, as far as they are not in use and have no host driver. */
void manager_check_health_of(Manager *m, const PciAddress *devices, size_t n);
/* Clears the unhealthy mark of devices that were removed or replaced. */
void manager_forget_health(Manager *m);
void manager_health_close(Manager *m);

/* watch-guests.c */
/* Reads which guests run (Allocation.domain), now and on each change of libvirt's status files. */
void manager_follow_guests(Manager *m);
/* Reads the guests again: libvirt reports no change for a guest that died while libvirt was down. */
void manager_find_guests(Manager *m);
