/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A line on a terminal that shows how long a step takes already. It is the last line, and is written over. */

#include <stdbool.h>
#include <stdint.h>

typedef struct Progress {
        bool shows;      /* standard output is a terminal that can erase a line */
        bool is_shown;   /* the line is there now */
        uint64_t since;  /* of the step, CLOCK_MONOTONIC */
        uint64_t second; /* of the step that the line shows */
} Progress;

/* wanted: progress shall be shown on a terminal. The first step begins now. */
Progress progress_new(bool wanted);
/* Removes the line; a step begins. */
void progress_begin(Progress *p);
/* Removes the line, before something else is printed. */
void progress_end(Progress *p);
/* When to call progress_show() again, CLOCK_MONOTONIC; UINT64_MAX: not at all. */
uint64_t progress_next(const Progress *p);
/* Shows the line once the step takes two seconds. deadline: of the job, CLOCK_REALTIME; 0 unknown. */
void progress_show(Progress *p, uint64_t deadline);

/* ", until 17:55:10 at most"; "" when the deadline is 0. */
#define PROGRESS_TIME_MAX 48
const char *progress_until(uint64_t deadline, char buf[static PROGRESS_TIME_MAX]);
