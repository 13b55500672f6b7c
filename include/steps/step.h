/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The changes to hardware, as an ordered list of single steps. The functions below make the list, and host/executor.h
 * runs it. A step has a kind and the values for this kind, such as the state that the step reaches and the state that
 * its undo restores. Some kinds have no undo, such as a reset. A step whose state is already reached changes nothing,
 * so a list can be run again after a crash.
 */

#include "config/config.h"
#include "ledger/allocation.h"

typedef enum StepKind {
        STEP_OVERRIDE,   /* set driver_override */
        STEP_UNBIND,     /* unbind the device from its driver */
        STEP_RUNTIME_PM, /* set power/control: "on" or "auto" */
        STEP_D3COLD,     /* set d3cold_allowed */
        STEP_BIND,       /* bind the device to the driver: write drivers_probe while driver_override names the driver */
        STEP_AUTOPROBE,  /* set sriov_drivers_autoprobe */
        STEP_SAVE_VF_STATE, /* record the attributes of the VF for an undo; changes nothing */
        STEP_REMOVE_VFS,    /* set sriov_numvfs from a count to 0; an earlier step has unbound the VFs */
        STEP_NUMVFS,        /* set sriov_numvfs from 0 to a count */
        STEP_RESET,         /* reset the device through sysfs */
        STEP_CHECK, /* check that the device's config space answers; with check.compares, also that the device has had
                       no more fatal errors than check.fatal */
        STEP_ATTRIBUTES,           /* set attributes of a VF; the undo restores their former values */
        STEP_SUPPORTED_ATTRIBUTES, /* as STEP_ATTRIBUTES, without attributes that the PF does not offer */
        STEP_TRY_ATTRIBUTES,       /* as STEP_SUPPORTED_ATTRIBUTES; a failure is only reported */
        STEP_RESTORE,              /* as STEP_ATTRIBUTES; a failure quarantines the VF */
        STEP_CLEAN,                /* run the cleaner of a pool once for all devices of the pool in this list */
        STEP_STOP_SERVICE,         /* stop the systemd unit if it is active or about to start */
        STEP_START_SERVICE,        /* start the unit again if this list, or the list of an earlier job, stopped it */
        STEP_CHECK_IDLE,           /* check that no process uses the device, which is bound to a host driver */
        STEP_MAKE_REGION,          /* create the shared memory region on its node */
        STEP_REMOVE_REGION,        /* wipe and remove the shared memory region */
        STEP_FIND_PORTS,   /* find a free port in the domain for the device of each STEP_PLUG; if the allocation has no
                              CPUs, libvirt chooses the ports. If libvirt has no such domain, the STEP_PLUG steps do
                              nothing */
        STEP_PLUG,         /* attach the device to the domain */
        STEP_UNPLUG,       /* detach the device from the domain; nothing to do if the domain does not have the device */
        STEP_VGPU,         /* create or remove a vGPU: a type that is set on a VF, or a mediated device */
        STEP_CHECK_UNUSED, /* check that no process has the device open; wait up to 5 s for the last process to
                              close it. With may_lack, check once and do not wait */
        STEP_ACTIVATE,     /* have Fabric Manager activate the NVLink partition */
        STEP_DEACTIVATE,   /* have Fabric Manager deactivate the NVLink partition */
        STEP_CHECK_HEALTH, /* report the health of the device, and check that its config space answers */
        STEP_PERSISTENCE,  /* turn on persistence mode of the GPU, which is bound to NVIDIA's driver; a failure is only
                              logged */
        STEP_CHECK_GPU,    /* check the health of the GPU as NVIDIA's driver, to which it is bound, reports it */
        _STEP_KIND_MAX,
} StepKind;

#define STEP_VF_UNKNOWN (~0U)

