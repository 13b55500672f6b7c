/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the files of bus/ share. */

#include <sys/un.h>

#include "admission.h"
#include "answers.h"
#include "authorization.h"
#include "bus/names.h"
#include "bus/server.h"
#include "caller.h"
#include "connection.h"
#include "parked.h"
#include "quota.h"
#include "system-bus.h"

typedef struct Authorization Authorization;

/* The most connections at the private socket at a time. A further connection is closed. */
#define PEERS_MAX 16U

/* Properties that change during the lifetime of a job object. */
typedef enum JobProperty {
        JOB_PROPERTY_STEP,
        JOB_PROPERTY_STEPS_DONE,
        JOB_PROPERTY_STEPS_TOTAL,
        JOB_PROPERTY_DEVICE_STEPS,
        JOB_PROPERTY_DEADLINE,
        JOB_PROPERTY_MESSAGE,
        _JOB_PROPERTY_MAX,
} JobProperty;

/* A number for each property of a job, as clients last saw it: the value itself if it is a number, otherwise a digest.
 */
typedef struct ShownJob {
        uint32_t id; /* 0: this element is not used */
        uint64_t values[_JOB_PROPERTY_MAX];
} ShownJob;

/* The properties of the Manager that tell problems. */
typedef enum ProblemProperty {
        PROBLEM_PROPERTY_READ_ONLY,
        PROBLEM_PROPERTY_LIBVIRT,
        PROBLEM_PROPERTY_CONFIG,
        PROBLEM_PROPERTY_NONE_OFFERED,
        PROBLEM_PROPERTY_WITHDRAWN,
        PROBLEM_PROPERTY_ENDPOINTS,
        _PROBLEM_PROPERTY_MAX,
        _PROBLEM_PROPERTY_INVALID = -22,
} ProblemProperty;
extern const char *const problem_property_names[_PROBLEM_PROPERTY_MAX];

/* A kind of D-Bus objects, such as those of devices. The path of each object is a prefix and a label. */
typedef struct ObjectKind {
        const char *prefix, *interface;
        const sd_bus_vtable *vtable;
        const char *const *properties; /* the names of the properties that change */
        /* Returns the userdata for the getters in the vtable. NULL: there is no object with this label. */
        void *(*find)(Server *s, const char *label);
        size_t (*count)(Server *s);
        int (*path)(Server *s, size_t i, char **ret);
} ObjectKind;
#define OBJECT_KINDS 5U

/* The objects of one kind on one server. It is the userdata of their fallback vtable and of their node enumerator. */
typedef struct ObjectSet {
        Server *server;
        const ObjectKind *kind;
} ObjectSet;

struct Server {
        sd_event *event; /* not owned */
        const ServerCallbacks *callbacks;
        void *userdata;
        bool announced; /* server_announce() was called */
        gid_t readers;  /* gid of BUS_GROUP; GID_NONE: there is no such group */
        Callers callers;
        Admission admission;
        Parked parked;
        Authorization *authorizations; /* newest first */
        uint64_t n_authorizations;     /* number of ids for CancelCheckAuthorization given so far */
        Answer *answers;               /* oldest first */
        Capacity *capacity;            /* as clients see it; NULL before the first measurement */
        uint64_t epoch; /* grows with every change of a device, an allocation, a pool or a node that the daemon tells to
                           clients */
        uint64_t told_epoch;
        ShownJob jobs[SERVER_JOBS_MAX];
        uint64_t problems[_PROBLEM_PROPERTY_MAX]; /* digests of the properties, as clients last saw them */
        bool settling;
        ObjectSet objects[OBJECT_KINDS];
        Quota quota;
        Reports reports;
        Handout *handouts;         /* newest first */
        struct sockaddr_un socket; /* address of the private socket */
        sd_event_source *listening;
        SystemBus system_bus;
        Connection peers[PEERS_MAX]; /* peers at the private socket, or the only peer of server_new_peer() */
};

static inline HostView server_view(const Server *s) {
        return s->callbacks->view(s->userdata);
}

/* Encode the path of an object. The caller frees *ret. Return 0 or a negative errno. */
int device_path(PciAddress address, char **ret);
int allocation_path(const char *name, char **ret);
int job_path(uint32_t id, char **ret);
int pool_path(const char *name, char **ret);
int node_path(int id, char **ret);

extern const ObjectKind device_objects, allocation_objects, job_objects, pool_objects, node_objects;

/* Returns the server. Only for the property getters of an ObjectKind: there, the current slot of sd-bus has an
 * ObjectSet as userdata. */
static inline Server *server_of_getter(sd_bus *bus) {
        const ObjectSet *set = sd_bus_slot_get_userdata(sd_bus_get_current_slot(bus));

        return set->server;
}

/* objects.c: registers all D-Bus objects on a connection. It calls the two functions below, of manager.c and
 * logcontrol.c. */
int objects_add(sd_bus *bus, Server *s);
int manager_object_add(sd_bus *bus, Server *s);
int log_control_add(sd_bus *bus, Server *s);

/* connection.c */
/* Opens the private socket in $RUNTIME_DIRECTORY, if this is set, and accepts connections of root and of the daemon's
 * user. A failure is only logged. */
void peers_listen(Server *s);
void peers_done(Server *s);

/* device.c: parses a PCI address, an argument of a method, and refuses any other text. The device need not exist. */
Verdict bus_read_address(const char *text, PciAddress *ret, Refusal *ret_refusal);
/* Returns the device at the address `text`. NULL when the caller was sent a refusal; the method then returns *ret_reply
 * to sd-bus. */
const PciDevice *bus_find_device(sd_bus_message *call, const HostView *view, const char *text, int *ret_reply);

/* manager.c: stores the digests of the problems. Returns a bit (1 << ProblemProperty) for each property whose digest
 * differs from the stored one. */
unsigned problems_note_shown(Server *s);

/* settle.c: measures the capacity, signals its changes, and returns it. NULL before the first measurement; the daemon
 * measures nothing before the announcement. */
const Capacity *server_capacity(Server *s);

/* job.c: stores the numbers of a ShownJob. Returns a bit (1 << JobProperty) for each property to signal,
 * because its number differs from the stored one, or because it is signalled together with such a property. All
 * properties of a new job differ. Returns 0 if the job does not exist, or if s->jobs has no room for it. */
unsigned job_note_shown(Server *s, uint32_t id);
void job_forget_shown(Server *s, uint32_t id);

/* signals.c: emit signals for settle.c. properties: the result of pool_capacity_differences() or
 * node_capacity_differences(). */
void server_pool_added(Server *s, const char *name);
void server_pool_changed(Server *s, const char *name, unsigned properties);
void server_pool_removed(Server *s, const char *name);
void server_node_added(Server *s, int id);
void server_node_changed(Server *s, int id, unsigned properties);
void server_node_removed(Server *s, int id);
/* properties: the result of problems_note_shown(). */
void server_problems_changed(Server *s, unsigned properties);
void server_epoch_changed(Server *s);

/* manager.c: finds the allocation with this name. Returns NULL, and stores a refusal, if there is none. */
const Allocation *bus_find_allocation(const HostView *view, const char *name, Refusal *ret);

/* document.c: methods of the Manager */
int bus_get_domain_xml(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error);
int bus_get_nccl_topology(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error);

/* manager-change.c: serves every method that changes something. Root may call these methods, and others may when polkit
 * allows the call. */
int bus_method_change(sd_bus_message *call, void *userdata, sd_bus_error *error);
/* Returns true if bus_method_change() serves the method with this name. */
bool bus_is_change(const char *member);
