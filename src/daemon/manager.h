/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon's state and what happens to it: facts (inventory), decisions (config, policy), promises (ledger, store)
 * and work (jobs). Every change goes through here, one at a time, so no lock is needed.
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

/* Jobs at once, those whose child never came back among them. */
#define MANAGER_JOBS_MAX       SERVER_JOBS_MAX
/* VFs and Bind=start bindings at work at the same time at start. */
#define MANAGER_START_JOBS_MAX 8U
/* Devices whose events wait to be looked at; with more of them the whole node is read. */
#define MANAGER_EVENTS_MAX     256U
/* Events are looked at when none came for so long, at the latest so long after the first. */
#define MANAGER_QUIET_USEC     (100U * 1000U)
#define MANAGER_PATIENCE_USEC  (500U * 1000U)

/* Looks whether devices are well: when so many do not come back, there is no other before one of them did. */
#define MANAGER_CHECKUPS_MAX 8U

/* Exit status for a configuration that is refused, EX_CONFIG of sysexits.h: systemd must not try again. */
#define EXIT_CONFIG 78

/*
 * What is done for devices that are new, one after the other; each is a queue of subjects worked off a few at a time.
 * At start all are new and the daemon is announced when it is through; later a round begins when some are plugged in.
 */
typedef enum StartPhase {
        START_CONNECTED,
        START_VFS,    /* VirtualFunctions= */
        START_RESUME, /* allocations that are not as they were left: a crash, a boot or a hot-plug came between */
        START_BIND,   /* Bind=start */
        START_DONE,
} StartPhase;

typedef struct ManagerJob {
        Job *job;
        const struct JobKind *kind;
        AllocationState before; /* of the allocation, where a failed release goes back to */
        bool starting;          /* one of those that start waits for */
        bool resumed;   /* it went on with what an earlier run began: undoing it does not bring back the beginning */
        bool waited;    /* for another job, before it began */
        bool unsaved;   /* a device of it is in quarantine, and a restart would not know */
        bool timed_out; /* for the bus it has ended; its device is stuck until the child is gone */
        PciAddress *devices; /* out of circulation while it runs, when no allocation has them */
        size_t n_devices;
} ManagerJob;

typedef struct UeventQueue UeventQueue;
typedef struct Orphans Orphans;

/* A look whether devices are well. */
typedef struct Checkup {
        struct Manager *manager;
        Probe *probe;    /* NULL: there is none */
        PciAddress late; /* what it waits for for ever */
        bool is_late;
} Checkup;

typedef struct Manager {
        Sysfs *fs;
        const char *config_path;
        const char *modprobe_dir;
        HostState host;
        Store *store;
        History *history;       /* NULL: none can be kept */
        bool history_unwritten; /* which has been said */

        sd_event *event;
        Server *server;
        ManagerJob *jobs;
        size_t n_jobs;
        uint32_t last_job;
        StartPhase phase;
        bool announced;
        PciAddress *unread; /* PFs whose VFs were made at start; those are read when all of them are */
        size_t n_unread;
        char **queue; /* addresses or names that this phase still has to begin with */
        size_t n_queue;
        PciAddress *round; /* new devices that the present round is about; at start it is about all */
        size_t n_round;
        PciAddress *arrived; /* those of the next */
        size_t n_arrived;
        DeviceSnapshotList *shown;              /* what the bus was told of each device; NULL before the announcement */
        UeventQueue *uevents;                   /* manager-uevents.c */
        Probe *eswitch_probe;                   /* watch-eswitches.c */
        Probe *attributes_probe;                /* watch-attributes.c */
        sd_event_source *links;                 /* the same: notifications of network interfaces */
        sd_event_source *shm;                   /* regions.c: files removed from dev/shm */
        bool attributes_due;                    /* the same: VFs are to be read again */
        bool attributes_busy;                   /* the same: some of them when a job has ended */
        Probe *gpu_probe;                       /* watch-gpus.c */
        ProbeCache gpus;                        /* what has been asked so far */
        Checkup checkups[MANAGER_CHECKUPS_MAX]; /* watch-health.c */
        Orphans *orphans;                       /* orphans.c */
        sd_event_source *guests;                /* watch-guests.c */
        bool guests_found;                      /* the directory of them is watched, not one above it */
        bool guests_unread;                     /* which has been said */
        Mlx4 options;                           /* of mlx4_core, as last written, with what was against it */
        char **stopped;                         /* services that jobs stop, or did: services.c */
        size_t n_stopped;
        sd_event_source *reconcile; /* manager_reconcile() in the next turn of the loop, when it is enabled */
        bool guests_read;           /* allocations may be due for release with their domain */
        bool services_due;          /* a job has ended: services that it left stopped are to be started */
        bool released;              /* a job's child, or an orphan, has let go of its devices */
        bool promises_in_doubt;     /* facts changed since they were checked: promise.c */
        bool stopping;              /* SIGTERM came: no new work, the rest is brought to its end */
} Manager;