/* One step. The strings belong to the StepList that has the step. */
typedef struct Step {
        StepKind kind;
        PciAddress device; /* not set in steps for shared memory or a partition. In steps for a service: a device that
                              the service may use, or not set */
        /* Only for STEP_ACTIVATE and the STEP_CHECK_UNUSED before it: if the step fails for a reason that
         * step_may_lack() accepts, the earlier steps are not undone. While such a step hangs, it holds no lock of a
         * device: a STEP_CHECK_UNUSED only asks about its device, and a STEP_ACTIVATE has none. */
        bool may_lack;
        bool skipped;   /* the job found at its start that this step is not needed */
        unsigned chain; /* number of the chain, from 1 on (steps_set_chains()); 0: the step runs alone */
        union {
                struct {                       /* STEP_OVERRIDE */
                        const char *from, *to; /* NULL: not set */
                        bool unlocks; /* release the unbind lock of the GPU that an interrupted job may have left */
                } override;
                struct { /* STEP_UNBIND, STEP_CHECK_IDLE */
                        const char *driver;
                        const char *instead; /* a device that is on this driver already needs no unbind; NULL: none */
                        bool is_vf;
                        bool checks_idle;   /* driver is a host driver: first check that no process uses the device */
                        bool checks_closed; /* driver is a VFIO driver: first check that the device is not open */
                        uint32_t gpu_node;  /* only with checks_idle: N + 1 for the GPU's /dev/nvidiaN; 0 unknown */
                } unbind;
                const char *driver; /* STEP_BIND */
                bool on; /* STEP_RUNTIME_PM, STEP_D3COLD, STEP_AUTOPROBE: true writes "on" or 1, false "auto" or 0. The
                            undo writes the other value */
                unsigned count;               /* STEP_REMOVE_VFS, STEP_NUMVFS: the number of VFs */
                struct {                      /* STEP_RESET */
                        ResetMethod method;   /* written to reset_method first, unless it is RESET_METHOD_DEFAULT */
                        const char *before;   /* written to reset_method after the reset; NULL: nothing */
                        bool may_lack_method; /* the step also succeeds if the device has no reset method */
                        bool may_stay;        /* the step also succeeds if no reset method works */
                        bool checks_closed;   /* as in STEP_UNBIND */
                } reset;
                struct { /* STEP_CHECK */
                        bool compares;
                        uint32_t fatal; /* the step fails if the device has had more fatal errors than this */
                } check;
                struct {                /* STEP_SAVE_VF_STATE and the steps that set attributes; device is the PF */
                        unsigned index; /* STEP_VF_UNKNOWN makes the step fail */
                        VfAttributes attributes;
                        PciAddress address; /* address of the VF; not set in the steps of steps_set_vfs() */
                } vf;
                struct { /* STEP_CLEAN */
                        const char *pool, *command;
                } clean;
                const char *service; /* STEP_STOP_SERVICE, STEP_START_SERVICE: the systemd unit */
                struct {             /* STEP_MAKE_REGION, STEP_REMOVE_REGION */
                        Region region;
                        const char *group; /* Unix group that may use the memory; NULL in STEP_REMOVE_REGION */
                } memory;
                struct {                     /* STEP_FIND_PORTS, STEP_PLUG, STEP_UNPLUG */
                        const char *domain;  /* UUID of the domain */
                        const char *hostdev; /* text of the <hostdev>; not set in STEP_FIND_PORTS */
                } plug;
                struct { /* STEP_VGPU */
                        bool wanted;
                        unsigned type;
                        const char *name; /* directory of the type in sysfs; NULL: none, or unknown */
                        const char *mdev; /* UUID of the mediated device; NULL for a vGPU of a VF */
                } vgpu;
                struct {                  /* STEP_CHECK_UNUSED */
                        const char *mdev; /* UUID of the device's mediated device; NULL: none */
                        bool is_vf;
                } unused;
                unsigned partition; /* STEP_ACTIVATE, STEP_DEACTIVATE */
        };
} Step;

typedef enum StepSubject {
        STEP_OF_DEVICE,
        STEP_OF_ATTRIBUTES, /* the step sets attributes of a VF */
        STEP_OF_SERVICE,
        STEP_OF_REGION,
        STEP_OF_PARTITION,
} StepSubject;

typedef enum StepLimit {
        STEP_LIMIT_JOB,      /* JobTimeoutSec= */
        STEP_LIMIT_SLOW,     /* a multiple of JobTimeoutSec= */
        STEP_LIMIT_QUESTION, /* JobTimeoutSec=, but at least StepList.question_sec */
} StepLimit;

typedef enum StepFailure {
        STEP_FAILS_RUN,
        STEP_FAILS_DEVICE, /* the device gets no more steps, but other devices do. The step is not undone */
        STEP_FAILS_ALONE,  /* the failure is only reported; the step is not undone */
} StepFailure;

/* The properties that all steps of a kind share. How they are run and undone is in host/executor-run.h. */
typedef struct StepProperties {
        StepSubject subject;
        StepLimit limit;
        StepFailure failure;
        bool alone;         /* runs alone; see steps_set_chains() */
        uint8_t strings[2]; /* offsets in Step of the strings that the list owns; 0: none */
} StepProperties;
extern const StepProperties step_properties[_STEP_KIND_MAX];

