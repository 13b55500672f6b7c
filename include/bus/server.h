/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The D-Bus face: objects, properties, signals. Thin: it reads arguments, calls back, replies. What the objects are
 * about belongs to the callbacks' owner, and is looked up again on every call.
 */

#include <systemd/sd-bus.h>

#include "bus/changes.h"

typedef struct Server Server;

/* A job as it is now. Strings are borrowed until the next turn of the event loop. */
typedef struct JobView {
        uint32_t id;
        const char *verb;    /* "prepare", "release", "set-vfs", "bind" */
        const char *subject; /* the allocation's name, or an address */
        const char *step;    /* what it does now, a phrase; "" before the first */
        const char *message; /* why it failed, a sentence; "" while it did not */
        unsigned steps_done, steps_total;
} JobView;

typedef struct ServerCallbacks {
        HostView (*view)(void *userdata);
        Verdict (*allocate)(void *userdata, const char *name, const Request *r, uint32_t owner, uint32_t *ret_job,
                            Refusal *ret);
        Verdict (*release)(void *userdata, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
        /* VERDICT_NONE when the document of the allocation may be printed: a guest can run with it as promised, or
         * does, or it is not ready. The context is another one afterwards. */
        Verdict (*check_runnable)(void *userdata, const char *name, Refusal *ret);
        Verdict (*accept)(void *userdata, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
        Verdict (*set_virtual_functions)(void *userdata, PciAddress pf, unsigned count, uint32_t *ret_job,
                                         Refusal *ret);
        Verdict (*clear_quarantine)(void *userdata, PciAddress device, uint32_t *ret_job, Refusal *ret);
        Verdict (*rescan)(void *userdata, Refusal *ret);
        Verdict (*reload)(void *userdata, Refusal *ret);
        /* A JSON array, which the callee makes and the caller frees. */
        Verdict (*history)(void *userdata, PciAddress device, size_t max, char **ret, Refusal *ret_refusal);
        bool (*find_job)(void *userdata, uint32_t id, JobView *ret);
        size_t (*list_jobs)(void *userdata, uint32_t *ret_ids, size_t max);
} ServerCallbacks;

#define SERVER_JOBS_MAX 64U

/* Connects to the system bus and adds the objects; server_announce() takes the name. callbacks must outlive the server.
 */
int server_new(sd_event *event, const ServerCallbacks *callbacks, void *userdata, Server **ret);
int server_announce(Server *s);
/* The same for one caller at the other end of a connected socket, fd, which it takes over: without a bus and without a
 * name. The caller may call everything; when it is gone the loop ends. */
int server_new_peer(sd_event *event, int fd, const ServerCallbacks *callbacks, void *userdata, Server **ret);
Server *server_free(Server *s);
DEFINE_CLEANUP(Server *, server_free)

/* Signals. Before server_announce() they go nowhere. Failures are logged here. */
void server_job_new(Server *s, uint32_t id);
void server_job_changed(Server *s, uint32_t id);
void server_job_removed(Server *s, uint32_t id, const char *result);
void server_allocation_new(Server *s, const char *name);
void server_allocation_changed(Server *s, const char *name);
void server_allocation_removed(Server *s, const char *name);
void server_device_added(Server *s, PciAddress address);
/* properties: bits of device_snapshot_differences(). */
void server_device_changed(Server *s, PciAddress address, unsigned properties);
void server_device_removed(Server *s, PciAddress address);
