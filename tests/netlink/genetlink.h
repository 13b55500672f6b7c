/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's end of NETLINK_GENERIC: the family devlink, and of that the mode of an eswitch, which cannot be set. */
#pragma once

#include "message.h"

void genetlink_handle(const void *data, size_t size, const Reply *reply);
