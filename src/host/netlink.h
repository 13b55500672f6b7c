/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Requests to the kernel by netlink, one at a time. For children only: the kernel answers when it can have the lock of
 * what it is asked about, and a driver may hold that for minutes.
 */

#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "util/cleanup.h"

DEFINE_CLEANUP(struct nl_sock *, nl_socket_free)
DEFINE_CLEANUP(struct nl_msg *, nlmsg_free)

/* protocol: NETLINK_ROUTE and the like. */
int netlink_open(int protocol, struct nl_sock **ret);

/*
 * Sends request and takes what comes back until it is acknowledged. answer is called with each message, and what it
 * returns for the last one is the result; NULL where the acknowledgement is all that is wanted. Else the kernel's
 * errno, or -EPROTO: no answer that could be understood.
 */
int netlink_ask(struct nl_sock *sk, struct nl_msg *request, int (*answer)(struct nlmsghdr *header, void *userdata),
                void *userdata);
