/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which files make the configuration, and reading them. As systemd does it: the first passthroughd/passthroughd.conf of
 * /etc, /run, /usr/local/lib and /usr/lib, then the drop-ins passthroughd/passthroughd.conf.d/ *.conf of all four, in
 * the order of their names; a drop-in hides those of the same name in the directories after its own, and masks them
 * when it is empty or a link to /dev/null.
 */

#include "core/config.h"

/* Files in one drop-in directory; all files together have at most CONFIG_TEXT_MAX bytes. */
#define CONFIG_DROPINS_MAX 256U

/*
 * root: "" or "/" for this machine, else the directory of a recorded one, out of which no link leads. file: NULL to
 * search as above; else that file, relative to the working directory and not to root, then FILE.d/ *.conf and nothing
 * else. A file that is there but cannot be read is a problem of *ret and sets its unreadable; no file at all gives the
 * defaults, no pools, and n_files 0. Fails for want of memory, or when root cannot be opened.
 */
int config_files_load(const char *root, const char *file, Config **ret);
/* A warning for each problem, an error when nothing is on offer for one. */
void config_log_problems(const Config *c);
