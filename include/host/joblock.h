/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which jobs have a process: STATE/jobs/ID, a file for each, locked by the process (flock) until the kernel has really
 * let go of it, whatever became of the daemon meanwhile. The first line is the job, each other one a device that it is
 * about. Nothing is synced: a boot ends process and lock.
 */

#include "model/pciaddr.h"
#include "util/cleanup.h"

/* Files looked at in the directory. */
#define JOB_LOCKS_MAX 4096U

/* One that a process holds which is not ours. */
typedef struct JobLock {
        uint32_t id;
        int fd;    /* -1: it has let go */
        char *job; /* verb and subject */
        PciAddress *devices;
        size_t n_devices;
} JobLock;
void job_lock_done(JobLock *l);

/* Opens (and makes) the directory below state_dir. */
int job_locks_open(const char *state_dir);
/* A descriptor that holds the lock, as do those who inherit it. devices: each once. */
int job_lock_make(int dir_fd, uint32_t id, const char *job, const PciAddress *devices, size_t n);
void job_lock_remove(int dir_fd, uint32_t id);
/* Those that a process holds; files that none does are removed. */
int job_locks_find(int dir_fd, JobLock **ret, size_t *ret_n);
JobLock *job_locks_free(JobLock *locks, size_t n);
/* Whether its process has let go of it by now; then the file is removed. */
bool job_lock_is_free(int dir_fd, JobLock *l);
