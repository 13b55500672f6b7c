/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A probe reads facts from drivers and devices that may take minutes to answer, or never answer: a child asks one
 * device after the other. The owner of the probe keeps the answers, and decides when to start the next probe.
 */

#include <systemd/sd-event.h>

#include "model/pciaddr.h"
#include "util/sysfs.h"

typedef struct Probe Probe;

/* The size limit of an answer, so that its message is written to the pipe atomically. */
#define PROBE_ANSWER_MAX 256U

typedef struct ProbeKind {
        const char *process; /* process name of the child */
        size_t size;         /* size of an answer, at most PROBE_ANSWER_MAX */
        /* In the child: calls probe_tell() for the devices one after the other. Returns 0 or a negative errno. */
        int (*look)(const Sysfs *fs, const Probe *s, const PciAddress *devices, size_t n, void *userdata);
        /* In the parent: receives the answer of a device. The pointer may be unaligned. */
        void (*told)(PciAddress device, const void *answer, void *userdata);

        /* In the parent: devices[0] did not answer in time; the probe gives up on it and on the n - 1 devices after it.
         */
        void (*late)(const PciAddress *devices, size_t n, void *userdata);
        /* Called when no more answers will come. The child may still run. May be NULL. */
        void (*done)(void *userdata);
        /* Called when the child has exited. The probe is freed, and the owner's pointer to it is NULL. */
        void (*ended)(void *userdata);
} ProbeKind;

/*
 * Starts a probe of these devices. timeout_sec is for each answer. Takes ownership of devices, also on failure. Sets
 * *ret to the probe, and back to NULL when its child has exited; until then the owner must not start another one.
 * Returns 0 or a negative errno.
 */
int probe_begin(const ProbeKind *kind, sd_event *event, const Sysfs *fs, PciAddress *devices, size_t n,
                unsigned timeout_sec, void *userdata, Probe **ret);
/* In the child: sends the answer of devices[i] to the parent. */
void probe_tell(const Probe *s, size_t i, const void *answer);
/* Returns whether answers may still come. s may be NULL. */
bool probe_is_asking(const Probe *s);
/* Kills the child and frees the probe without a callback. s may be NULL. Returns NULL. */
Probe *probe_close(Probe *s);
