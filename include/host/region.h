/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Memory that guests share, as a file below dev/shm, where libvirt's <shmem> has QEMU look for it. One of hugepages is
 * a file of hugetlbfs, and a link in dev/shm leads to it. A file is taken for ours when it has our name, belongs to us,
 * and is no more than that: nobody else can make such a one.
 *
 * Making and removing it touch all of its memory, so they are for the child of a job. libnuma asks this kernel, which
 * is right here: it is this kernel's memory.
 */

#include "ledger/region.h"
#include "util/sysfs.h"

/*
 * The whole of it is there, on its node, for members of the group (its name or number) to read and write. What is there
 * of it already, after a crash or for another member, is kept. 1: it was made; 0: it was there. On failure nothing is
 * left of what was made. -EEXIST: a file of the name is not a region, or of another
 * size; one of another user is renamed. -EXDEV: memory is on another
 * node; -EBUSY: it cannot be told on which. -ENOSPC, -ENOMEM: there is not enough. -ENOTSUP: dev/shm is no tmpfs.
 * -ENODEV: no hugetlbfs with such pages. -ESRCH: no such group.
 */
int region_make(const Sysfs *fs, const Region *r, const char *group);

/* Frees the memory of the region and removes its file. A process that still has the file open or mapped, or has linked
 * it elsewhere, reads zeros. A file that is not ours is left alone. */
int region_remove(const Sysfs *fs, const Region *r);

/* Names of the regions that files of this user in dev/shm are called after: other users' files are no regions. None
 * without such a directory. Free with free_names(). */
int regions_list(const Sysfs *fs, char ***ret, size_t *ret_n);

/* 1: it is there, whole, or no more as it was made, which region_make() cannot mend. 0: it is not. -EEXIST: something
 * else is. Touches no memory. */
int region_look(const Sysfs *fs, const Region *r);