static inline bool step_gives_attributes(const Step *s) {
        return step_properties[s->kind].subject == STEP_OF_ATTRIBUTES;
}

static inline bool step_is_of_service(const Step *s) {
        return step_properties[s->kind].subject == STEP_OF_SERVICE;
}

static inline bool step_is_of_region(const Step *s) {
        return step_properties[s->kind].subject == STEP_OF_REGION;
}

static inline bool step_is_of_fabric(const Step *s) {
        return step_properties[s->kind].subject == STEP_OF_PARTITION;
}

/* Returns true when the step acts on a device, not on a service, shared memory or an NVLink partition. */
static inline bool step_has_device(const Step *s) {
        return step_properties[s->kind].subject <= STEP_OF_ATTRIBUTES;
}

/* Returns the device that a failure of the step is about: for a STEP_RESTORE the VF, otherwise Step.device. If the kind
 * of the step has STEP_FAILS_DEVICE, this device is then quarantined. */
static inline PciAddress step_failed_device(const Step *s) {
        return s->kind == STEP_RESTORE ? s->vf.address : s->device;
}

typedef struct StepList {
        Step *steps;
        size_t n;
        char **strings; /* the strings of all steps, which the list owns */
        size_t n_strings;
        bool lacks_memory;          /* a step or a string could not be added */
        bool skips_missing_devices; /* steps for a device that has left the node count as done */
        bool reports_found_state;   /* before the first write, the executor reports the attributes of the VFs, the
                                       services to be stopped and the GPUs in persistence mode, and waits until the report
                                       is on disk */
        bool checks_health;   /* the executor reports the health of the device of each STEP_BIND before the first write
                                 and after the bind; a device whose config space does not answer fails the run */
        bool outlives_stuck;  /* when a chain hangs, the steps of the other chains are still done, and are not undone */
        unsigned n_chains;    /* the highest Step.chain; set by steps_set_chains() */
        unsigned parallel;    /* ParallelDevices=: the number of chains that run at a time. 0 or 1: all steps run one by
                                 one, in the order of the list */
        unsigned timeout_sec; /* JobTimeoutSec=, see step_timeout_sec(); 0: no limit. It includes the waiting for
                                 services to stop and start, and for a guest to release a device */
        unsigned question_sec; /* the least limit of a step that asks Fabric Manager, libvirt or NVIDIA's library, which
                                  may take 20 s to answer; passthroughd-root, which asks them, may take 8 s more.
                                  step_list_new() sets it to 30 */
        Allocation *guest; /* owned: a copy of the allocation whose domain STEP_FIND_PORTS searches, with all devices
                              settled; NULL without such a step */
} StepList;

StepList *step_list_new(void);
StepList *step_list_free(StepList *l);
DEFINE_CLEANUP(StepList *, step_list_free)
/* Returns the end of the steps. l->steps may be NULL in an empty list, and C does not allow to add even 0 to NULL. */
static inline Step *step_list_end(const StepList *l) {
        return l->n > 0 ? l->steps + l->n : l->steps;
}
/* Adds the step with copies of its strings. If memory runs out, sets lacks_memory, and the function that makes the list
 * returns -ENOMEM. */
void step_list_add(StepList *l, Step s);
/* Replaces *s, which may be NULL, by a copy that the list owns. */
void step_list_own(StepList *l, const char **s);
/* Returns -ENOMEM if lacks_memory is set, otherwise 0. */
int step_list_result(const StepList *l);
/* Sets *ret to the list and returns 0. If lacks_memory is set, frees the list and returns -ENOMEM. */
int step_list_finish(StepList *l, StepList **ret);
void step_list_remove(StepList *l, size_t i);
/* Moves the last steps of the list, those from index `first` on, to the position `to`, which is at most `first`. */
void step_list_move(StepList *l, size_t first, size_t to);
/* Adds the devices of the steps to the array, sorts the array and removes duplicates. Returns 0 or -ENOMEM. */
int step_list_devices(const StepList *l, PciAddress **devices, size_t *n);

/*
 * Divides the steps into chains. The steps of a chain run in the order of the list, and different chains run in
 * parallel. Two devices share a chain when the kernel serialises their steps, or when the order of their steps matters:
 * the functions of a PCI slot, the members of an IOMMU group, a PF and its VFs, a GPU and its slots for mediated
 * devices, and the devices directly below one bridge, because Linux 6.12 holds the lock of the bridge during a reset
 * (pci_reset_function()).
 *
 * Step.chain is 0 for a step that runs alone: it acts on no device or on several at once, acts on the domain of a
 * guest, or checks that no process has a device open. A step that runs alone begins when all steps before it have
 * ended, and ends before any step after it begins.
 *
 * Returns 0 or -ENOMEM.
 */
