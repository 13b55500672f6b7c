/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the way between two devices allows, in words for people. */

#include "reply.h"

/* path: as in a pair of a plan. "peer-to-peer redirected by ACS at 0000:12:00.0 (SV RR CR UF), 0000:12:01.0 (SV RR CR
 * UF); ATS of 0000:14:00.0 off; ATS of 0000:13:00.0 none"; brief: without what ports do, and only ATS of who asks. The
 * caller frees; NULL when out of memory. */
char *peer_path_text(json_object *path, bool brief);
