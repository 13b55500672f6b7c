/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Asks the bus who opened a connection: org.freedesktop.DBus.GetConnectionCredentials, D-Bus Specification. */

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

typedef struct Credentials {
        uint32_t uid;
        uint32_t pid;   /* 0: the bus does not tell */
        bool is_member; /* the process had the group as its own or as a supplementary one when it connected */
} Credentials;

/* The bus must answer within this time. */
#define CREDENTIALS_TIMEOUT_SEC 10U

/* Asks about the connection with the unique name. Does not wait: the handler gets the answer. */
int credentials_query(sd_bus *bus, const char *name, sd_bus_message_handler_t handler, void *userdata,
                      sd_bus_slot **ret);
/* Reads the answer. -ESRCH: the connection is gone. -ETIMEDOUT: the bus did not answer. -ENODATA: the bus does not tell
 * the uid. group: GID_NONE when no group counts. */
int credentials_read(sd_bus_message *answer, gid_t group, Credentials *ret);

#define GID_NONE ((gid_t) (-1))