int steps_set_chains(StepList *l, const Inventory *inv);
/*
 * Returns the number of seconds after which the step is given up; 0: never. It is JobTimeoutSec=, or three times that
 * for two kinds of steps. One is a reset, during which the kernel polls up to 65.5 s with each reset method in turn
 * (pci_dev_wait() in drivers/pci/pci.c). The other is a change of the number of VFs, for which the kernel serves one PF
 * at a time (pci_rescan_remove_lock). A step that asks Fabric Manager, libvirt or NVIDIA's library has at least
 * StepList.question_sec; a STEP_CHECK_GPU has at least that time for each STEP_CHECK_GPU of the list.
 */
unsigned step_timeout_sec(const StepList *l, const Step *s);
/* Returns the index after the last step of the part of the list that begins with the step at index `first`. A part has
 * either steps that run alone, one after the other, or steps of chains. */
size_t step_list_part_end(const StepList *l, size_t first);
/* Returns the number of seconds after which every step of the list is done or given up; 0: there is no limit. */
unsigned step_list_timeout_sec(const StepList *l);

/* Returns the step as a phrase: "unbind 0000:82:00.0 from nvidia". The caller frees; NULL when out of memory. */
char *step_describe(const Step *s);

/* Makes the steps that bind all devices of an allocation, from their state in inv, to their VFIO driver: first forbid
 * D3, then set all overrides, unbind all, set VF attributes, and bind all. VFs of a running domain keep their
 * attributes. A VF with a vGPU keeps its driver and override, and its vGPU is created last. Returns 0 or -ENOMEM. */
int steps_prepare(const Allocation *a, const Inventory *inv, StepList **ret);
/*
 * Makes the steps that return all devices, from their state in inv, to their driver, override, power management and VF
 * attributes from before the allocation. A device that stays on a VFIO driver is kept out of D3.
 *
 * `scrub`: reset and check the devices that a guest may have had, before they leave their VFIO driver. A device that
 * fails is quarantined and keeps its driver; the steps of the others continue. AFTER_RELEASE_KEEP: if all present
 * devices are on the VFIO driver, they stay there.
 *
 * A device on any host driver counts as returned. Devices that are missing, or whose address another card has, are
 * skipped, also if they disappear while the steps run. vGPUs are removed first: while a process has one open, its
 * removal fails, which ends the release. Returns 0 or -ENOMEM.
 */
int steps_release(const Allocation *a, const Inventory *inv, AfterRelease after, bool scrub, StepList **ret);
/* Extends steps, which steps_prepare() made: finds ports before all other steps, and plugs in the n `devices`, which
 * are devices of `a`, after all other steps. hostdevs: the text of the <hostdev> of each of these devices, without a
 * guest address. uuid: the UUID of the domain. Does nothing if n is 0. Returns 0 or -ENOMEM. */
int steps_plug(const Allocation *a, const char *uuid, const PciAddress *devices, char *const *hostdevs, size_t n,
               StepList *steps);
/* Extends steps, which steps_release() made for `part`: before all other steps, the domain releases the devices, and
 * then the steps check that no process has a device of `part` open. Does nothing if n is 0. The other arguments are
 * those of steps_plug(). Returns 0 or -ENOMEM. */
int steps_unplug(const Allocation *part, const char *uuid, const PciAddress *devices, char *const *hostdevs, size_t n,
                 StepList *steps);
/* Extends steps, which steps_prepare() made: first stops the services in StopServices= of the pools whose devices are
 * unbound, then checks that the devices of these pools are idle, and at the end starts the services in reverse order.
 * Returns 0 or -ENOMEM. */
int steps_around_services(const Allocation *a, const Config *config, StepList *steps);
/* Completes the resets in `steps`, which steps_release() made: ResetMethod= and AllowNoReset= of the device's pool
 * decide how. A companion may be reset by any method or by none, because the reset of the assigned function also resets
 * its card. Returns 0 or -ENOMEM. */
int steps_reset(const Allocation *a, const Inventory *inv, const Config *config, StepList *steps);
/* Extends steps, which steps_release() made: runs CleanerCommand= of each pool for the pool's devices, right after all
 * devices were checked. A device that cannot be cleaned is quarantined. Returns 0 or -ENOMEM. */
