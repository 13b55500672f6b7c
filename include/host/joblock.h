/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Lock files of job processes: STATE/jobs/ID, one per job. A process that hangs in the kernel keeps its lock, also
 * after the daemon has exited. The processes of a job that may work on any of its devices share an flock() on its file;
 * the process of chain N has a lock of byte N of the file instead (F_OFD_SETLK). The first line of the file names the
 * job; each further line has the address of a device that the job works on and, after a space, the chain of the device
 * (Step.chain). Versions up to 0.3 wrote no chain, and the device then has none. The files are not synced to disk,
 * because a reboot ends every process and its lock.
 */

#include "model/pciaddr.h"
#include "util/cleanup.h"

/* The most files that the directory may have. */
#define JOB_LOCKS_MAX 4096U

/* A lock file whose lock is held by one or more processes. */
typedef struct JobLock {
        uint32_t id;
        int fd;    /* the file; -1: no process holds the lock any more */
        char *job; /* verb and subject, as in "allocate vm1" */
        PciAddress *devices;
        unsigned *chains; /* chain of each device; 0: none */
        size_t n_devices;
} JobLock;
void job_lock_done(JobLock *l);

/* Opens the directory "jobs" in state_dir, and creates it if it is missing. Returns a descriptor or a negative errno.
 */
int job_locks_open(const char *state_dir);
/*
 * Creates and locks the file of job id. devices must not contain duplicates; chains has the chain of each. Returns a
 * descriptor or a negative errno. The lock lasts until this process and every child that inherited the descriptor have
 * closed it.
 */
int job_lock_make(int dir_fd, uint32_t id, const char *job, const PciAddress *devices, const unsigned *chains,
                  size_t n);
/* For a process that inherited fd and works on one chain only: replaces the lock by that of the chain, and closes fd.
 * When this fails, the process keeps the lock that it has. */
void job_lock_keep_chain(int fd, unsigned chain);
/* Replaces the devices in the file of job id by these n, on which the processes that still hold the lock may work.
 * Returns 0 or a negative errno. */
int job_lock_change(int dir_fd, uint32_t id, const char *job, const PciAddress *devices, const unsigned *chains,
                    size_t n);
void job_lock_remove(int dir_fd, uint32_t id);
/* Finds the lock of job id. Returns 1 and the lock, with the devices that a process may work on, when a process holds
 * it; 0 when none does (the file is removed then) or there is no such file; or a negative errno. Free with
 * job_lock_done(). */
int job_lock_find(int dir_fd, uint32_t id, JobLock *ret);
/* Finds all locks that a process holds, and removes the lock files whose lock no process holds. Returns 0 or a negative
 * errno; -E2BIG: there are more than JOB_LOCKS_MAX files. Free with job_locks_free(). */
int job_locks_find(int dir_fd, JobLock **ret, size_t *ret_n);
JobLock *job_locks_free(JobLock *locks, size_t n);
/* Moves the devices on which a process may still work to the front. Returns the number of these devices. */
size_t job_lock_split(JobLock *l);
/* Returns true when no process holds the lock any more. Then the file is removed. */
bool job_lock_is_free(int dir_fd, JobLock *l);
