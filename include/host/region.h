/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared memory regions of guests. A region is a file in dev/shm, where QEMU opens it for libvirt's <shmem>. A region
 * of hugepages is a file in a hugetlbfs, with a symbolic link to it in dev/shm. The daemon accepts a file as a region
 * when it has the region's name, is a regular file with one link, belongs to the daemon's user and is empty or has the
 * region's size. No other user can create such a file.
 *
 * region_make() and region_remove() allocate or free all memory of a region, which takes long. So they must run in the
 * child process of a job.
 */

#include "ledger/region.h"
#include "util/sysfs.h"

/*
 * Creates the region, or completes it after a crash: all of its memory is allocated on its node, and members of group
 * (a name or a number) may read and write it. The contents of an existing file are kept. A file with the region's name
 * that belongs to neither root nor the daemon's user is renamed. Returns 1 when the file was created, 0 when it
 * existed. On failure, a file that this call created is removed.
 *
 * -EEXIST: a file of that name is not a region, or has another size or a second link. -EXDEV: a page is on another
 * node. -EBUSY: the node of a page cannot be determined. -ENOSPC, -ENOMEM: not enough memory. -ENOTSUP: dev/shm is not
 * a tmpfs. -ENODEV: no hugetlbfs at dev/hugepages* has pages of this size. -ESRCH: the group does not exist. Otherwise
 * another negative errno, such as -ENOENT: there is no dev/shm.
 */
int region_make(const Sysfs *fs, const Region *r, const char *group);

/* Frees the memory of the region and removes its file. A process that still has the file open or mapped, or that opens
 * it by another hard link, reads zeros. A region that a member of its group has resized or linked is removed, too. Any
 * other file is left unchanged. 0 or a negative errno. */
int region_remove(const Sysfs *fs, const Region *r);

/* Lists the names of the regions that have a file or link in dev/shm. Files of users other than root and the
 * daemon's user are ignored. The list is empty when dev/shm does not exist. Free the list as that of list_dir_at(). */
int regions_list(const Sysfs *fs, char ***ret, size_t *ret_n);

/*
 * Checks the file of the region without touching its memory. 1: the region is complete, or a member of its group
 * altered it, which region_make() cannot repair. 0: it is missing or incomplete. -EEXIST: the file of this name is not
 * a region. Otherwise a negative errno.
 */
int region_verify(const Sysfs *fs, const Region *r);
