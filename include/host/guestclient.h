/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs passthroughd-libvirt, which is connected to libvirt, and keeps the list of running guests that it reports. The
 * process is started when libvirt's socket exists. When it ends, libvirt closes the connection or a request is not
 * answered in time, the guests are unknown, and it is started again after a growing delay, or as soon as libvirt
 * creates its socket. Nothing waits for it.
 */

#include <systemd/sd-event.h>

#include "guest/guest-list.h"
#include "guest/plug.h"
#include "util/sysfs.h"

typedef struct GuestClient GuestClient;

/* The guests, the features or whether they are known have changed. */
typedef void (*GuestsChanged)(void *userdata);

/* The reason of a client whose libvirt was not there yet. */
#define GUEST_CLIENT_WAITS "libvirt does not run."

/*
 * uri: of the libvirt. The socket of qemu:///system is looked for below the root of fs; other libvirts are connected to
 * at once. The process is started by guest_client_ask(). SIGCHLD must be blocked. Returns 0 or a negative errno.
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
 * From now on libvirt must answer in time. At boot libvirt has its socket, but systemd starts it only after the daemon.
 */
void guest_client_expect(GuestClient *c);

/* The last known guests. */
const GuestList *guest_client_list(const GuestClient *c);
/* Why the guests are unknown, a sentence; NULL while they are known. */
const char *guest_client_unknown(const GuestClient *c);

/*
 * A request that changes the devices of one domain or prints its document (guest/plug.h). It runs in a process of its
 * own, so that it delays neither the daemon nor the reports of guests.
 */
typedef struct GuestPlug GuestPlug;

typedef struct GuestPlugRequest {
        PlugAction action;
        const char *uuid;     /* of the domain */
        const char *hostdev;  /* text of one <hostdev>; NULL for PLUG_DESCRIBE */
        unsigned timeout_sec; /* PLUG_DETACH waits so long for the guest; libvirt itself gets PLUG_GRACE_SEC more */
} GuestPlugRequest;

/*
 * The end of a request. text: the document when PLUG_DESCRIBE is done, else why the result is not PLUG_DONE, printable
 * and without a full stop. It is valid only during the call. The request is already freed.
 */
typedef void (*GuestPlugEnded)(PlugResult result, const char *text, void *userdata);

/*
 * Starts a request to the libvirt at uri. Calls ended() once, at most timeout_sec + PLUG_GRACE_SEC later. A process
 * that is killed, by the timeout too, gives PLUG_UNKNOWN: libvirt may still serve the request; repeat it to know the
 * result. SIGCHLD must be blocked. Returns 0; or a negative errno, and ended() is not called.
 */
int guest_plug_start(sd_event *event, const char *uri, const GuestPlugRequest *request, GuestPlugEnded ended,
                     void *userdata, GuestPlug **ret);
/* Kills the process; ended() is not called after this. */
GuestPlug *guest_plug_free(GuestPlug *p);
