/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <sys/types.h>

#define VIRT_ARGUMENTS_MAX 4U

/*
 * Starts passthroughd-libvirt with `input` as standard input, `output` as standard output, an empty environment, no
 * blocked or ignored signals, and no other descriptors but standard error. arguments: the n arguments of the program,
 * at most VIRT_ARGUMENTS_MAX. Returns 0 or a negative errno.
 */
int virt_program_start(const char *const arguments[], size_t n, int input, int output, pid_t *ret);

/* Makes a reason of libvirt fit into a sentence: printable, without full stop. libvirt's text may quote any bytes of a
 * document. */
void virt_make_quotable(char *reason);
