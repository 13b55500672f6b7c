/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Calls to slurmctld: reads jobs and nodes, and changes them. */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "util/cleanup.h"

typedef struct SlurmJob {
        uint32_t id;
        unsigned restarts; /* tells the runs of a requeued job apart */
        time_t submitted;  /* tells jobs with the same id apart: Slurm numbers jobs from 1 again after a loss of its
                              state */
        bool is_over;      /* the job does not run any more, for example because it was canceled during its prolog */
        bool can_requeue;  /* a batch job that Slurm may requeue */
        char *cores;       /* its cores on this node in Slurm's numbers, "0-3"; NULL: none */
        uint64_t memory;   /* bytes on this node; 0: Slurm does not count memory */
        char *gres;        /* its GRES on this node, as Slurm prints them: "vmgpu:h100(CNT:2)"; NULL: none */
} SlurmJob;

/*
 * Initializes libslurm. Call it before the other functions. Idempotent. Reads slurm.conf, and ends the process if
 * that fails or Slurm's plugins cannot be loaded. slurmstepd of 22.05 initializes libslurm before it runs a prolog,
 * that of 24.11 does not.
 */
void controller_init(void);

/* Reads a job. Returns 0, and the caller frees *ret with slurm_job_done(); or a negative errno with *ret_sentence,
 * which the caller frees; NULL when out of memory. */
int controller_load_job(uint32_t id, const char *node, SlurmJob *ret, char **ret_sentence);
void slurm_job_done(SlurmJob *job);
#define _cleanup_slurm_job_ _cleanup_(slurm_job_done)

/*
 * Removes the job from its nodes, unless it is over. Requeues the job if can_requeue is set; if `hold` is true, the
 * requeued job waits until its owner or an administrator releases it. Cancels the job if can_requeue is not set, or the
 * requeue fails. Puts the sentence in the job's AdminComment and, if can_requeue is not set, also shows it on the
 * terminal of an interactive job or in the output of a batch job. 0 or -EIO.
 */
int controller_refuse_job(const SlurmJob *job, bool hold, const char *sentence);

/* Sends SIGTERM to all processes of a running job. The owner sees the sentence in the job's output and in its
 * AdminComment. 0 or -EIO. */
int controller_terminate_job(uint32_t id, const char *sentence);

/* Drains a node, unless it drains already: running jobs stay, no further job is started. 0 or -EIO. */
int controller_drain(const char *node, const char *sentence);

/* Reads the Gres= that Slurm has for the node now, and the GresTypes= of slurm.conf. 0, -EIO or -ENOMEM. The caller
 * frees both, also after a failure. */
int controller_load_gres(const char *node, char **ret_gres, char **ret_types);
/* Sets the Gres= of the node, until slurmctld reads its configuration again or slurmd registers with other numbers. 0
 * or -EIO. */
int controller_set_gres(const char *node, const char *gres);

/* Returns 1 if the job or its epilog runs on the node, 0 if neither does or the job does not exist, -EIO if slurmctld
 * does not reply. */
int controller_has_job(uint32_t id, const char *node);
