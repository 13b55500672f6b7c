/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The memory in the file of a region, for region.c alone. Takes as long as it takes; a signal can end it. */

#include "core/region.h"

/* All pages are there, on the region's node: looked at one by one. -EXDEV when one is elsewhere, -EBUSY when that
 * cannot be told. Contents stay. */
int region_populate(int fd, const Region *r);
/* All pages are there, and overwritten: whoever has it mapped reads zeros. */
int region_wipe(int fd, const Region *r);
/* The pages that are there are the file's no more; it reads as zeros. */
int region_let_go(int fd);
