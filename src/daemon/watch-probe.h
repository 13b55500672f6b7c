/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A probe reads facts from drivers and devices that take minutes to answer, or never answer. A child asks one device
 * after the other. The owner of the probe stores the answers, and decides when to start the next probe. */

#include <systemd/sd-event.h>

#include "model/pciaddr.h"
#include "util/sysfs.h"

typedef struct Probe Probe;

/* The most bytes of an answer. The message with it can still be written to the pipe atomically. */
#define PROBE_ANSWER_MAX 256U

typedef struct ProbeKind {
        const char *process; /* process name of the child */
        size_t size;         /* size of an answer, at most PROBE_ANSWER_MAX */
        /* Runs in the child: calls probe_tell() for one device after the other. Returns 0 or a negative errno. */
        int (*look)(const Sysfs *fs, const Probe *s, const PciAddress *devices, size_t n, void *userdata);
        /* Called in the parent with the answer of a device. answer may be unaligned. */
        void (*told)(PciAddress device, const void *answer, void *userdata);

        /* Called in the parent when devices[0] has not answered in time. The probe asks none of the n devices any
         * more. */
        void (*late)(const PciAddress *devices, size_t n, void *userdata);
        /* Called when no more answers will come, although the child may still run. May be NULL. */
        void (*done)(void *userdata);
        /* Called when the child has exited. The probe was freed, and the owner's pointer to it set to NULL. */
        void (*ended)(void *userdata);
} ProbeKind;

/* Starts a probe of these devices. timeout_sec: the limit for each answer. Takes ownership of devices, also on failure.
 * Sets *ret to the probe, and to NULL when the child has exited. While *ret is set, the owner must not start another
 * probe there. Returns 0 or a negative errno. */
int probe_begin(const ProbeKind *kind, sd_event *event, const Sysfs *fs, PciAddress *devices, size_t n,
                unsigned timeout_sec, void *userdata, Probe **ret);
/* Runs in the child: sends the answer of devices[i] to the parent. */
void probe_tell(const Probe *s, size_t i, const void *answer);
/* Returns true while answers may still come. s may be NULL. */
bool probe_is_asking(const Probe *s);
/* Kills the child and frees the probe without a callback. s may be NULL. Returns NULL. */
Probe *probe_close(Probe *s);
