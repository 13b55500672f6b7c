/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state directory after a power cut: synced data only. A file system may keep more, but need not.
 *
 * After a successful fsync() of a file, $NODE_TMP/disk/files/INODE is a link to it; the daemon never changes a synced
 * file. After that of a directory, $NODE_TMP/disk/directories/INODE has its entries, "INODE NAME" each. Without the
 * directory $NODE_TMP/disk nothing is noted.
 */
void disk_note(int fd);
