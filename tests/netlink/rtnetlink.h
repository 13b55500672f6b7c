/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's end of NETLINK_ROUTE, as far as links and VFs go. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Reply {
        void (*send)(void *userdata, const void *data, size_t size); /* one datagram */
        void *userdata;
        uint32_t port; /* nl_pid of who asks */
} Reply;

/* All messages of one datagram. What is written is written when this returns. */
void rtnetlink_handle(const void *data, size_t size, const Reply *reply);
