/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What only drivers can tell, and may take minutes for or for ever: a child asks one device after the other. Whoever
 * wanted the survey keeps the answers; whether and when the next one begins is theirs too.
 */

#include <systemd/sd-event.h>

#include "core/answers.h"
#include "util/sysfs.h"

typedef struct Survey Survey;

typedef struct SurveyKind {
        const char *process; /* name of the child */
        uint32_t unknown;    /* the answer of who gave none */
        /* In the child: asks one after the other and tells each answer at once. 0 or negative errno. */
        int (*ask)(const Sysfs *fs, const PciAddress *devices, size_t n,
                   void (*tell)(size_t i, uint32_t answer, void *userdata), void *userdata);
        /* Whether it is one to ask about, apart from whether it was asked. */
        bool (*wanted)(void *userdata, const PciDevice *dev);
        /* The time is over: this one and others that were to be asked after it are given up. Logs. */
        void (*late)(PciAddress device, size_t others);
        /* All are answered or given up; or NULL. The child may be there for ever. */
        void (*done)(void *userdata);
        /* The child is gone, the survey freed and its owner's pointer NULL. */
        void (*ended)(void *userdata);
} SurveyKind;

/*
 * Begins one about all devices of inv that are wanted and were not asked; from here on they count as asked. None: 0,
 * and there is none. answers get what is told, unless it was to be asked once more or forgotten meanwhile. It is *ret,
 * which is set to NULL when the child is gone; until then there must be no second one of the kind.
 */
int survey_begin(const SurveyKind *kind, sd_event *event, const Sysfs *fs, const Inventory *inv, AnswerList *answers,
                 unsigned timeout_sec, void *userdata, Survey **ret);
/* Whether answers may still come. s may be NULL. */
bool survey_is_asking(const Survey *s);
/* Ends it at once, without a word to anybody. s may be NULL. Returns NULL. */
Survey *survey_close(Survey *s);
