/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Room for files that nobody else sees and that goes with the process, however it ends. It is there for speed too: a
 * disk file system can take a minute to make again as many files as it has just removed.
 */

/* A directory in memory, as a descriptor; its size is limited by the kernel, to half of the memory. Negative errno
 * where the system does not allow that, which is no error. May put the process into a user namespace of its own, where
 * it is the same user. */
int scratch_open(void);
