/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Short texts for people. The caller frees them; NULL when out of memory. */

#include "reply.h"

/* Shortens a list of CPUs to the form of taskset(1): "0,2,4,6" becomes "0-6:2"; "0,8,16" stays; an empty list becomes
 * "-". */
char *cpus_shorten(const char *list);

/* Returns a short name of a device, without its vendor. For a GPU, another accelerator or a NIC it is the product, the
 * part in brackets of "GH100 [H100 SXM5 80GB]". For a device that pci.ids lacks, it has the vendor: "NVIDIA 3D
 * controller [10de:2335]". For a device without a name, it is "10de:2335". */
char *device_product(json_object *device);

/*
 * Describes how ACS and ATS affect peer-to-peer access between two devices: "peer-to-peer redirected by ACS at
 * 0000:12:00.0 (SV RR CR UF), 0000:12:01.0 (SV RR CR UF); ATS of 0000:14:00.0 off; ATS of 0000:13:00.0 none". path: the
 * member "path" of a pair. brief: without "peer-to-peer" and the ACS bits, and only with ATS of the first device, which
 * makes the requests.
 */
char *peer_path_text(json_object *path, bool brief);
