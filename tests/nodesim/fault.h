/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every write to sysfs passes here: it is counted, logged, and goes wrong when a test asked for it through
 * .nodesim/control. */
#pragma once

#include <limits.h>

#include "sim.h"

#define FAULT_AT_EACH ULONG_MAX /* not one write, but all */

typedef enum FaultType {
        FAULT_FAIL,
        FAULT_FAIL_AFTER, /* it takes effect all the same */
        FAULT_DELAY,
        FAULT_HANG,       /* until released, or a signal ends the writer */
        FAULT_UNKILLABLE, /* until released */
        FAULT_KILL_BEFORE,
        FAULT_KILL_AFTER,
        FAULT_SILENT,  /* success without effect */
        FAULT_REPLACE, /* success, but another value is written */
        _FAULT_TYPE_MAX,
} FaultType;

typedef enum WriterState {
        WRITER_WAITS,
        WRITER_INTERRUPTED, /* a signal came for it */
        WRITER_SHUTDOWN,    /* the mount ends */
} WriterState;

typedef struct Writer {
        pid_t pid;
        WriterState (*state)(void *userdata);
        void *userdata;
} Writer;

/* With the lock held; gives it up while the write is delayed or hangs. */
int fault_write(Sim *sim, const Writer *writer, Node *file, const char *data, size_t size, off_t offset);
/* The same before a read. */
int fault_read(Sim *sim, const Writer *reader, const Node *file);

/* At write number at, at each, or at the first that place, NAME@ADDRESS, names. */
void fault_add(Sim *sim, FaultType type, unsigned long at, const char *place, int number, const char *value);
void faults_reset(Sim *sim); /* also the log and the count */
void log_dump(const Sim *sim, FILE *f);
