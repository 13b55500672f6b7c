/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The model as a mounted file system. */
#pragma once

#include "sim.h"

/* Returns after a signal asked for the end and the mount is gone. In the background, the process that called ends
 * as soon as the mount can be used. */
int mount_serve(Sim *sim, const char *mountpoint, bool foreground, bool allow_other);
