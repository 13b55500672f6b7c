/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The VFs of an interface in rtnetlink messages, in the layout of Linux 6.12 (net/core/rtnetlink.c). */
#pragma once

#include "message.h"
#include "node.h"

/* Puts an IFLA_VF_INFO of each VF. -EMSGSIZE: no room. */
int vfinfo_put(Message *m, const Netdev *dev);
/* Sets the attributes of one IFLA_VF_INFO. Attributes before a refused one stay set, as in the kernel. */
int vfinfo_set(const Netdev *dev, const void *data, size_t size);
