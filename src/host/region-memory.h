/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The memory in the file of a region, for region.c alone. Takes seconds for a large region; a signal can end it.
 *
 * Members of SharedMemoryGroup= may have the file open and change its size at any moment. So nothing here reads or
 * writes through a mapping: beyond the end of the file that would be a SIGBUS.
 */

#include "ledger/region.h"

/* Allocates all pages, and checks the node of each. The contents stay. -EXDEV: a page is on another node; -EBUSY: its
 * node cannot be found out; -EEXIST: the file became shorter meanwhile. */
int region_populate(int fd, const Region *r);
/* Frees all pages of the file, which keeps its size; its mappings read zeros. */
int region_clear(int fd);
