/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

#define VIRT_ARGUMENTS_MAX 4U

/*
 * Starts passthroughd-libvirt with input as standard input, output as standard output, an empty environment, no blocked
 * or ignored signals, and no other descriptors but standard error. arguments: n of them. Returns 0 or a negative errno.
 */
int virt_program_start(const char *const arguments[], size_t n, int input, int output, pid_t *ret);

/*
 * Makes libvirt's reason a printable part of a sentence, without full stop. A reason may quote a document, with any
 * bytes.
 */
void virt_make_quotable(char *reason);
