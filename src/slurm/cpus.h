/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Slurm numbers cores by their place: socket after socket, and in each the cores in the order of their first CPUs.
 * Linux numbers CPUs otherwise: those of core 0 may be 0 and 112.
 */

/*
 * Translates a list of Slurm's cores, "0-3", to all CPUs of these cores, for the machine whose sys/ is below the
 * directory root. 0, -EINVAL if the machine has fewer cores, or another negative errno. The caller frees *ret.
 */
int cpus_of_slurm_cores(const char *root, const char *cores, char **ret);
