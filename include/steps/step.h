/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What is to be done to hardware, as a list of single steps in order. What changes something has its undo, to with
 * from, or what was found, in its place; a reset has none. Decided here, done by host/executor.h. Every step says what
 * must be true afterwards, so a step whose outcome is already there is skipped and a list can be run again after a
 * crash.
 */

#include "config/config.h"
#include "ledger/allocation.h"

typedef enum StepKind {
        STEP_OVERRIDE,      /* driver_override: from, to; NULL is "not set" */
        STEP_UNBIND,        /* leave driver from; being on driver to already (may be NULL) is as good */
        STEP_BIND,          /* drivers_probe until bound to driver to; its override is set */
        STEP_AUTOPROBE,     /* sriov_drivers_autoprobe: from, to "0" or "1" */
        STEP_SAVE_VF_STATE, /* changes nothing: what VF vf of the device has is what an undo gives it again */
        STEP_REMOVE_VFS,    /* sriov_numvfs: from the count to "0"; no VF has a driver */
        STEP_NUMVFS,        /* sriov_numvfs: from "0" to the count */
        STEP_RESET,         /* reset by the kernel's way, where it has one */
        STEP_CHECK,         /* config space answers */
        STEP_ATTRIBUTES,    /* attributes of VF vf of the device, as text: from (NULL: what is found) to to */
        STEP_OFFERED,       /* the same, without those that the PF does not offer */
        STEP_IDENTITY,      /* the same, and a failure is told and costs the VF nothing else */
        STEP_RESTORE,       /* as STEP_ATTRIBUTES; a VF that does not get back what it had is condemned */
        STEP_CLEAN,         /* the command to, once for all devices of the pool from in this list */
        STEP_STOP_SERVICE,  /* the systemd unit to, when it is active; device is one that it may hold */
        STEP_START_SERVICE, /* the same unit again, when this list or an earlier one stopped it */
        STEP_CHECK_IDLE,    /* nobody uses the device, which is on the host's driver from */
        STEP_MAKE_REGION,   /* memory to share is there, whole and on its node, for the group to */
        STEP_REMOVE_REGION, /* it is not there any more, and what was in it is gone */
        _STEP_KIND_MAX,
} StepKind;

#define STEP_VF_UNKNOWN (~0U)

typedef struct Step {
        StepKind kind;
        PciAddress device;
        char *from, *to;
        /*
         * Of STEP_SAVE_VF_STATE and those that give attributes device is the PF, vf the index of its VF, or
         * STEP_VF_UNKNOWN, which fails, and target that VF, of STEP_RESTORE. Of STEP_CHECK_IDLE vf is 1 when device is
         * a VF.
         */
        unsigned vf;
        PciAddress target;
        bool left_out; /* not done after all, as turned out when the job began */
        Region region; /* of STEP_MAKE_REGION and STEP_REMOVE_REGION, which have no device */
} Step;

static inline bool step_gives_attributes(const Step *s) {
        return s->kind == STEP_ATTRIBUTES || s->kind == STEP_OFFERED || s->kind == STEP_IDENTITY ||
               s->kind == STEP_RESTORE;
}

/* What cannot be handed on when it fails. */
static inline PciAddress step_failed_device(const Step *s) {
        return s->kind == STEP_RESTORE ? s->target : s->device;
}

typedef struct StepList {
        Step *steps;
        size_t n;
        bool gone_is_done; /* for a device that is not there any more nothing is left to do */
        bool tells_found;  /* before the first write it is told what the VFs have and which services are to be stopped,
                              and waited until that is on disk */
        unsigned timeout_sec; /* of its job: what stopping services and starting them may take is a part of it */
} StepList;

StepList *step_list_new(void);
StepList *step_list_free(StepList *l);
DEFINE_CLEANUP(StepList *, step_list_free)
int step_list_add(StepList *l, StepKind kind, PciAddress device, const char *from, const char *to);
void step_list_remove(StepList *l, size_t i);
/* Copies of the steps first to end - 1 of from. */
int step_list_append(StepList *l, const StepList *from, size_t first, size_t end);
/* Appends the devices of its steps; the array is sorted then, each in it once. */
int step_list_devices(const StepList *l, PciAddress **devices, size_t *n);
/* Frees *l and puts by, made from its steps, in its place: what is said of all of *l holds for by too. */
void step_list_replace(StepList **l, StepList *by);

