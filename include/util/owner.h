/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Checks that only root and the user of this process can change the file at path. The file itself and each directory
 * and link on the path must belong to one of these users, and must not be writable for its group or others. A sticky
 * directory, such as /tmp, may be writable: only its owner and the owner of an entry can replace the entry.
 *
 * Returns 0; -EPERM if another user can change or create the file: *ret_why, which the caller frees, names the file or
 * directory, its owner and its mode; or another negative errno, such as -ENOENT if there is no file.
 */
int path_check_owner(const char *path, char **ret_why);
