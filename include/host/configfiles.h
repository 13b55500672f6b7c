/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds and reads the configuration files, in the order of systemd. The main file is the first
 * passthroughd/passthroughd.conf of /etc, /run, /usr/local/lib and /usr/lib. The drop-ins
 * passthroughd/passthroughd.conf.d/ *.conf of all four directories follow, sorted by file name. A drop-in hides
 * drop-ins of the same name in the later directories. A masked drop-in, which is empty or a link to /dev/null, does so
 * without adding lines itself.
 */

#include "config/config.h"
#include "util/sysfs.h"

/* The most drop-ins in one directory. CONFIG_TEXT_MAX limits the bytes of all files together. */
#define CONFIG_DROPINS_MAX 256U

#define CONFIG_MAIN_FILE   "passthroughd/passthroughd.conf"
#define CONFIG_DIRECTORIES 4U
/* The directories that are searched, from the highest priority ("/etc") to the lowest ("/usr/lib"). */
extern const char *const config_directories[CONFIG_DIRECTORIES];

/*
 * Loads the configuration. root: "" or "/" for this machine, otherwise the root directory of a recorded machine, inside
 * which links are resolved. file: NULL to search as above; otherwise only file and the drop-ins FILE.d/ *.conf are
 * read, and file is relative to the working directory, not to root.
 *
 * A file or a directory of drop-ins that exists but cannot be read is added to the problems of *ret and sets
 * Config.unreadable. With `owned`, the same happens for one that a user other than root and this process's user can
 * change (util/owner.h); `root` must then be this machine. If no file exists, *ret has the defaults, no pools, and
 * n_files 0. Returns 0, -ENOMEM, or the error of opening root.
 */
int config_files_load(const char *root, const char *file, bool owned, Config **ret);
/* Logs each problem as a warning, and Config.block_reason as an error. */
void config_log_problems(const Config *c);

/*
 * Reads one configuration file below the root of fs. If fs is NULL, path is a path of this process. Returns 1 and the
 * text, which is empty for a masked file; 0 when the file does not exist; or a negative errno when the file exists but
 * cannot be read, -ENOENT for a dangling link. The caller frees *ret.
 */
int config_file_read(const Sysfs *fs, const char *path, char **ret, size_t *ret_size);
/* Lists the names of the drop-ins in a directory, sorted. *ret_n is 0 when the directory does not exist. Returns 0;
 * -E2BIG when the directory has too many files; or another negative errno. Free the list with free_names(). */
int config_dropins_list(const Sysfs *fs, const char *directory, char ***ret, size_t *ret_n);
