/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The count and log of writes, and the faults. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attr.h"
#include "driver.h"
#include "fault.h"
#include "util/tree.h"

enum {
        TICK_MSEC = 5,
        JITTER_MSEC = 20
};

struct Fault {
        FaultType type;
        unsigned long at; /* number of the write, from 1; or FAULT_AT_EACH; or 0: the first write to place */
        char *place;      /* "NAME@ADDRESS": a write to file NAME for that device; or NULL */
        bool used;        /* a write has matched */
        int number;       /* errno or milliseconds */
        char *value;      /* the value to write instead */
};

/* A lock of the kernel, which one write at a time can hold. */
struct HeldLock {
        const void *what; /* the root: numbers of VFs; a bridge: resets below it; a driver: its unbinds */
        const Node *file; /* the file of the write */
};

struct LoggedWrite {
        char *path, *value;
        size_t size;
        int result;
        bool done;
        bool orphan; /* the log was cleared during the write, so the writer frees the entry */
};

/* log */

static LoggedWrite *log_begin(Sim *sim, const Node *file, const char *data, size_t size) {
        LoggedWrite *w = xrealloc(NULL, 1, sizeof(LoggedWrite));

        *w = (LoggedWrite) { .path = node_path(file), .value = xrealloc(NULL, size + 1, 1), .size = size };
        memcpy(w->value, data, size);
        sim->log = xrealloc(sim->log, sim->n_log + 1, sizeof(LoggedWrite *));
        return sim->log[sim->n_log++] = w;
}

static void log_free(LoggedWrite *w) {
        free(w->path);
        free(w->value);
        free(w);
}

static void log_print(const LoggedWrite *w, size_t number, FILE *f) {
        fprintf(f, "%zu %s ", number, w->path);
        tree_escape(f, w->value, w->size);
        fprintf(f, " -> %s\n", !w->done ? "PENDING" : w->result < 0 ? strerrorname_np(-w->result) : "OK");
}

void log_dump(const Sim *sim, FILE *f) {
        for (size_t i = 0; i < sim->n_log; i++)
                log_print(sim->log[i], i + 1, f);
}

static int log_end(Sim *sim, LoggedWrite *w, size_t number, int result) {
        w->result = result;
        w->done = true;
        if (sim->log_file) {
                log_print(w, number, sim->log_file);
                fflush(sim->log_file);
        }
        if (w->orphan)
                log_free(w);
        return result;
}

/* faults */

static void kill_writer(const Writer *writer) {
        if (writer->pid > 0) /* 0: in another PID namespace */
                (void) kill(writer->pid, SIGKILL);
}

void fault_add(Sim *sim, FaultType type, unsigned long at, const char *place, int number, const char *value) {
        sim->faults = xrealloc(sim->faults, sim->n_faults + 1, sizeof(Fault));
        sim->faults[sim->n_faults++] = (Fault) { .type = type,
                                                 .at = at,
                                                 .place = place ? xstrdup(place) : NULL,
                                                 .number = number,
                                                 .value = value ? xstrdup(value) : NULL };
}

void faults_reset(Sim *sim) {
        for (size_t i = 0; i < sim->n_faults; i++) {
                free(sim->faults[i].value);
                free(sim->faults[i].place);
        }
        for (size_t i = 0; i < sim->n_log; i++)
                if (sim->log[i]->done)
                        log_free(sim->log[i]);
                else
                        sim->log[i]->orphan = true;
        sim->n_faults = sim->n_log = 0;
        sim->jitter_msec = sim->jitter ? JITTER_MSEC : 0;
        sim->jitter_seed = sim->jitter ? (unsigned) strtoul(sim->jitter, NULL, 10) : 0;
}

static long long now_msec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Waits for the milliseconds, or if negative for a release. Returns 0, or -EINTR. */
static int wait_for(Sim *sim, const Writer *writer, int msec, bool killable) {
        const struct timespec tick = { .tv_nsec = TICK_MSEC * 1000000L };
        long long end = now_msec() + msec;
        unsigned long releases = sim->releases;

        while (msec < 0 ? sim->releases == releases : now_msec() < end) {
                WriterState state = writer->state(writer->userdata);

                if (state == WRITER_SHUTDOWN || (state == WRITER_INTERRUPTED && killable))
                        return -EINTR;
                pthread_mutex_unlock(&sim->lock);
                (void) nanosleep(&tick, NULL);
                pthread_mutex_lock(&sim->lock);
        }
        return 0;
}

/* Locks of the kernel */

/* Returns the lock that a write to the file takes, or NULL. */
static const void *lock_of(const Sim *sim, const Node *file) {
        const Driver *driver;

        if (strcmp(file->name, "sriov_numvfs") == 0)
                return sim->root;
        if (strcmp(file->name, "reset") == 0)
                return file->parent->parent;
        driver = strcmp(file->name, "unbind") == 0 ? driver_find(sim, file->parent->name) : NULL;
        return driver && driver->serial ? driver : NULL;
}

static bool is_held(const Sim *sim, const void *what, const Node *file) {
        for (size_t i = 0; i < sim->n_locks; i++)
                if (sim->locks[i].what == what || sim->locks[i].file == file)
                        return true;
        return false;
}

