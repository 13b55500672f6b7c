/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's end of NETLINK_ROUTE, as far as links and VFs go. */
#pragma once

#include "message.h"

/* All messages of one datagram. What is written is written when this returns. */
void rtnetlink_handle(const void *data, size_t size, const Reply *reply);
