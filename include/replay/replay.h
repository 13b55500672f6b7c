/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Recorded machines: writing one down, unpacking it, and answering for it as the daemon would, by the same objects on a
 * private connection.
 */

#include <stdio.h>

#include "util/cleanup.h"

typedef struct Replay Replay;

/*
 * Reads the node, a .tree file or a directory with sys/ and proc/ below it, with the configuration config (NULL: the
 * one recorded with it, in etc/passthroughd), and serves org.passthroughd1 on one end of a socket pair, from a child
 * process. What Allocate claims there is in memory only. On failure *ret_problem (caller frees) is a sentence.
 */
int replay_new(const char *node, const char *config, Replay **ret, char **ret_problem);
/* The other end of the pair, for sd_bus_set_fd(); the caller's from then on. */
int replay_take_fd(Replay *r);
Replay *replay_free(Replay *r);
DEFINE_CLEANUP(Replay *, replay_free)

/*
 * Makes a directory from a .tree file, in the directory top (NULL: $TMPDIR, /dev/shm or /tmp): what the daemon would
 * read of that machine. The file may be hostile. Caller removes it with tree_remove() and frees the path. On failure
 * *ret_problem (caller frees) is a sentence, or NULL for want of memory.
 */
int tree_unpack(const char *file, const char *top, char **ret_dir, char **ret_problem);
void tree_remove(const char *dir);

typedef enum SnapshotFlags {
        SNAPSHOT_IDENTITIES = 1 << 0, /* serial numbers and MAC addresses as they are, not hashed */
} SnapshotFlags;

/*
 * Records the machine below root, "/" for this one, as a .tree on out: what the daemon reads, as far as this user may.
 * Never what can block (sriov_numvfs) or wakes a device. On failure *ret_problem (caller frees) is a sentence, or NULL
 * for want of memory. Whether out could take it is not looked at: that is for who flushes it.
 */
int snapshot_write(const char *root, SnapshotFlags flags, FILE *out, char **ret_problem);
/* As above of a recorded node, a .tree file or a directory. For a process of its own: it may change the
 * user namespace. What it unpacks is gone when this returns, and however the process ends but for SIGKILL. */
int snapshot_write_node(const char *node, SnapshotFlags flags, FILE *out, char **ret_problem);
