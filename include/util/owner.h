/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Checks that only root and the user of this process can change what path leads to: each directory and link on the way,
 * and the file itself, belongs to one of them, and neither its group nor others can write to it. A sticky directory,
 * such as /tmp, may be writable: only its owner and the owner of an entry can replace the entry.
 *
 * 0. -EPERM: *ret_why, which the caller frees, names what another user can change, its owner and its mode. Otherwise a
 * negative errno, -ENOENT for a file that does not exist.
 */
int path_check_owner(const char *path, char **ret_why);
