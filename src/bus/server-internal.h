/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files of bus/; nobody else includes it. */

#include "bus/names.h"
#include "bus/server.h"
#include "caller.h"
#include "host/validator.h"

typedef struct WaitingCall WaitingCall;

/* Documents that may wait for libvirt to validate them, and those of one connection. One more is refused with
 * LimitExceeded. */
#define DOCUMENTS_WAITING_MAX    64U
#define DOCUMENTS_WAITING_OF_ONE 16U

/* A call that is answered when libvirt has validated its document. */
typedef struct WaitingDocument {
        sd_bus_message *call;
        char *document; /* with the lines of its template */
        size_t size;
} WaitingDocument;

struct Server {
        sd_bus *bus;
        const ServerCallbacks *callbacks;
        void *userdata;
        bool announced;       /* before, no signal is sent: no caller knows the sender */
        char last_caller[32]; /* the connection whose uid was asked for last, by its unique name; "" none */
        uint32_t last_uid;
        WaitingCall *waiting[CALLERS_WAITING_MAX]; /* in the order in which they came */
        size_t n_waiting;
        Validator *validator;                             /* of the oldest document; NULL: none waits */
        WaitingDocument documents[DOCUMENTS_WAITING_MAX]; /* in the order in which they came */
        size_t n_documents;
};

static inline HostView server_view(const Server *s) {
        return s->callbacks->view(s->userdata);
}

/* Object paths; the caller frees. */
int device_path(PciAddress address, char **ret);
int allocation_path(const char *name, char **ret);
int job_path(uint32_t id, char **ret);

/* For _cleanup_() on a NULL-terminated list of paths. */
static inline void server_free_nodes(char ***nodes) {
        for (char **n = *nodes; n && *n; n++)
                free(*n);
        free(*nodes);
}

/* Each adds its objects (fallback vtable and enumerator) to the bus. */
int manager_object_add(Server *s);
int device_objects_add(Server *s);
int allocation_objects_add(Server *s);
int job_objects_add(Server *s);
int log_control_add(Server *s);

/* device.c: arguments of methods of the manager */
Verdict bus_read_address(const char *text, PciAddress *ret, Refusal *ret_refusal);
/* NULL when there is none; then *ret_reply is what came of telling the caller. */
const PciDevice *bus_find_device(sd_bus_message *call, const HostView *c, const char *text, int *ret_reply);

const Allocation *bus_find_allocation(sd_bus_message *call, const HostView *c, const char *name, int *ret_reply);

/* document.c */
int bus_method_get_domain_xml(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_method_get_nccl_topology(sd_bus_message *call, void *userdata, sd_bus_error *error);
/* Forgets all documents that wait. */
void documents_done(Server *s);

/* manager-change.c: the method of all members that change something, which are root's. */
int bus_method_change(sd_bus_message *call, void *userdata, sd_bus_error *error);
/* Whether a member of the manager is one of them. */
bool bus_is_change(const char *member);
