/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* --host: runs passthroughctl on another node, over SSH. */

#include "options.h"

/* Becomes ssh, which runs the verb on the node and passes its exit status on. Files that the options name are read and
 * written here. Returns only a negative errno, reported. */
int remote_run(const Args *args);
