/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The value of --passthrough, "gpu=1,ib-vf=2", and its check against the GRES that Slurm gave the job. Pure. */

#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

typedef struct PoolCount {
        char *pool;
        uint32_t count;
} PoolCount;

typedef struct JobRequest {
        PoolCount *pools;
        size_t n_pools;
} JobRequest;

/* Parses POOL=COUNT[,POOL=COUNT...]; "gpu" alone means one. 0; -EINVAL with *ret_sentence, which the caller frees, also
 * for a text of more than 1024 bytes or one that text_is_clean() refuses; or -ENOMEM. The caller frees *ret with
 * job_request_done(). */
int job_request_parse(const char *text, JobRequest *ret, char **ret_sentence);
void job_request_done(JobRequest *q);
#define _cleanup_job_request_ _cleanup_(job_request_done)

/*
 * Checks for each pool that Slurm gave the job at least as many GRES as --passthrough requests devices. Slurm may give
 * the remaining devices to other jobs. detail: Slurm's text for this node, "vmgpu:h100(CNT:2),vmrdma(CNT:1)", or NULL.
 * 0; -EPERM with *ret_sentence, which the caller frees; or -ENOMEM.
 */
int job_request_check(const JobRequest *q, const char *detail, char **ret_sentence);