/*
 * Reads configuration, node and ledger; touches no hardware. Returns 0, a negative errno, or EXIT_CONFIG when the
 * configuration would offer hardware twice. sysroot, config_path (NULL: searched for, see host/configfiles.h),
 * state_dir and modprobe_dir (NULL: of the root, see host/modprobe.h) are borrowed.
 */
int manager_new(const char *sysroot, const char *config_path, const char *state_dir, const char *modprobe_dir,
                Manager **ret);
Manager *manager_free(Manager *m);
DEFINE_CLEANUP(Manager *, manager_free)

/* Connects to the bus, creates VFs, brings interrupted work to its end, announces, and serves until SIGTERM. 0, else it
 * failed. */
int manager_run(Manager *m);

/* op-reload.c */
/* Reads it for the first time. */
int manager_load_config(Manager *m);
/* With node and ledger known too: 0, or EXIT_CONFIG when it would offer hardware twice. */
int manager_check_config(const Manager *m);
/* What is in no pool any more goes back to the host whatever AfterRelease= says. */
AfterRelease manager_after_release(const Manager *m, const Allocation *a);
/* Reads it again and takes it all, or refuses and keeps all of the old one; says in the journal which, and why. */
Verdict manager_reload(Manager *m, Refusal *ret);
/* What is odd about the pools on this node. */
void manager_log_policy(const Policy *policy);

/* inventory.c */
/* Reads the node anew and publishes what is different. */
int manager_scan(Manager *m);
/* The same, reading only these devices and those that are made of them; the rest is as it was. locked: a driver may be
 * at work on them, which is not waited for (host/scan.h). */
int manager_scan_devices(Manager *m, const PciAddress *devices, size_t n, bool locked);
/*
 * Reads what can have changed of these devices anew; where that does not do, the whole node. locked: somebody may be at
 * them, which is not waited for (host/scan.h). Returns whether anything differed, or -ENOMEM. Pointers into the
 * inventory are not good any more when it did. Publishes nothing unless the whole node was read.
 */
int manager_refresh(Manager *m, const PciAddress *devices, size_t n, bool locked);
/* The same for CPUs, memory and hugepages. */
int manager_refresh_nodes(Manager *m);
/* The same for the drivers that the kernel has. */
int manager_refresh_drivers(Manager *m);
/* The same for what the host uses: mounts, routes, consoles. */
int manager_refresh_host(Manager *m);

/* publish.c */
/*
 * Tells the bus what is different from what it was told last: devices that came and went, and properties, each exactly
 * when its value is another one. To be called after whatever made the difference: facts, ledger, or policy (a reload).
 * Nothing before the announcement.
 */
void manager_publish(Manager *m);
/* The same at the cost of these devices and what their standing can reach: their groups, PFs and VFs. */
void manager_publish_devices(Manager *m, const PciAddress *devices, size_t n);
void manager_publish_allocation(Manager *m, const Allocation *a);

