/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Since 24.11 no function of libslurm tells the cores of a job. scontrol(1) does. */

#include <stddef.h>
#include <stdint.h>

/* What scontrol prints about the job, as JSON. 0 or a negative errno; -EIO: scontrol failed. The caller frees *ret. */
int scontrol_show_job(uint32_t id, char **ret, size_t *ret_size);
