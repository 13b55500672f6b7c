/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What only drivers and devices can tell, and may take minutes for or for ever: a child asks one device after the
 * other. Whoever wanted the probe keeps the answers; whether and when the next one begins is theirs too.
 */

#include <systemd/sd-event.h>

#include "model/probecache.h"
#include "util/sysfs.h"

typedef struct Probe Probe;

/* Of one answer: told over a pipe at once, and so that none is torn. */
#define PROBE_ANSWER_MAX 256U

typedef struct ProbeKind {
        const char *process; /* name of the child */

        /* probe_begin(): each answer is a number. */

        uint32_t unknown; /* the answer of who gave none */
        /* In the child: asks one after the other and tells each answer at once. 0 or negative errno. */
        int (*ask)(const Sysfs *fs, const PciAddress *devices, size_t n,
                   void (*tell)(size_t i, uint32_t answer, void *userdata), void *userdata);
        /* Whether it is one to ask about, apart from whether it was asked. */
        bool (*wanted)(void *userdata, const PciDevice *dev);

        /* probe_look(): an answer is what the asker makes of it. */

        size_t size; /* at most PROBE_ANSWER_MAX */
        /* In the child: probe_tell() for one after the other. 0 or negative errno. */
        int (*look)(const Sysfs *fs, const Probe *s, const PciAddress *devices, size_t n, void *userdata);
        void (*told)(PciAddress device, const void *answer, void *userdata);

        /* The time is over: devices[0] does not answer; it and the others, asked after it, are given up. */
        void (*late)(const PciAddress *devices, size_t n, void *userdata);
        /* All are answered or given up; or NULL. The child may be there for ever. */
        void (*done)(void *userdata);
        /* The child is gone, the probe freed and its owner's pointer NULL. */
        void (*ended)(void *userdata);
} ProbeKind;

/*
 * Begins one about all devices of inv that are wanted and were not asked; from here on they count as asked. None: 0,
 * and there is none. answers get what is told, unless it was to be asked once more or forgotten meanwhile. It is *ret,
 * which is set to NULL when the child is gone; until then there must be no second one of the kind.
 */
int probe_begin(const ProbeKind *kind, sd_event *event, const Sysfs *fs, const Inventory *inv, ProbeCache *answers,
                unsigned timeout_sec, void *userdata, Probe **ret);
/* The same about these devices, with a timeout for each answer. Takes them over, also on failure. */
int probe_look(const ProbeKind *kind, sd_event *event, const Sysfs *fs, PciAddress *devices, size_t n,
               unsigned timeout_sec, void *userdata, Probe **ret);
/* For its child: the answer of devices[i]. */
void probe_tell(const Probe *s, size_t i, const void *answer);
/* Whether answers may still come. s may be NULL. */
bool probe_is_asking(const Probe *s);
/* Ends it at once, without a word to anybody. s may be NULL. Returns NULL. */
Probe *probe_close(Probe *s);