/* jobs.c */
typedef struct JobKind {
        const char *verb;
        void (*begun)(Manager *m, const ManagerJob *mj); /* or NULL; before JobNew */
        /* Whether a job that waited may still begin; NULL where its own steps look again, as STEP_CHECK_IDLE does. */
        Verdict (*check)(Manager *m, const ManagerJob *mj, Refusal *ret);
        /* As in JobCallbacks; NULL where no step list tells. */
        void (*found)(Manager *m, const ManagerJob *mj, const Step *step, const VfAttributes *found);
        int (*all_found)(Manager *m, const ManagerJob *mj);
        void (*device_failed)(Manager *m, const ManagerJob *mj, const Step *step, const char *message);
        /* Looks at what is true now and returns what the job came to after all, with job_set_message() if it is worse.
         */
        JobResult (*finished)(Manager *m, const ManagerJob *mj, JobResult result);
} JobKind;
/*
 * Starts a job; takes over steps. devices (copied): those that no allocation has and nobody may get meanwhile. Refused
 * when there are too many jobs; then nothing was done. A process that cannot be made is a failed job.
 */
Verdict manager_start_job(Manager *m, const JobKind *kind, const char *subject, StepList *steps,
                          const PciAddress *devices, size_t n_devices, uint32_t *ret_id, Refusal *ret);
/* VERDICT_NONE when there may be one more. */
Verdict manager_check_jobs(const Manager *m, Refusal *ret);
ManagerJob *manager_find_job(Manager *m, uint32_t id);
/* Whether a job is about the subject. */
bool manager_has_job(const Manager *m, const char *subject);
size_t manager_active_jobs(const Manager *m);

/* orphans.c */
/* Devices that processes of an earlier daemon are at are stuck until these are gone. Before the first scan. */
int manager_find_orphans(Manager *m, const char *state_dir);
void manager_forget_orphans(Manager *m);
/* How many processes. */
size_t manager_orphans(const Manager *m);
/* Whether one of them is at this very device, or was until now. */
bool manager_is_orphaned(const Manager *m, PciAddress address);
/* Appends all devices that one is at. */
int manager_orphaned_devices(const Manager *m, PciAddress **devices, size_t *n);
/* The job of one that may have the kernel's lock for VFs that come and go; NULL when there is none. */
const char *manager_find_orphan_at_vfs(const Manager *m);
/* A lock for the process of a job, which the next daemon would find it by; negative when there can be none. */
int manager_lock_job(Manager *m, const Job *job);
/* That process is gone. */
void manager_unlock_job(Manager *m, const Job *job);

/* orphans-end.c */
/* With the loop there: looks whether they are gone, and takes their devices up. */
int manager_follow_orphans(Manager *m);

/* allocation.c */
/* VERDICT_NONE unless the ledger is read-only or the daemon on its way out. */
Verdict manager_check_may_change(const Manager *m, Refusal *ret);
/* VERDICT_NONE when no device of it, nor the PF of one, is blocked; only_orphaned: because an orphan is at it. */
Verdict manager_check_blocked(const Manager *m, const Allocation *a, bool only_orphaned, Refusal *ret);
/* manager_refresh() of its devices and their groups. */
int manager_refresh_groups(Manager *m, const Allocation *a);
/* Every device is there, itself, and on the VFIO driver. After a boot they are with the host's drivers again. */
bool manager_is_bound(const Manager *m, const Allocation *a);
/* In memory, on disk and on the bus; reason is copied, NULL for none. */
void manager_set_state(Manager *m, Allocation *a, AllocationState state, const char *reason);
/* Takes it out of ledger and disk, and frees it. When the disk refuses, it stays: failed, to be released again. */
void manager_forget(Manager *m, Allocation *a);
Verdict manager_refuse_storage(Refusal *ret, int error);

/* op-allocate.c */
Verdict manager_allocate(Manager *m, const char *name, const Request *request, uint32_t owner, uint32_t *ret_job,
                         Refusal *ret);
/* VERDICT_NO_VFIO_DRIVER when the kernel lacks the driver of a device of a: no device is taken off its driver then. */
Verdict manager_check_drivers(const Manager *m, const Allocation *a, Refusal *ret);
/* The job, from where the devices are now. */
Verdict manager_start_prepare(Manager *m, const Allocation *a, uint32_t *ret_job, Refusal *ret);

/* op-release.c */
/* Whether the allocation of that name (NULL: none) is the one of that generation, and nothing is at it. */
Verdict manager_check_tenancy(const Manager *m, const Allocation *a, const char *name, uint64_t generation,
                              Refusal *ret);
