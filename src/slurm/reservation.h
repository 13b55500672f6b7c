/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The allocation of a job, as the plugin makes, checks and releases it over D-Bus. */

#include "attempt.h"
#include "controller.h"
#include "request.h"

/* The size of a name: "slurm-12" is the allocation of job 12. */
#define RESERVATION_NAME_MAX 32
void reservation_name(uint32_t id, char buf[static RESERVATION_NAME_MAX]);

/* Returns true when the allocation of the job has CPUs and memory: then there is a domain document. */
bool reservation_has_guest(const SlurmJob *job);

/*
 * Allocates what the job requests, and waits until the devices are prepared. uid: the owner of the job. cpus: CPUs of
 * the job in the kernel's numbers; NULL: none. *ret_sentence as in attempt_repeat().
 */
Outcome reservation_make(const Settings *settings, const SlurmJob *job, uid_t uid, const JobRequest *request,
                         const char *cpus, char **ret_sentence);

/* Releases the allocation of a job, if the plugin made one, and waits until it is gone. OUTCOME_SHORT if it stays
 * because a guest still runs. *ret_sentence as in attempt_repeat(). */
Outcome reservation_release(const Settings *settings, uint32_t id, char **ret_sentence);

/* Returns OUTCOME_DONE while the job has an allocation, OUTCOME_SHORT if it was released. *ret_sentence as in
 * attempt_repeat(). */
Outcome reservation_check(const Settings *settings, uint32_t id, char **ret_sentence);

/* Reads the domain document, unless ret_document is NULL, and the devices as "gpu0=0000:13:00.0,ib-vf0=0000:14:00.1".
 * The caller frees both. *ret_sentence as in attempt_repeat(). */
Outcome reservation_describe(const Settings *settings, uint32_t id, char **ret_document, char **ret_devices,
                             char **ret_sentence);
