/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A private tmpfs for temporary files. The kernel frees it when the process ends, even by SIGKILL. It is also faster: a
 * disk file system can need a minute to create as many files as were just removed from it.
 */

/* Returns a descriptor of the root directory of a new tmpfs that is mounted nowhere. The kernel limits its size to half
 * of the memory. Negative errno if the system does not allow the mount; callers then use another directory. May move
 * the process into a new user namespace, in which its uid and gid stay the same. */
int scratch_open(void);
