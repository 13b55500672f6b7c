/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Long replies: each is a sealed memfd. dbus-daemon reads no message of the daemon while 64 descriptors from it wait
 * for clients, so the descriptors that clients have not closed yet are counted. The daemon forgets a descriptor, and
 * its memory is freed, at the next reply or when a client disconnects.
 */

#include <systemd/sd-bus.h>

#include "bus/server.h"

/* Descriptors at once: of one caller, of all callers, and of all that have more than one. Callers are counted as in
 * answers.h. */
#define HANDOUTS_OF_ONE 8U
#define HANDOUTS_MAX    28U
#define HANDOUTS_SHARED 20U
/* Bytes at once, of all callers. A caller that has no descriptor may get a longer text. */
#define HANDOUTS_BYTES  (UINT64_C(12) << 20)

typedef struct Handout Handout;

/*
 * Replies to call with a variant that holds a descriptor for the memfd text. Takes ownership of text. 0 or negative
 * errno; -EDQUOT when the caller, or all callers, have not closed earlier descriptors.
 */
int handout_reply(Server *s, sd_bus_message *call, uint32_t uid, int text, uint64_t size);
/* Forgets all descriptors that clients have closed. */
void handouts_sweep(Server *s);
void handouts_done(Server *s);
