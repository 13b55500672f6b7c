/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the cores of a job from the JSON of scontrol(1): since Slurm 24.11 no function of libslurm returns them. */

#include <stddef.h>
#include <stdint.h>

/*
 * Reads from the JSON of scontrol the cores that the job has on the node, as a list of Slurm's numbers such as "0-3",
 * and the number of its CPUs there, which --mem-per-cpu counts. *ret_cores is NULL if the job has none. 0, -EBADMSG for
 * a text of another format, -E2BIG for a text with too many values, or -ENOMEM. The caller frees *ret_cores.
 */
int cores_parse(const char *json, size_t size, uint32_t id, const char *node, char **ret_cores, unsigned *ret_cpus);

/* Runs "scontrol show job --json" for the job. *ret is its output, which the caller frees. 0 or a negative errno;
 * -ENOENT: there is no scontrol; -EIO: scontrol failed. */
int scontrol_show_job(uint32_t id, char **ret, size_t *ret_size);

/*
 * Translates a list of Slurm's cores, "0-3", to all CPUs of these cores, for the machine whose sys/ is in the
 * directory `root`; "": this machine. Slurm numbers cores socket after socket, and in each socket in the order of their
 * first CPUs. Linux numbers CPUs differently: those of core 0 may be 0 and 112. 0, -EINVAL if the machine has fewer
 * cores, or another negative errno. The caller frees *ret.
 */
int cpus_of_slurm_cores(const char *root, const char *cores, char **ret);
