/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Slurm numbers CPUs by their place: socket after socket, in each the cores, in each core its threads. Linux numbers
 * them otherwise: the second thread of core 0 may be CPU 112.
 */

/*
 * Translates a list of Slurm's numbers, "0-3", to the kernel's, for the machine whose sys/ is below the directory root.
 * 0, -EINVAL if the machine has fewer CPUs, or another negative errno. The caller frees *ret.
 */
int cpus_from_slurm(const char *root, const char *list, char **ret);
