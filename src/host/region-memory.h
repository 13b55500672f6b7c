/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Allocates and frees the memory of a region's file, for region.c. A call takes seconds for a large region; a signal
 * can interrupt it.
 *
 * Members of SharedMemoryGroup= may have the file open and may change its size at any moment. These functions therefore
 * never read or write through a mapping: an access beyond the end of the file raises SIGBUS.
 */

#include "ledger/region.h"

/* Allocates all pages and checks the node of each. Existing contents are kept. -EXDEV: a page is on another node.
 * -EBUSY: the node of a page cannot be determined. -EEXIST: the file was shortened during the call. Otherwise 0 or
 * another negative errno. */
int region_populate(int fd, const Region *r);
/* Frees all pages of the file. The file keeps its size, and its mappings read zeros. */
int region_clear(int fd);
