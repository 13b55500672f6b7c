/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a power cut leaves of the state directory: what was synced, and nothing else. A file system may keep more, but
 * does not have to.
 *
 * After a successful fsync() of a file, $NODE_TMP/disk/files/INODE is a link to it; the daemon never changes a file
 * that it has synced. After one of a directory, $NODE_TMP/disk/directories/INODE has its entries, "INODE NAME" each.
 * Without the directory $NODE_TMP/disk nothing is noted.
 */
void disk_note(int fd);
