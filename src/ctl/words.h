/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Short texts for people. The caller frees them; NULL when out of memory. */

#include "reply.h"

/* Shortens a list of CPUs as taskset(1) takes them: "0,2,4,6" becomes "0-6:2", "0,8,16" stays, an empty list "-". */
char *cpus_shorten(const char *list);

/* Returns a short name of a device, without the vendor. For a GPU or NIC, only the product: the part in brackets of
 * "GH100 [H100 SXM5 80GB]". For a device that is not in pci.ids: "NVIDIA 3D controller [10de:2335]". */
char *device_product(json_object *device);

/*
 * Describes whether the PCI path between two devices permits peer-to-peer access. path: a member of a pair of a plan.
 * Returns, for example, "peer-to-peer redirected by ACS at 0000:12:00.0 (SV RR CR UF), 0000:12:01.0 (SV RR CR UF); ATS
 * of 0000:14:00.0 off; ATS of 0000:13:00.0 none". brief: without "peer-to-peer" and the ACS bits, and only with ATS of
 * the first device, the requester.
 */
char *peer_path_text(json_object *path, bool brief);
