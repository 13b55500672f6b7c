/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's side of NETLINK_GENERIC: of the family devlink only the read of an eswitch mode. */
#pragma once

#include "message.h"

void genetlink_handle(const void *data, size_t size, const Reply *reply);
