/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's side of NETLINK_ROUTE, for links and VFs. */
#pragma once

#include "message.h"

/* Handles all messages of a datagram. Its writes are complete on return. */
void rtnetlink_handle(const void *data, size_t size, const Reply *reply);
