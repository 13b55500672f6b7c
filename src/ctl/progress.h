/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The progress of a job in the last lines of a terminal: a line for each device on which the job works, and a line with
 * the number of steps. Changes overwrite the lines. At the end they are removed. */

#include <stdbool.h>
#include <stdint.h>

#include "reply.h"

typedef struct ProgressLine {
        char *text;
        uint64_t since; /* when the text appeared, in usec of CLOCK_MONOTONIC */
} ProgressLine;

typedef struct Progress {
        bool shows; /* the progress is wanted, and standard output is a terminal whose lines can be overwritten */
        ProgressLine *lines;
        size_t n;
        size_t n_shown; /* number of lines on the terminal, with the line of the steps */
        uint64_t since; /* when progress_new() was called, which counts as the start of the job; all three times are in
                           usec of CLOCK_MONOTONIC */
        uint64_t drawn; /* when progress_show() drew last */
        uint64_t next;  /* when to call progress_show() again */
} Progress;

/* Creates a Progress. It shows nothing if `wanted` is false, or unless standard output is a terminal whose lines can be
 * overwritten. */
Progress progress_new(bool wanted);
void progress_done(Progress *p);
/* Sets what the job does now. devices: an object that maps the address of each device to its step, or NULL. If there is
 * no device, the text `step` is shown instead; NULL: no text. */
void progress_set(Progress *p, json_object *devices, const char *step);
/* Removes the lines. Call it before anything else is printed. */
void progress_end(Progress *p);
/* Returns when to call progress_show() again, in usec of CLOCK_MONOTONIC. UINT64_MAX: never. */
uint64_t progress_next(const Progress *p);
/* Draws the lines; before the time of progress_next(), does nothing. A line that is at least two seconds old also shows
 * its age. done: number of steps that are done; total: number of all steps, 0 before the first begins. deadline: when
 * the daemon gives the job up, in usec of CLOCK_REALTIME; 0: unknown. */
void progress_show(Progress *p, uint32_t done, uint32_t total, uint64_t deadline);

/* Formats the deadline as ", until 17:55:10 at most"; "" for 0. Returns buf. */
#define PROGRESS_TIME_MAX 48
const char *progress_until(uint64_t deadline, char buf[static PROGRESS_TIME_MAX]);
