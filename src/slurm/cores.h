/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The cores of a job in what "scontrol show job --json" prints. Pure. */

#include <stddef.h>
#include <stdint.h>

/*
 * Reads the cores that the job has on the node, as a list of Slurm's numbers such as "0-3", and the number of its CPUs
 * there, which --mem-per-cpu counts. *ret_cores is NULL if the job has none. 0, -EBADMSG for a text of another format,
 * or -ENOMEM. The caller frees *ret_cores.
 */
int cores_parse(const char *json, size_t size, uint32_t id, const char *node, char **ret_cores, unsigned *ret_cpus);
