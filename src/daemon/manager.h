/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The daemon: connects its parts, and runs the event loop. */

#include "util/cleanup.h"

typedef struct Manager Manager;

/*
 * Creates the manager: reads configuration, node and ledger, and changes no hardware. Returns 0, a negative errno, or
 * EX_CONFIG when the configuration would offer hardware twice. These are borrowed: sysroot, config_path (NULL: default
 * search, see host/configfiles.h), state_dir and modprobe_dir (NULL: the default below sysroot, see host/modprobe.h).
 */
int manager_new(const char *sysroot, const char *config_path, const char *state_dir, const char *modprobe_dir,
                Manager **ret);
Manager *manager_free(Manager *m);
DEFINE_CLEANUP(Manager *, manager_free)

/*
 * Creates VFs, resumes interrupted allocations, announces the daemon, and serves until SIGTERM, with or without a bus.
 * Returns 0, else a failure that was logged.
 */
int manager_run(Manager *m);
