/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The memory in the file of a region, for region.c alone. Takes as long as it takes; a signal can end it. */

#include "core/region.h"

/* All pages are there, on the region's node: looked at one by one. -EXDEV when one is elsewhere. Contents stay. */
int region_populate(int fd, const Region *r);
/* Whoever has it mapped reads zeros. whole: all pages are there, and overwritten; else none was ever given to a guest,
 * and those that are there are let go. */
int region_wipe(int fd, const Region *r, bool whole);
