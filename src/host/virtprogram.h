/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

/*
 * Starts passthroughd-libvirt with input as standard input, output as standard output, an empty environment, no signal
 * blocked or ignored, and no other descriptors but standard error. argument: NULL for none. Returns 0 or a negative
 * errno.
 */
int virt_program_start(const char *argument, int input, int output, pid_t *ret);
