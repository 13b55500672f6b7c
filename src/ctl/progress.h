/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The progress of a job in the last lines of a terminal: one line for each device on which the job works, and one with
 * the number of steps. They are overwritten when something changes, and removed at the end.
 */

#include <stdbool.h>
#include <stdint.h>

#include "reply.h"

typedef struct ProgressLine {
        char *text;
        uint64_t since; /* CLOCK_MONOTONIC */
} ProgressLine;

typedef struct Progress {
        bool shows; /* standard output is a terminal on which lines can be overwritten */
        ProgressLine *lines;
        size_t n;
        size_t n_shown; /* number of lines on the terminal, including that of the steps */
        uint64_t since; /* start of the job */
        uint64_t drawn; /* time of the last progress_show() */
        uint64_t next;  /* when to call progress_show() again */
} Progress;

/* Creates a Progress. wanted: show progress if standard output is a terminal. */
Progress progress_new(bool wanted);
void progress_done(Progress *p);
/* Sets what the job does now. devices: address and text of each device, or NULL; without devices, step is shown. */
void progress_set(Progress *p, json_object *devices, const char *step);
/* Removes the lines; call it before other output. */
void progress_end(Progress *p);
/* Returns when to call progress_show(): CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t progress_next(const Progress *p);
/* Shows the lines. After two seconds a line also shows its time. done, total: steps of the job; total is 0 before the
 * first one. deadline: of the job, CLOCK_REALTIME; 0 unknown. */
void progress_show(Progress *p, uint32_t done, uint32_t total, uint64_t deadline);

/* Formats ", until 17:55:10 at most"; "" when the deadline is 0. */
#define PROGRESS_TIME_MAX 48
const char *progress_until(uint64_t deadline, char buf[static PROGRESS_TIME_MAX]);
