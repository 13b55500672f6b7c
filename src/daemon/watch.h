/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the daemon watches: uevents, guests, and facts that only a child may read, because a driver or a device may take
 * minutes to answer. A watch notes what changed in the host state and in the table of findings.
 */

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

/* The most health probes at a time. When the children of all of them hang, no new one is started until one has
 * exited. */
#define CHECKUPS_MAX 8U

/* One run of the health probe. */
typedef struct Checkup {
        Manager *manager;
        Probe *probe;    /* NULL when not running */
        PciAddress late; /* if is_late: the device on which the child hangs */
        bool is_late;
} Checkup;

typedef struct AttributeWatch {
        Probe *probe;
        sd_event_source *links; /* rtnetlink notifications */
        bool due;               /* VFs must be read again */
        bool busy;              /* VFs were skipped because of a job */
} AttributeWatch;

/* The N of /dev/nvidiaN of a GPU that NVIDIA's driver has. */
typedef struct GpuMinor {
        PciAddress address;
        uint64_t instance; /* PciDevice.instance, which changes when a card is replugged */
        uint32_t minor;    /* or NVIDIA_MINOR_UNKNOWN */
        int memory_node;   /* the NUMA node of its memory, -1: none */
        bool asked;        /* the next probe skips the GPU */
        bool answered;     /* the last probe got an answer */
        bool suspect;      /* the driver may have lost the GPU */
} GpuMinor;

typedef struct FabricWatch {
        sd_event_source *timer; /* NULL: none, or the child runs */
        Worker worker;          /* pid is 0 while no child runs */
} FabricWatch;

typedef struct EndpointWatch {
        sd_event_source *timer;  /* for the next question, or for a late answer; NULL: nothing to ask */
        sd_event_source *answer; /* connection of a question that has no answer yet; NULL: none */
        EndpointName *asked;
        size_t n_asked;
        bool again;  /* ask again after this question */
        bool silent; /* the last question got no answer, and this was logged */
} EndpointWatch;

typedef struct Watches {
        UeventQueue *uevents;
        GuestClient *guests; /* NULL: Libvirt= is empty */
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
/* Starts to collect uevents. Call it before the first scan, so that no change is missed. A failure is only logged. */
void manager_open_uevents(Manager *m);
UeventQueue *uevent_queue_free(UeventQueue *q);
/* Handles uevents from the event loop, including those collected so far. Returns 0 or a negative errno. */
int manager_follow_uevents(Manager *m);
/* Handles the uevents that were kept while a job, which has ended now, worked on their devices. */
void manager_handle_kept_uevents(Manager *m);

/* watch-guests.c */
/* Starts to follow which guests run (AllocationStatus.domain). They are unknown until libvirt has answered. */
void manager_follow_guests(Manager *m);
/* Finds the allocations and devices of the guests again. Call it when ledger, inventory or policy changed. */
void manager_find_guests(Manager *m);
/* Has libvirt list the guests again. */
void manager_ask_guests(Manager *m);
/* Call when the daemon is ready: libvirt must now answer in time. */
void manager_expect_guests(Manager *m);

/* watch-health.c */
/* Checks the health of all devices that are not in use and have no host driver. */
void manager_check_health(Manager *m, HealthTrigger why);
/* Checks only these devices, as far as they are not in use and have no host driver. */
void manager_check_health_of(Manager *m, const PciAddress *devices, size_t n);
/* Checks the allocated VFs of the PF (NULL: of all PFs), also those that guests have. */
void manager_check_vfs_of(Manager *m, const PciAddress *pf);

/* watch-attributes.c */
/* Has a child read the attributes of allocated VFs again, once the daemon is announced. */
void manager_make_attributes_due(Manager *m);
/* Reads the VFs that were skipped because of a job, which has ended now. */
void manager_attributes_job_gone(Manager *m);
/* Calls manager_make_attributes_due() when rtnetlink reports a change on a PF with allocated VFs. */
void manager_follow_links(Manager *m);

/* watch-gpus.c */
/* Reads the device minors of new NVIDIA GPUs in a child. The daemon need not be announced yet. */
void manager_probe_gpus(Manager *m);
/* Asks about all GPUs again. */
void manager_probe_gpus_again(Manager *m);

/* watch-fabric.c */
/* Follows the Fabric Manager of Manager=, if the configuration has one: its restarts, the partitions of allocations,
 * and GPUs with failed NVLinks. */
void manager_follow_fabric(Manager *m);
void fabric_watch_done(FabricWatch *w);

/* watch-endpoints.c */
/* Follows the endpoints of the configuration. Endpoints of the former configuration keep their states. */
void manager_follow_endpoints(Manager *m);
/* Checks all endpoints now. */
void manager_check_endpoints(Manager *m);
void endpoint_watch_done(EndpointWatch *w);