/* Those that give attributes: no step when there are none. */
int step_list_add_attributes(StepList *l, StepKind kind, PciAddress pf, unsigned vf, const VfAttributes *to);

/* Of STEP_OFFERED: now that it is known what the VF has, nothing else is to be given. 0 or -ENOMEM. */
int step_keep_offered(Step *s, const VfAttributes *found);

/* A phrase for people: "unbind 0000:82:00.0 from nvidia". Caller frees; NULL when out of memory. */
char *step_describe(const Step *s);

/*
 * All devices of an allocation from what inv says they are to its VFIO driver: override all, unbind all, give VFs their
 * attributes, then bind all. The VFs of a running domain keep what they have.
 */
int steps_prepare(const Allocation *a, const Inventory *inv, StepList **ret);
/*
 * The way back from what inv says they are to prior driver and override. scrub: first what a guest may have had is
 * reset and looked at; a device that fails there is condemned, it stays where it is and the others go on. A device that
 * is on a driver of the host is back already, whichever that is. Devices that are gone, or have another card at their
 * address, are left out, also when they go meanwhile. AFTER_RELEASE_KEEP: those that are
 * all on the VFIO driver stay there.
 */
int steps_release(const Allocation *a, const Inventory *inv, AfterRelease after, bool scrub, StepList **ret);
/*
 * The services that the configuration names for the pools of devices that *steps, of steps_prepare(), takes from the
 * host are stopped first and started in reverse order at the end; in between it is looked whether the devices are free.
 */
int steps_around_services(const Allocation *a, const Config *config, StepList **steps);
/*
 * In *steps, of steps_release(): devices that were looked at and whose pool has a command for that are cleaned before
 * anything else is done with them. One that cannot be is condemned.
 */
int steps_clean(const Allocation *a, const Config *config, StepList **steps);
bool step_is_of_service(const Step *s);
/*
 * In *steps: what the allocation shares is made before all else, which may take longest and is the likeliest to fail;
 * and at the end of steps it is removed.
 */
int steps_make_regions(const Allocation *a, const Config *config, StepList **steps);
int steps_remove_regions(const Allocation *a, StepList *steps);
bool step_is_of_region(const Step *s);
/* It is about its device, not about a service or memory. */
bool step_has_device(const Step *s);
bool step_lists_share_region(const StepList *a, const StepList *b);
bool step_list_has_service(const StepList *l, const char *name);
bool step_lists_share_service(const StepList *a, const StepList *b);
/*
 * From the number of VFs that inv says pf has to count: autoprobe off, those that are there off their drivers and away,
 * then the others, each with its attributes as far as the PF offers them (count of them, or NULL). Where it
 * has just so many, only these. Undone, the VFs are made again with the drivers and overrides that they had; what the
 * hardware or others gave them (IOMMU group, MAC, GUID) may be another.
 */
int steps_set_vfs(const Inventory *inv, const PciDevice *pf, unsigned count, const VfAttributes *attributes,
                  StepList **ret);

/*
 * Why a step failed with a negative errno, and what to do: a sentence. found: what a VF had that was to be given
 * attributes, NULL for other steps. Caller frees; NULL when out of memory.
 */
char *step_failure(const Step *s, int error, const VfAttributes *found);
/* The same of STEP_CLEAN, whose command ended with status: 128 and the number of a signal, or less. */
char *step_failure_with_status(const Step *s, int status);
/* The same of a step that gives attributes where the PF's eswitch is in switchdev mode. representor: the VF's interface
 * on it, NULL when not known. */
char *step_failure_in_switchdev(const Step *s, int error, const VfAttributes *found, const char *representor);
/* What else in the kernel waits while a step hangs: a sentence, NULL when nothing but its device does. Static. */
const char *step_hang(const Step *s);
