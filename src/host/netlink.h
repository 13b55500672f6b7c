/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Synchronous netlink requests to the kernel, for child processes only: to answer, the kernel takes locks that a driver
 * may hold for minutes.
 */

#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "util/cleanup.h"

DEFINE_CLEANUP(struct nl_sock *, nl_socket_free)
DEFINE_CLEANUP(struct nl_msg *, nlmsg_free)

/* Opens a socket for a netlink protocol, such as NETLINK_ROUTE. Returns 0, -ENOMEM or -EPROTO. */
int netlink_open(int protocol, struct nl_sock **ret);

/*
 * Sends request and receives messages until the kernel acknowledges the request. answer() is called for each message
 * before the acknowledgement. Returns the value of answer() for the last of them; 0 if answer is NULL, for a request
 * that is only acknowledged. If the kernel refuses the request, returns its negative errno. Returns -EPROTO when the
 * reply cannot be parsed, has no message for answer(), or libnl fails; or -ENOMEM.
 */
int netlink_ask(struct nl_sock *sk, struct nl_msg *request, int (*answer)(struct nlmsghdr *header, void *userdata),
                void *userdata);
