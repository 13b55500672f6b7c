/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the way between two devices allows, in words for people. */

#include "ctl/reply.h"

/* path: as in a pair of a plan. "peer-to-peer redirected by ACS at 0000:12:00.0 (RR CR)". The caller frees; NULL when
 * out of memory. */
char *peer_path_text(json_object *path);
