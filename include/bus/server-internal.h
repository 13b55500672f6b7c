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
