/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What only drivers can tell, and may take minutes for or for ever: a child asks one device after the other. The
 * answers belong to whoever wanted the survey; whether and when the next one begins too.
 */

#include <systemd/sd-event.h>

#include "core/pciaddr.h"
#include "util/sysfs.h"

typedef struct Survey Survey;

typedef struct SurveyKind {
        const char *process; /* name of the child */
        uint32_t unknown;    /* the answer of who gave none */
        /* In the child: asks one after the other and tells each answer at once. 0 or negative errno. */
        int (*ask)(const Sysfs *fs, const PciAddress *devices, size_t n,
                   void (*tell)(size_t i, uint32_t answer, void *userdata), void *userdata);
        /* Each device once, in their order. */
        void (*answered)(void *userdata, PciAddress device, uint32_t answer);
        /* The time is over: this one and others that were to be asked after it are given up. Logs. */
        void (*late)(PciAddress device, size_t others);
        /* All are answered or given up; or NULL. The child may be there for ever. */
        void (*done)(void *userdata);
        /* The child is gone, the survey freed and its owner's pointer NULL. */
        void (*ended)(void *userdata);
} SurveyKind;

/*
 * Begins one. Takes over devices, also on failure. It is *ret, which is set to NULL when the child is gone; until then
 * there must be no second one of the kind.
 */
int survey_begin(const SurveyKind *kind, sd_event *event, const Sysfs *fs, PciAddress *devices, size_t n,
                 unsigned timeout_sec, void *userdata, Survey **ret);
/* Whether answers may still come. s may be NULL. */
bool survey_is_asking(const Survey *s);
/* Ends it at once, without a word to anybody. s may be NULL. Returns NULL. */
Survey *survey_close(Survey *s);
