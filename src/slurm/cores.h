/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The cores of a job: since 24.11 no function of libslurm tells them, but scontrol(1) does. */

#include <stddef.h>
#include <stdint.h>

/*
 * Reads from the JSON of scontrol the cores that the job has on the node, as a list of Slurm's numbers such as "0-3",
 * and the number of its CPUs there, which --mem-per-cpu counts. *ret_cores is NULL if the job has none. 0, -EBADMSG for
 * a text of another format, or -ENOMEM. The caller frees *ret_cores.
 */
int cores_parse(const char *json, size_t size, uint32_t id, const char *node, char **ret_cores, unsigned *ret_cpus);

/* What "scontrol show job --json" prints about the job. 0 or a negative errno; -EIO: scontrol failed. The caller frees
 * *ret. */
int scontrol_show_job(uint32_t id, char **ret, size_t *ret_size);

/*
 * Slurm numbers cores by their place: socket after socket, and in each the cores in the order of their first CPUs.
 * Linux numbers CPUs otherwise: those of core 0 may be 0 and 112. Translates a list of Slurm's cores, "0-3", to all
 * CPUs of these cores, for the machine whose sys/ is below the directory root. 0, -EINVAL if the machine has fewer
 * cores, or another negative errno. The caller frees *ret.
 */
int cpus_of_slurm_cores(const char *root, const char *cores, char **ret);
