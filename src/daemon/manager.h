/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The manager: connects the parts of the daemon, and runs the event loop. */

#include "util/cleanup.h"

typedef struct Manager Manager;

/* Creates the manager. Reads the configuration, the node and the ledger, and changes no hardware. Returns 0, a negative
 * errno, or EX_CONFIG when the configuration would offer hardware twice. The paths are borrowed. config_path NULL: the
 * default search (host/configfiles.h). modprobe_dir NULL: the default below sysroot (host/modprobe.h). */
int manager_new(const char *sysroot, const char *config_path, const char *state_dir, const char *modprobe_dir,
                Manager **ret);
Manager *manager_free(Manager *m);
DEFINE_CLEANUP(Manager *, manager_free)

/* Creates VFs, resumes interrupted allocations, announces the daemon, and serves until SIGTERM or SIGINT, with or
 * without a bus. Returns 0, or another value after a failure that was logged. */
int manager_run(Manager *m);
