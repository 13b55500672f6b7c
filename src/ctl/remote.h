/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* --host: runs passthroughctl on another node, over SSH. */

#include "options.h"

/* Runs the verb on the node, by ssh. Files that the options name are read and written here; a file to write is left as
 * it is when the verb fails. Becomes ssh if there is no such file. Returns the exit status, or a negative errno,
 * reported. */
int remote_run(const Args *args);
