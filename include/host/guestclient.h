/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs passthroughd-libvirt, which is connected to libvirt, and keeps the list of running guests that it reports. The
 * process is started when libvirt's socket exists. The guests become unknown when the process ends, libvirt closes the
 * connection, or a request is not answered in time. Then the process is started again after a growing delay, or as soon
 * as libvirt creates its socket. The daemon never waits for the process.
 */

#include <systemd/sd-event.h>

#include "guest/guest-list.h"
#include "util/sysfs.h"

typedef struct GuestClient GuestClient;

/* Called when the guests or the features have changed, or have become known or unknown, and when a request was
 * answered. */
typedef void (*GuestsChanged)(void *userdata);

/* The reason of guest_client_unknown() before libvirt has first answered, and while libvirt's socket does not exist. */
#define GUEST_CLIENT_WAITS "libvirt does not run, or has not answered yet."

/*
 * Creates a client of the libvirt at uri. The socket of qemu:///system is searched for below the root of fs;
 * connections to other libvirts are tried at once. The process is started by the first guest_client_ask(), or before
 * that when the socket appears. SIGCHLD must be blocked. Returns 0 or a negative errno.
 */
int guest_client_new(sd_event *event, const Sysfs *fs, const char *uri, GuestsChanged changed, void *userdata,
                     GuestClient **ret);
GuestClient *guest_client_free(GuestClient *c);

/*
 * Requests the list of guests again, or starts the process. Returns the number of the request, at least 1, or 0 if the
 * process was not asked. guest_client_answered() is at least this number once the request is answered or the guests are
 * unknown; changed() is called then.
 */
uint64_t guest_client_ask(GuestClient *c);
uint64_t guest_client_answered(const GuestClient *c);

/*
 * From now on, the timeout for answers also applies to the first answer of a process. Do not call it early at boot:
 * libvirt's socket exists then, but systemd starts libvirt only after the daemon.
 */
void guest_client_expect(GuestClient *c);

/* Returns the guests as last known; they may be outdated while guest_client_unknown() returns a reason. */
const GuestList *guest_client_list(const GuestClient *c);
/* Returns why the guests are unknown, a sentence; NULL while they are known. */
const char *guest_client_unknown(const GuestClient *c);
/* Returns true when the guests are unknown only because libvirt does not run: no process runs, and the last reason is
 * GUEST_CLIENT_WAITS. */
bool guest_client_is_idle(const GuestClient *c);
