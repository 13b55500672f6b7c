/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which files make the configuration, and reading them. As systemd does it: the first passthroughd/passthroughd.conf of
 * /etc, /run, /usr/local/lib and /usr/lib, then the drop-ins passthroughd/passthroughd.conf.d/ *.conf of all four, in
 * the order of their names; a drop-in hides those of the same name in the directories after its own, and masks them
 * when it is empty or a link to /dev/null.
 */

#include "config/config.h"
#include "util/sysfs.h"

/* Drop-ins in one directory; all files together have at most CONFIG_TEXT_MAX bytes. */
#define CONFIG_DROPINS_MAX 256U

#define CONFIG_MAIN_FILE   "passthroughd/passthroughd.conf"
#define CONFIG_DIRECTORIES 4U
/* "/etc" and so on. The first has the last word. */
extern const char *const config_directories[CONFIG_DIRECTORIES];

/*
 * root: "" or "/" for this machine, else the directory of a recorded one, out of which no link leads. file: NULL to
 * search as above; else that file, relative to the working directory and not to root, then FILE.d/ *.conf and nothing
 * else. A file that is there but cannot be read is a problem of *ret and sets its unreadable; no file at all gives the
 * defaults, no pools, and n_files 0. Fails for want of memory, or when root cannot be opened.
 */
int config_files_load(const char *root, const char *file, Config **ret);
/* A warning for each problem, an error when nothing is on offer for one. */
void config_log_problems(const Config *c);

/*
 * One file of it below fs (NULL: where the process sees it), for those who record or explain it: 1 with its text, that
 * of a mask is empty; 0 when it is not there; negative errno when it is there but cannot be read, -ENOENT then is a
 * link to nothing. *ret is the caller's to free.
 */
int config_file_read(const Sysfs *fs, const char *path, char **ret, size_t *ret_size);
/* Names of the drop-ins in a directory, sorted; none when it is not there. -E2BIG: too many. Free with free_names(). */
int config_dropins_list(const Sysfs *fs, const char *directory, char ***ret, size_t *ret_n);