int steps_clean(const Allocation *a, const Config *config, StepList *steps);
/* Extends steps, which steps_release() made, for NVIDIA GPUs that return to NVIDIA's driver: turns on persistence mode
 * again, which the driver forgets at the unbind. `check`: also asks the driver about the health of each GPU, and
 * quarantines a GPU that is not healthy. Returns 0 or -ENOMEM. */
int steps_return_gpus(const Allocation *a, const Inventory *inv, bool check, StepList *steps);
/* Extends steps, which steps_prepare() made. Call it after steps_around_services() and steps_make_regions(). The health
 * of each device except mediated devices is checked before the first write: by StepList.checks_health if the steps bind
 * the device, otherwise by a STEP_CHECK_HEALTH. Returns 0 or -ENOMEM. */
int steps_check_health(const Allocation *a, StepList *steps);
/* steps_make_regions() adds steps that create the shared memory of the allocation, before all other steps, because that
 * takes longest and fails most often. steps_remove_regions() adds steps at the end that remove the shared memory.
 * Return 0 or -ENOMEM. */
int steps_make_regions(const Allocation *a, const Config *config, StepList *steps);
int steps_remove_regions(const Allocation *a, StepList *steps);
/*
 * Do nothing if the configuration has no Manager=, or the allocation has no NVLink partition. steps_activate() adds a
 * step that activates the allocation's NVLink partition after all other steps, when the GPUs are bound.
 * steps_deactivate() adds a step that deactivates the partition before all other steps. `again`: a guest may have the
 * GPUs. Then the partition is activated only if no process has a device of the allocation open, and the job succeeds
 * without the partition where step_may_lack() allows it. Return 0 or -ENOMEM.
 */
int steps_activate(const Allocation *a, const Config *config, bool again, StepList *steps);
int steps_deactivate(const Allocation *a, const Config *config, StepList *steps);
/* Returns true if the job still succeeds when the step fails with this negative errno. The step and the steps after it
 * are then left out, and the earlier steps stay done. False unless Step.may_lack is set. Such a failure means that a
 * process has, or may have, a device open; that Fabric Manager does not run, is not ready or does not answer; that its
 * library is missing or has another version; or that passthroughd-root does not answer. */
bool step_may_lack(const Step *s, int error);
/* Adds a STEP_CHECK_UNUSED for each device of `a`. Returns 0 or -ENOMEM. */
int steps_check_unused(const Allocation *a, StepList *steps);
bool step_lists_share_region(const StepList *a, const StepList *b);
bool step_list_has_service(const StepList *l, const char *name);
bool step_lists_share_service(const StepList *a, const StepList *b);
/*
 * Makes the steps that change the number of VFs of pf, from the number in inv to `count`: turn autoprobe off, unbind
 * and remove the existing VFs, create the new VFs, and set those attributes that the PF offers. `attributes` has
 * `count` elements, one for each VF, or is NULL. If pf has `count` VFs already, only the attributes are set. The undo
 * creates the old VFs again, with their drivers and overrides and with the attributes that the PF reported. Their IOMMU
 * group may differ, and so may a MAC or GUID that the PF did not report. Returns 0 or -ENOMEM.
 */
int steps_set_vfs(const Inventory *inv, const PciDevice *pf, unsigned count, const VfAttributes *attributes,
                  StepList **ret);

/* Returns a static text for a negative errno with which the step failed: the cause, as the rest of a sentence after a
 * colon, and for some errors a remedy. NULL for an unknown error. */
const char *step_cause(const Step *s, int error);
/* Returns a sentence with the cause and the remedy for a negative errno with which the step failed. `found`: the
 * attributes that the VF had before; NULL for a step without attributes, or when they are unknown. The caller frees the
 * sentence; NULL when out of memory. */
char *step_failure(const Step *s, int error, const VfAttributes *found);
/* Returns a sentence that names what stays changed because the undo of the step failed with a negative errno. The
 * caller frees the sentence; NULL when out of memory. */
char *step_undo_failure(const Step *s, int error);
/* As step_failure(), for a STEP_CLEAN whose command failed. status: the exit status of the command, or 128 plus the
 * number of the signal that ended it. */
char *step_failure_with_status(const Step *s, int status);
/* As step_failure(), for a step that sets attributes while the PF's eswitch is in switchdev mode. representor: the
 * network interface that represents the VF on the host; NULL when unknown. */
char *step_failure_in_switchdev(const Step *s, int error, const VfAttributes *found, const char *representor);
/* Returns a static text about what else in the kernel may block while a step that changes the number of VFs hangs. NULL
 * for other steps. */
const char *step_hang(const Step *s);
