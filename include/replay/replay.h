/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Recorded machines: records a machine as a .tree file, unpacks the file, and serves the D-Bus objects of the daemon
 * for the recorded machine on a private connection. Also checks whether a machine is ready for passthrough, and
 * suggests a configuration for it. Functions with ret_problem return 0 or a negative errno.
 */

#include <stdio.h>

#include "model/daemon-report.h"

typedef struct Replay Replay;

/*
 * Forks a child process that reads the recorded machine and serves org.passthroughd1 on one end of a socket pair. Only
 * Allocate changes something, in the memory of the child alone. node: a .tree file, or a directory that contains sys/
 * and may contain proc/. config: a configuration file; NULL: the recorded configuration (host/configfiles.h). On
 * failure *ret_problem (caller frees) is a sentence, or NULL when out of memory.
 */
int replay_new(const char *node, const char *config, Replay **ret, char **ret_problem);
/* Returns the caller's end of the socket pair, for sd_bus_set_fd(). The caller owns the descriptor. Call it once. */
int replay_take_fd(Replay *r);
Replay *replay_free(Replay *r);
DEFINE_CLEANUP(Replay *, replay_free)

/*
 * Unpacks a .tree file, which may be hostile, into a new directory below $TMPDIR, /dev/shm or /tmp. The directory
 * contains the files that the daemon would read on the recorded machine. The caller removes the directory with
 * tree_remove() and frees *ret_dir. On failure *ret_problem (caller frees) is a sentence, or NULL when out of memory.
 */
int tree_unpack(const char *file, char **ret_dir, char **ret_problem);
void tree_remove(const char *dir);

typedef enum SnapshotFlags {
        SNAPSHOT_IDENTITIES = 1 << 0, /* record identifiers, such as serial numbers and MAC addresses, as they are, not
                                         as hashes */
} SnapshotFlags;

/*
 * Writes a .tree file to out, with the files that the daemon reads and this user may read. Reads no file that can block
 * (sriov_numvfs), and wakes no device. node: "/" for this machine, or a recorded machine, a .tree file or a directory.
 * Unpacked files are removed afterwards, also when a signal other than SIGKILL ends the process. On failure
 * *ret_problem (caller frees) is a sentence, or NULL when out of memory. A failed write to out is not reported; the
 * caller finds it when it flushes out.
 */
int snapshot_write(const char *node, SnapshotFlags flags, FILE *out, char **ret_problem);

/*
 * Checks whether a machine is ready for passthrough (plan/check.h). node: "/" for this machine, the directory of the
 * machine that the daemon serves, or a recorded machine. daemon: the report of this machine's daemon; NULL: it was not
 * asked. config: as for replay_new(); NULL with a daemon: the configuration of this machine. *ret_json (caller frees)
 * is an object with "result", the worst of all results, and "findings", an array of objects with "check", "result",
 * "message" and "remedy" (a string or null). On failure *ret_problem (caller frees) is a sentence, or NULL when out of
 * memory.
 */
int replay_check(const char *node, const char *config, const DaemonReport *daemon, char **ret_json, char **ret_problem);

/*
 * Suggests a configuration for a machine (plan/suggest.h). node: "/" for this machine, or a recorded machine. *ret
 * (caller frees) is the text of the file. On failure *ret_problem (caller frees) is a sentence, or NULL when out of
 * memory.
 */
int replay_suggest(const char *node, char **ret, char **ret_problem);