Verdict manager_release(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
/* Of one that is ready or has failed, and that no domain runs with. */
Verdict manager_release_now(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret);
/* The job, from where the devices are now. */
Verdict manager_start_release(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret);

/* watch-attributes.c */
/* What PFs report of VFs that are promised is to be read again: by a child, once announced. */
void manager_make_attributes_due(Manager *m);
/* A job let go of its devices: VFs that were left out for it can be read. */
void manager_attributes_job_gone(Manager *m);
/* A job wrote the attributes of VFs of a: what was reported of them before does not count. */
void manager_forget_attributes(Manager *m, const Allocation *a);
/* Makes it due whenever the kernel notifies of an interface of such a PF. */
void manager_follow_links(Manager *m);
/* JobKind.found and all_found of jobs that give the VFs of an allocation their attributes. */
void manager_found_attributes(Manager *m, const ManagerJob *mj, const Step *step, const VfAttributes *found);
int manager_all_attributes_found(Manager *m, const ManagerJob *mj);

/* holders.c */
typedef enum UseCheck {
        USE_ALLOCATE, /* it is to be ours: nobody may use any device */
        USE_RESUME,   /* the same, but those that are on its VFIO driver are as they should be, whoever uses them */
        USE_RELEASE,  /* it goes back: a guest may not have it; what is with the host stays there */
} UseCheck;
/* Whether somebody uses one of the devices; one look at all processes. */
Verdict manager_check_use(const Manager *m, const Allocation *a, UseCheck check, Refusal *ret);
/* Index of an allocation of which a process is known to have a device open on its VFIO driver, n: of none. One look at
 * all processes. */
size_t manager_find_open(const Manager *m, Allocation *const *allocations, size_t n);
/* That holders_find() could not tell for a device. */
Verdict manager_refuse_use_unknown(const PciAddress *device, int error, Refusal *ret);

/* regions.c */
/* VERDICT_SHARED_MEMORY_TAKEN when there is a file already where no allocation has memory to share, VERDICT_WRONG_STATE
 * when there is none where one has. */
Verdict manager_check_regions(const Manager *m, const Request *request, Refusal *ret);
/* What a shares is there: a boot takes it away. */
bool manager_has_regions(const Manager *m, const Allocation *a);
/* Notes in the ledger which memory that a, which is ready, shares was removed. */
void manager_look_at_regions(Manager *m, const Allocation *a);
/* Checks promises whenever the file of a region is removed. */
void manager_follow_regions(Manager *m);
/* Tells the journal of files of such memory that no allocation has; they are left alone. */
void manager_report_unknown_regions(const Manager *m);
/* Leaves out of a release what others have too. */
void manager_keep_shared(const Manager *m, Job *job);

/* op-quarantine.c */
/* JobKind.device_failed of jobs that hand back an allocation: the device is in quarantine from now on. */
void manager_device_failed(Manager *m, const ManagerJob *mj, const Step *step, const char *message);
/* The same for each device of a whose pool wants that after every use (OneTimeUse=). Negative: a restart would not know
 * of one. */
int manager_quarantine_used(Manager *m, const Allocation *a);
/* An admin has looked: it goes back to where it came from, and on the market. */
Verdict manager_clear_quarantine(Manager *m, PciAddress device, uint32_t *ret_job, Refusal *ret);
/* Once more, where a crash came between: true when a job was started. */
bool manager_resume_clearing(Manager *m, PciAddress device, uint32_t *ret_job);

/* resume.c */
/* Whether a stop, crash or boot left work to do for it. */
bool manager_needs_resume(const Manager *m, const Allocation *a);
/* Does it: true when a job was started. An allocation that cannot be brought in order is failed, with the reason. */
bool manager_resume(Manager *m, Allocation *a, uint32_t *ret_job);
/* All its devices are there, themselves, not needed by the host, and used by nobody else. */
Verdict manager_check_hardware(const Manager *m, const Allocation *a, Refusal *ret);

/* promise.c */
/*
 * When a is ready, compares what it was promised with the facts as they are known: its reason says why no guest can run
 * with it as promised. Tells journal, history and bus when that changed.
 */
void manager_check_promise(Manager *m, Allocation *a);
/* The same of all allocations, when facts changed since the last time, except those about to be resumed. */
void manager_check_promises(Manager *m);
/* VERDICT_NONE unless the allocation of that name is ready, no guest runs with it, and none could run as promised.
 * Reads what the kernel does not notify of: hugepages. Pointers into the inventory may be stale afterwards. */
Verdict manager_check_runnable(Manager *m, const char *name, Refusal *ret);

/* serials.c */
/* Serial numbers of what the ledger has, where old (NULL the first time), which was just replaced, does not know them.
 */
void manager_read_serials(Manager *m, const Inventory *old);
/* Those of the devices of a, which is to remember them. */
void manager_note_serials(Manager *m, Allocation *a);
/* Devices that have another address than the ledger says, as after a boot, have it in the ledger too. */
void manager_find_moved(Manager *m);

/* op-accept.c */
/* Other cards where devices of the allocation were become its devices; the job prepares it. */
Verdict manager_accept(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);

/* op-sriov.c */
/* The verb of jobs that may change the number of VFs. */
#define MANAGER_VERB_VFS "set-vfs"
/* VFs that are there and that nobody has get who they are, where they lack it: a crash may have come before that. True
 * when a job was started. */
bool manager_identify_vfs(Manager *m, const PciDevice *pf, uint32_t *ret_job);
/* The VFs that these have now, and their drivers; no job is at work on these PFs. Negative: out of memory. */
int manager_read_vfs(Manager *m, const PciAddress *pfs, size_t n_pfs);
/* VFs on a PF that has none, as VirtualFunctions= wants them. */
Verdict manager_create_vfs(Manager *m, const PciDevice *pf, unsigned count, uint32_t *ret_job, Refusal *ret);
/* From any number to any other, where nobody uses those that are there. */
Verdict manager_set_virtual_functions(Manager *m, PciAddress pf, unsigned count, uint32_t *ret_job, Refusal *ret);

/* mlx4.c */
/*
 * Writes down what the policy wants of mlx4_core, and tells the policy where it stands or why it does not. To be called
 * after the policy was made anew, before it is published. told: its problems are in the journal, and what is on disk is
 * looked at even if nothing else is wanted than before.
 */
void manager_write_options(Manager *m, bool told);

/* services.c */
/* Those that an earlier run stopped and did not start again: text of store_load(), which is changed. */
int manager_load_services(Manager *m, char *text);
/* Those that are noted, on disk. */
int manager_save_services(Manager *m);
/* It is active and about to be stopped: noted, not yet on disk. */
int manager_service_active(Manager *m, const char *name);
/* asked: systemd has started it or will never, so that it is not noted any more. error: why it is not up. */
void manager_service_started(Manager *m, const char *name, bool asked, int error);
bool manager_service_is_noted(const Manager *m, const char *name);
/* Another job, an earlier one, is to stop or start one of its services, or makes or removes memory that it has too. */
bool manager_job_must_wait(const Manager *m, const Job *job);

/* services-job.c */
#define MANAGER_VERB_START_SERVICES "start-services"
/* A job starts those that are noted and that no other job will start. */
void manager_start_services(Manager *m);

/* history.c */
void manager_open_history(Manager *m, const char *state_dir);
/* Tells in the journal and the history what happened to a device, which an allocation (or NULL) has. */
void manager_record(Manager *m, HistoryEvent event, PciAddress device, const Allocation *a, const char *format, ...)
        _printf_(5, 6);
/* The same of each of its devices; why: of HISTORY_FAILED. */
void manager_record_allocation(Manager *m, HistoryEvent event, const Allocation *a, const char *why);
/* A job did not come to its end: for the devices of its allocation, or those that it kept for itself. */
void manager_record_failure(Manager *m, const ManagerJob *mj);
/* An allocation cannot be brought in order. stands: it is ready all the same. Before its state says so. */
void manager_record_disorder(Manager *m, const Allocation *a, const Refusal *why, bool stands);
/* The node can no longer keep what it promised to a, or (why NULL) it can again. Before its state says so. */
void manager_record_promise(Manager *m, const Allocation *a, const Refusal *why);
/* The newest max entries about the device, a JSON array, which the caller frees. */
Verdict manager_history(Manager *m, PciAddress device, size_t max, char **ret, Refusal *ret_refusal);

/* arrivals.c */
/* Runs manager_reconcile() in the next turn of the loop. To be called after whatever may leave work to do: facts that
 * changed, a job that ended, a call. */
void manager_want_reconcile(Manager *m);
/* The device is new, or was out and in again: it gets what startup would have given it. */
void manager_arrived(Manager *m, PciAddress address);
/* The present round is about the device; at startup it is about all. */
bool manager_is_new(const Manager *m, PciAddress address);
/* A device of a is new, and what startup would have done for a is not done yet. */
bool manager_is_arriving(const Manager *m, const Allocation *a);
/* Makes those that arrived the subject of the next round. False when there are none. */
bool manager_begin_round(Manager *m);

/* busy.c */
/* Devices whose lock a running job may hold: reading their override would wait for it, perhaps for ever. */
int manager_busy_devices(const Manager *m, PciAddress **ret, size_t *ret_n);
/* Whether the device is one of them; also when out of memory. */
bool manager_is_busy(const Manager *m, PciAddress address);

/* contest.c */
/* Takes note of PFs whose number of VFs another program changed since old, which the inventory has just replaced. */
void manager_check_vfs(Manager *m, const Inventory *old);

/* reconcile.c */
/*
 * Starts all work that no caller asked for: services that a job left stopped, releases with a domain, startup and what
 * a new device gets of it. Then checks promises, announces the daemon once nothing is left to wait for, and ends it
 * when it was told to stop.
 */
void manager_reconcile(Manager *m);
/* The device is of a Bind=start pool, on offer and not bound yet. */
bool manager_wants_binding(const Manager *m, const PciDevice *dev);
/* Appends the devices of Bind=start pools that are on offer and not bound yet, in ascending order. */
int manager_list_unbound(const Manager *m, PciAddress **ret, size_t *ret_n);
/* A VFIO driver may have been loaded: those that are not in the list of before are bound by manager_reconcile().
 */
void manager_bind_late(Manager *m, const PciAddress *unbound, size_t n);

/* manager-uevents.c */
/* Begins to collect events; before the first scan, so that nothing falls between. Without events the daemon goes on. */
void manager_open_uevents(Manager *m);
void manager_close_uevents(Manager *m);
/* Events from here on are worked off by the loop, those kept until now among them. */
int manager_follow_uevents(Manager *m);
/* A job of ours let go of its devices: what came for them meanwhile can be looked at. */
void manager_look_at_kept_uevents(Manager *m);

/* watch-eswitches.c */
/* Asks for the modes of those eswitches that are new. Once announced; where nobody answers they stay unknown. */
void manager_probe_eswitches(Manager *m);
/* Its driver is another one or began anew: what it has now is to be asked. */
void manager_forget_eswitch(Manager *m, PciAddress pf);
/* All are to be asked again; what is known of them stands until then. */
void manager_probe_eswitches_again(Manager *m);

/* watch-gpus.c: the same for the numbers of GPUs, also before the announcement */
void manager_probe_gpus(Manager *m);
/* It is taken off its driver: no number is true. */
void manager_forget_gpu(Manager *m, PciAddress gpu);
/* Its driver began anew: to be asked again; what is known stands until then. */
void manager_doubt_gpu(Manager *m, PciAddress gpu);
void manager_probe_gpus_again(Manager *m);

/* watch-health.c */
/* Looks at all devices that nobody uses and no driver of the host looks after: whether they are well. */
void manager_check_health(Manager *m, HealthDue why);
/* At these, as far as they are such. */
void manager_check_health_of(Manager *m, const PciAddress *devices, size_t n);
/* What is not there any more, or is another card, is not unhealthy. */
void manager_forget_health(Manager *m);
void manager_health_close(Manager *m);

/* watch-guests.c */
/* Looks which guests run (Allocation.domain), now and whenever that changes. */
void manager_follow_guests(Manager *m);
/* Now, in case a change was not told: a guest that died while libvirt was away. */
void manager_look_for_guests(Manager *m);
