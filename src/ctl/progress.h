/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The last lines on a terminal while a job runs: one for each device that it works on, and one that counts the steps.
 * They are written over when something changes, and removed at the end.
 */

#include <stdbool.h>
#include <stdint.h>

#include "reply.h"

typedef struct ProgressLine {
        char *text;
        uint64_t since; /* CLOCK_MONOTONIC */
} ProgressLine;

typedef struct Progress {
        bool shows; /* standard output is a terminal that can write over lines */
        ProgressLine *lines;
        size_t n;
        size_t n_shown; /* of the lines on the terminal, with that of the steps */
        uint64_t since; /* the start */
        uint64_t drawn; /* the last progress_show() */
        uint64_t next;  /* when to call progress_show() again */
} Progress;

/* wanted: progress shall be shown on a terminal. */
Progress progress_new(bool wanted);
void progress_done(Progress *p);
/* What the job does now. devices: address and text of each device, or NULL; without devices step is shown. */
void progress_set(Progress *p, json_object *devices, const char *step);
/* Removes the lines, before something else is printed. */
void progress_end(Progress *p);
/* When to call progress_show(), CLOCK_MONOTONIC; UINT64_MAX: not at all. */
uint64_t progress_next(const Progress *p);
/* Shows the lines; a line has the time from two seconds on. done, total: steps of the job; total is 0 before the first
 * one. deadline: of the job, CLOCK_REALTIME; 0 unknown. */
void progress_show(Progress *p, uint32_t done, uint32_t total, uint64_t deadline);

/* ", until 17:55:10 at most"; "" when the deadline is 0. */
#define PROGRESS_TIME_MAX 48
const char *progress_until(uint64_t deadline, char buf[static PROGRESS_TIME_MAX]);
