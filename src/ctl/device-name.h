/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "reply.h"

/* The name of a device as people know it, without the vendor; of a GPU or NIC only the product: of "GH100 [H100 SXM5
 * 80GB]" the part in brackets. Of a device that pci.ids does not have: "NVIDIA 3D controller [10de:2335]". The caller
 * frees; NULL when out of memory. */
char *device_product(json_object *device);