/* Waits for the lock. No signal ends the wait. */
static bool wait_for_lock(Sim *sim, const Writer *writer, const void *what, const Node *file) {
        const struct timespec tick = { .tv_nsec = TICK_MSEC * 1000000L };

        while (is_held(sim, what, file)) {
                if (writer->state(writer->userdata) == WRITER_SHUTDOWN)
                        return false;
                pthread_mutex_unlock(&sim->lock);
                (void) nanosleep(&tick, NULL);
                pthread_mutex_lock(&sim->lock);
        }
        return true;
}

static void let_go(Sim *sim, const void *what) {
        for (size_t i = 0; i < sim->n_locks; i++)
                if (sim->locks[i].what == what)
                        sim->locks[i] = sim->locks[--sim->n_locks];
}

int fault_read(Sim *sim, const Writer *reader, const Node *file) {
        if (!wait_for_lock(sim, reader, file, file))
                return -EINTR;
        return sim->releases < file->hangs ? wait_for(sim, reader, -1, !file->unkillable) : 0;
}

/* Returns the delay of a write by a hash (FNV-1a): each seed gives writes to different devices another order. */
static int jitter(const Sim *sim, const Node *file, const char *data, size_t size) {
        _cleanup_free_ char *path = node_path(file);
        uint32_t hash = 2166136261U ^ sim->jitter_seed;

        for (const char *s = path; *s; s++)
                hash = (hash ^ (uint8_t) *s) * 16777619U;
        for (size_t i = 0; i < size; i++)
                hash = (hash ^ (uint8_t) data[i]) * 16777619U;
        return (int) (hash % (sim->jitter_msec + 1));
}

static int wait_as_asked(Sim *sim, const Writer *writer, const Fault *faults) {
        int r = 0;

        if (r == 0 && faults[FAULT_DELAY].at > 0)
                r = wait_for(sim, writer, faults[FAULT_DELAY].number, false);
        if (r == 0 && faults[FAULT_HANG].at > 0)
                r = wait_for(sim, writer, -1, true);
        if (r == 0 && faults[FAULT_UNKILLABLE].at > 0)
                r = wait_for(sim, writer, -1, false);
        return r;
}

static int write_as_asked(Sim *sim, const Writer *writer, const Fault *faults, Node *file, const char *data,
                          size_t size, off_t offset) {
        const char *other = faults[FAULT_REPLACE].value;
        int r = wait_as_asked(sim, writer, faults);

        if (r < 0)
                return r;
        if (faults[FAULT_KILL_BEFORE].at > 0) {
                kill_writer(writer);
                return -EINTR;
        }
        if (faults[FAULT_FAIL].at > 0)
                return -faults[FAULT_FAIL].number;
        if (faults[FAULT_SILENT].at == 0)
                r = attr_write(sim, file, other ?: data, other ? strlen(other) : size, offset);
        if (faults[FAULT_KILL_AFTER].at > 0)
                kill_writer(writer);
        return faults[FAULT_FAIL_AFTER].at > 0 ? -faults[FAULT_FAIL_AFTER].number : r;
}

/* Returns whether the fault is for this write. The file's directory or the written value names the device. */
static bool is_at(const Fault *fault, unsigned long number, const Node *file, const char *data, size_t size) {
        size_t name = strlen(file->name), address;

        if (!fault->place)
                return fault->at == number || fault->at == FAULT_AT_EACH;
        if (fault->used || strncmp(fault->place, file->name, name) != 0 || fault->place[name] != '@')
                return false;
        address = strlen(fault->place + name + 1);
        return strcmp(fault->place + name + 1, file->parent->name) == 0 ||
               (size >= address && strncmp(fault->place + name + 1, data, address) == 0);
}

/* Copies the faults of the write, because the list may be cleared while the write waits. */
static void take_faults(Sim *sim, const Node *file, const char *data, size_t size, Fault *faults) {
        for (size_t i = 0; i < sim->n_faults; i++)
                if (is_at(&sim->faults[i], sim->n_log, file, data, size)) {
                        sim->faults[i].used = true;
                        faults[sim->faults[i].type] = sim->faults[i];
                        faults[sim->faults[i].type].at = sim->n_log;
                }
}

int fault_write(Sim *sim, const Writer *writer, Node *file, const char *data, size_t size, off_t offset) {
        const void *lock = lock_of(sim, file);
        Fault faults[_FAULT_TYPE_MAX] = {};
        size_t number;
        LoggedWrite *w;
        int r = sim->jitter_msec > 0 ? wait_for(sim, writer, jitter(sim, file, data, size), true) : 0;

        if (r < 0)
                return r;
        w = log_begin(sim, file, data, size);
        number = sim->n_log;
        take_faults(sim, file, data, size, faults);
        _cleanup_free_ char *other = faults[FAULT_REPLACE].value ? xstrdup(faults[FAULT_REPLACE].value) : NULL;
        faults[FAULT_REPLACE].value = other;
        if (lock && !wait_for_lock(sim, writer, lock, file))
                return log_end(sim, w, number, -EINTR);
        if (lock) {
                sim->locks = xrealloc(sim->locks, sim->n_locks + 1, sizeof(HeldLock));
                sim->locks[sim->n_locks++] = (HeldLock) { lock, file };
        }
        r = write_as_asked(sim, writer, faults, file, data, size, offset);
        if (lock)
                let_go(sim, lock);
        return log_end(sim, w, number, r);
}
