/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The D-Bus server: objects, methods, properties, signals. For a method call, it parses the arguments, calls a callback
 * of the daemon and replies. The daemon owns all state, which the server looks up again for each call. */

#include <systemd/sd-bus.h>

#include "bus/capacity.h"

typedef struct Server Server;

/* The current properties of a job. The strings are borrowed, and valid until the next turn of the event loop. */
typedef struct JobView {
        uint32_t id;
        const char *verb;    /* JobKind.verb, such as "prepare" or "set-vfs" */
        const char *subject; /* the allocation's name, the device's address, or other text */
        const char *step;    /* description of the step that began last; "" before the first step */
        const char *message; /* a sentence: why the job failed, or other information; "" if there is none */
        unsigned steps_done, steps_total;
        uint64_t deadline; /* when all steps will be done or given up: CLOCK_REALTIME, microseconds; 0 before the job
                              begins. An undo after that can take as long again */
} JobView;

/* What a job does with one of its devices. */
typedef struct DeviceStep {
        PciAddress device;
        char *text; /* description of the step, perhaps after "undo: " or "stuck: " */
} DeviceStep;
void device_steps_free(DeviceStep *list, size_t n);

/* Statistics of all ended jobs that have this verb and this result. */
typedef struct JobTime {
        const char *verb, *result;
        uint32_t n;
        uint64_t usec; /* total time of these jobs, from their creation to their result, waits included */
} JobTime;
#define JOB_TIMES_MAX 32U

typedef struct ServerCallbacks {
        HostView (*view)(void *userdata);
        Verdict (*allocate)(void *userdata, const char *name, const Request *r, uint32_t owner, uint32_t *ret_job,
                            Refusal *ret);
        Verdict (*release)(void *userdata, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
        /* Has libvirt list the running domains again if, as far as is known, a domain runs with the allocation. Returns
         * the number of this request: libvirt has answered it when server_guests_listed() is called with this number or
         * a higher one. 0: libvirt was not asked. The member is NULL for a server without libvirt. */
        uint64_t (*ask_guests)(void *userdata, const char *name);
        /* Refuses if the allocation is ready and no guest can run with it as promised. VERDICT_NONE otherwise, also if
         * a domain already runs with the allocation, or if it does not exist. Invalidates earlier results of view(). */
        Verdict (*check_runnable)(void *userdata, const char *name, Refusal *ret);
        Verdict (*prepare)(void *userdata, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
        Verdict (*renew)(void *userdata, const char *name, uint64_t generation, uint32_t seconds, Refusal *ret);
        Verdict (*attach)(void *userdata, const char *name, uint64_t generation, const Request *r, uint32_t *ret_job,
                          Refusal *ret);
        Verdict (*detach)(void *userdata, const char *name, uint64_t generation, const char *slot, uint32_t *ret_job,
                          Refusal *ret);
        Verdict (*accept)(void *userdata, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
        Verdict (*set_virtual_functions)(void *userdata, PciAddress pf, unsigned count, uint32_t *ret_job,
                                         Refusal *ret);
        Verdict (*clear_quarantine)(void *userdata, PciAddress device, uint32_t *ret_job, Refusal *ret);
        Verdict (*rescan)(void *userdata, Refusal *ret);
        Verdict (*reload)(void *userdata, Refusal *ret);
        /* Returns the current capacity, which the server owns. NULL when nothing has changed since the last call,
         * before the daemon is announced, or when out of memory. */
        Capacity *(*measure)(void *userdata);
        bool (*find_job)(void *userdata, uint32_t id, JobView *ret);
        /* Lists what the job does now with its devices, sorted by device. Leaves out devices on which no step runs or
         * is stuck. The server frees the list with device_steps_free(). Returns 0 or a negative errno. */
        int (*list_device_steps)(void *userdata, uint32_t job, DeviceStep **ret, size_t *ret_n);
        size_t (*list_jobs)(void *userdata, uint32_t *ret_ids, size_t max);
        /* Returns the JobTimes since the start of the daemon, at most JOB_TIMES_MAX. Borrowed. */
        const JobTime *(*list_job_times)(void *userdata, size_t *ret_n);
        /* Called when server_waits_for_bus() becomes false. Not called for a server of server_new_peer(). */
        void (*bus_settled)(void *userdata);
} ServerCallbacks;

#define SERVER_JOBS_MAX 64U

/* Creates the server, and connects it to the system bus in the background, again whenever the connection is lost.
 * server_announce() then opens the private socket and requests the bus name. The event loop exits with a failure if
 * another daemon owns the name before this daemon is ready, or if the policy of the bus denies the name before that.
 * callbacks must outlive the server. */
int server_new(sd_event *event, const ServerCallbacks *callbacks, void *userdata, Server **ret);
void server_announce(Server *s);
/* Returns true while startup must wait for the bus: after server_new(), until the bus has told whether another daemon
 * owns the name; and after server_announce(), until this daemon owns the name. Each wait also ends when the connection
 * fails, and at the latest after some seconds. During the first wait the daemon changes no hardware; until the end of
 * the second wait it is not ready. */
bool server_waits_for_bus(const Server *s);
/* Creates a server for one peer on the connected socket fd, without a bus. Takes ownership of fd. The peer may call
 * every method. The event loop exits when the peer disconnects. */
int server_new_peer(sd_event *event, int fd, const ServerCallbacks *callbacks, void *userdata, Server **ret);
Server *server_free(Server *s);
DEFINE_CLEANUP(Server *, server_free)

/* Serves the calls that waited for libvirt. Call it when libvirt has answered. answered: the number of the last request
 * of ask_guests() that is answered. */
void server_guests_listed(Server *s, uint64_t answered);

/* The functions below emit signals, and log failures. On a server of server_new() they emit nothing before
 * server_announce(), and nothing on the system bus while the daemon does not own its name. */
void server_job_new(Server *s, uint32_t id);
/* Signals the properties of the job that have changed since the last signal. */
void server_job_changed(Server *s, uint32_t id);
void server_job_removed(Server *s, uint32_t id, const char *result);
void server_allocation_new(Server *s, const char *name);
/* properties: bits of allocation_note_shown(). 0: something changed that is not a property, so only the epoch grows. */
void server_allocation_changed(Server *s, const char *name, unsigned properties);
void server_allocation_removed(Server *s, const char *name);
void server_device_added(Server *s, PciAddress address);
/* properties: bits of device_snapshot_differences(). */
void server_device_changed(Server *s, PciAddress address, unsigned properties);
void server_device_removed(Server *s, PciAddress address);
/* Measures the capacity. Emits signals for each pool and NUMA node that was added or removed or whose numbers have
 * changed, for changed problems of the daemon, and at last for the epoch if it grew. Call it once in each turn of the
 * event loop in which something changed. */
void server_settle(Server *s);
