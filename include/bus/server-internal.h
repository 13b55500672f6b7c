/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files of bus/; nobody else includes it. */

#include "bus/names.h"
#include "bus/server.h"

struct Server {
        sd_bus *bus;
        const ServerCallbacks *callbacks;
        void *userdata;
        char last_caller[32]; /* unique name of who allocated last, "" nobody */
        uint32_t last_uid;
};

static inline PlanContext server_context(const Server *s) {
        return s->callbacks->context(s->userdata);
}

/* Object paths; the caller frees. */
int device_path(PciAddress address, char **ret);
int allocation_path(const char *name, char **ret);
int job_path(uint32_t id, char **ret);

/* For _cleanup_() on a NULL-terminated list of paths. */
void server_free_nodes(char ***nodes);

/* Each adds its objects (fallback vtable and enumerator) to the bus. */
int manager_object_add(Server *s);
int device_objects_add(Server *s);
int allocation_objects_add(Server *s);
int job_objects_add(Server *s);
int log_control_add(Server *s);

/* Arguments of methods of the manager. */
Verdict bus_read_address(const char *text, PciAddress *ret, Refusal *ret_refusal);
/* NULL when there is none; then *ret_reply is what came of telling the caller. */
const PciDevice *bus_find_device(sd_bus_message *call, const PlanContext *c, const char *text, int *ret_reply);

/* manager-change.c */
/* uid of the caller, as the bus vouches for it. */
int bus_sender_uid(Server *s, sd_bus_message *call, uint32_t *ret);
int bus_method_allocate(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_method_release(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_method_accept(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_method_set_virtual_functions(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_method_clear_quarantine(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_method_rescan(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_method_reload(sd_bus_message *call, void *userdata, sd_bus_error *error);
