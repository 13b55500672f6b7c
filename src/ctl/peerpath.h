/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Text for the PCI path between two devices: whether it permits peer-to-peer access. */

#include "reply.h"

/*
 * path: the member of a pair of a plan. Returns, for example, "peer-to-peer redirected by ACS at 0000:12:00.0 (SV RR CR
 * UF), 0000:12:01.0 (SV RR CR UF); ATS of 0000:14:00.0 off; ATS of 0000:13:00.0 none". brief: without "peer-to-peer"
 * and the ACS bits, and with ATS of the first device, the requester, only. The caller frees; NULL when out of memory.
 */
char *peer_path_text(json_object *path, bool brief);
