/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the daemon watches: uevents, guests, endpoints, and facts that only a child may read, because a driver or a
 * device may take minutes to answer. A watch writes what has changed to the host state, and notes it. */

#include <systemd/sd-event.h>

#include "host/endpoints.h"
#include "host/guestclient.h"
#include "host/nvidia.h"
#include "jobs-worker.h"
#include "model/device-status.h"
#include "model/health.h"
#include "steps/step.h"
#include "watch-probe.h"

typedef struct Manager Manager;
typedef struct Job Job;
typedef struct UeventQueue UeventQueue;

/* The most health probes whose child runs. One of them asks at a time; the others were given up, and their child hangs.
 * If all children hang, no probe is started until one of them has exited. */
#define CHECKUPS_MAX 8U

/* One health probe. */
typedef struct Checkup {
        Manager *manager;
        Probe *probe;    /* NULL when not running */
        PciAddress late; /* only with is_late: the device at which the child hangs */
        bool is_late;
} Checkup;

typedef struct AttributeWatch {
        Probe *probe;
        sd_event_source *links; /* notifications of rtnetlink */
        bool due;               /* the VFs must be read again */
        bool busy;              /* some VFs were skipped, because a job worked on them */
} AttributeWatch;

/* What is known of a GPU on NVIDIA's driver, mainly N, the minor number of its device node /dev/nvidiaN. */
typedef struct GpuMinor {
        PciAddress address;
        uint64_t instance; /* PciDevice.instance, which changes when a card is replugged */
        uint32_t minor;    /* N; NVIDIA_MINOR_UNKNOWN until it was read */
        int memory_node;   /* the NUMA node of the GPU's memory; -1: none */
        bool asked;        /* a probe asks the GPU or has asked it, so the next probe need not */
        bool answered;     /* the GPU has answered the last probe */
        bool suspect;      /* the driver may have lost the GPU */
} GpuMinor;

typedef struct FabricWatch {
        sd_event_source *timer; /* for the next question; NULL: none is due, or the child runs */
        Worker worker;          /* pid is 0 while no child runs */
} FabricWatch;

typedef struct EndpointWatch {
        sd_event_source *timer;  /* fires for the next question, or if the answer is late; NULL: no question is due */
        sd_event_source *answer; /* the connection on which an answer is due; NULL: none */
        EndpointName *asked;
        size_t n_asked;
        bool again;  /* ask again when this question is answered */
        bool silent; /* the last question was not answered, and that was logged */
} EndpointWatch;

typedef struct Watches {
        UeventQueue *uevents;
        GuestClient *guests; /* NULL: no guests are followed: Libvirt= is empty, or the client could not be created */
        AttributeWatch attributes;
        Probe *gpu_probe;
        GpuMinor *gpus;
        size_t n_gpus;
        sd_event_source *shm; /* op-allocation.c: inotify on dev/shm */
        Checkup checkups[CHECKUPS_MAX];
        FabricWatch fabric;
        EndpointWatch endpoints;
} Watches;

/* watch-uevents.c */
/* Starts to collect uevents. Call it before the first scan, so that no change is missed. A failure is logged. */
void manager_open_uevents(Manager *m);
UeventQueue *uevent_queue_free(UeventQueue *q);
/* Has the event loop handle uevents, first those collected so far. Returns 0 or a negative errno. */
int manager_follow_uevents(Manager *m);
/* Has the event loop handle the uevents that were kept while a job or an orphan worked on their devices. Call it when a
 * process of a job, or an orphan, has exited. */
void manager_handle_kept_uevents(Manager *m);

/* watch-guests.c */
/* Starts to follow which guests run (AllocationStatus.domain). Until libvirt has answered, that is unknown. */
void manager_follow_guests(Manager *m);
/* Finds again which allocations and devices the known guests have. Call it when the guests, or the devices on the node,
 * may have changed. */
void manager_find_guests(Manager *m);
/* Has libvirt list the running guests again. */
void manager_ask_guests(Manager *m);
/* Call it when the daemon is announced. From then on a libvirt that does not answer in time is reported. */
void manager_expect_guests(Manager *m);

/* watch-health.c */
/* Checks the health of the devices that a pool offers and that are neither in use nor bound to a host driver, of
 * devices that were found unhealthy, and of allocated VFs. */
void manager_check_health(Manager *m, HealthTrigger why);
/* Checks the health of these devices, except those that manager_check_health() would not check. */
void manager_check_health_of(Manager *m, const PciAddress *devices, size_t n);
/* Checks the health of the allocated VFs of the PF, also of those that guests have. pf NULL: of all PFs. */
void manager_check_vfs_of(Manager *m, const PciAddress *pf);

/* watch-attributes.c */
/* Has a child read the attributes of allocated VFs again, if the daemon is announced. */
void manager_make_attributes_due(Manager *m);
/* Has the attributes read again if VFs were skipped because a job worked on them. Call it when a job has ended. */
void manager_attributes_job_gone(Manager *m);
/* From now on, whenever rtnetlink reports a change of a PF with allocated VFs, reads the attributes of allocated VFs
 * again and checks the health of the VFs of this PF. */
void manager_follow_links(Manager *m);

/* watch-gpus.c */
/* Has a child ask about the GPUs that are new or in doubt. Also works before the daemon is announced. */
void manager_probe_gpus(Manager *m);
/* Has a child ask about all GPUs again. */
void manager_probe_gpus_again(Manager *m);

/* watch-fabric.c */
/* Follows the Fabric Manager that Manager= names, if any: its restarts, the partitions of allocations, and GPUs with
 * failed NVLinks. */
void manager_follow_fabric(Manager *m);
void fabric_watch_done(FabricWatch *w);

/* watch-endpoints.c */
/* Follows the endpoints of the configuration. An endpoint that the former configuration had too keeps its state. */
void manager_follow_endpoints(Manager *m);
/* Checks all endpoints now, or if a question is unanswered, right after its answer. */
void manager_check_endpoints(Manager *m);
void endpoint_watch_done(EndpointWatch *w);
