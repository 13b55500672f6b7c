/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The writable files of sysfs: their modes, and the effect of a write. */
#pragma once

#include <sys/types.h>

#include "sim.h"

mode_t attr_mode(const Node *node); /* permission bits */
size_t attr_size(const Node *file); /* as stat() shows it */
bool node_is_sysfs(const Node *node);
int attr_write(Sim *sim, Node *file, const char *data, size_t size, off_t offset);

int parse_number(const char *s, unsigned long *ret); /* as in the kernel: any base, a newline at the end */
