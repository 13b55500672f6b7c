/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Removes whatever name is, with all below it; a link is only unlinked. What is not there is not an error. */
int remove_at(int dir_fd, const char *name);
