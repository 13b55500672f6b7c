/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mounts the tree as a file system. */
#pragma once

#include "sim.h"

/* Returns after a signal, when the mount is gone. In the background, the calling process exits as soon as the mount is
 * usable. */
int mount_serve(Sim *sim, const char *mountpoint, bool foreground, bool allow_other);
