/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every write to sysfs passes through these functions. They count and log it, and make it fail as .nodesim/control
 * asks. */
#pragma once

#include <limits.h>

#include "sim.h"

#define FAULT_AT_EACH ULONG_MAX /* at every write */

typedef enum FaultType {
        FAULT_FAIL,
        FAULT_FAIL_AFTER, /* has its effect nevertheless */
        FAULT_DELAY,
        FAULT_HANG,       /* until a release, or until a signal ends the writer */
        FAULT_UNKILLABLE, /* until a release */
        FAULT_KILL_BEFORE,
        FAULT_KILL_AFTER,
        FAULT_SILENT,  /* success without effect */
        FAULT_REPLACE, /* success with another value */
        _FAULT_TYPE_MAX,
} FaultType;

typedef enum WriterState {
        WRITER_WAITS,
        WRITER_INTERRUPTED, /* the writer got a signal */
        WRITER_SHUTDOWN,    /* the mount is ending */
} WriterState;

typedef struct Writer {
        pid_t pid;
        WriterState (*state)(void *userdata);
        void *userdata;
} Writer;

/* Writes with faults. Called with the lock held, and unlocks it while the write is delayed or hangs. */
int fault_write(Sim *sim, const Writer *writer, Node *file, const char *data, size_t size, off_t offset);
/* Delays a read likewise. */
int fault_read(Sim *sim, const Writer *reader, const Node *file);

/* at: number of the write, or FAULT_AT_EACH. With place, NAME@ADDRESS: the first write to that file for that device. */
void fault_add(Sim *sim, FaultType type, unsigned long at, const char *place, int number, const char *value);
void faults_reset(Sim *sim); /* also clears the log and the count */
void log_dump(const Sim *sim, FILE *f);
