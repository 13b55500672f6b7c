/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Removes a file, a link, or a directory with its contents. Does not follow links. Returns 0 if name does not exist. */
int remove_at(int dir_fd, const char *name);
