/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VFs of an interface as rtnetlink tells and takes them, in the layout of Linux 6.12 (net/core/rtnetlink.c). */
#pragma once

#include "message.h"
#include "node.h"

/* IFLA_VF_INFO of each VF; -EMSGSIZE. */
int vfinfo_put(Message *m, const Netdev *dev);
/* The attributes in one IFLA_VF_INFO. What comes before one that is refused stays written, as it does in the kernel. */
int vfinfo_set(const Netdev *dev, const void *data, size_t size);
