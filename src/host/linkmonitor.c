/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/linkmonitor.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "util/cleanup.h"

/* Holds a notification without VF attributes. A longer one is cut off, but the name comes first. */
#define NOTIFICATION_MAX 8192

int link_monitor_open(void) {
        const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
        _cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* Finds the interface's name in a message. Returns false unless the message is an RTM_NEWLINK with a name. */
static bool parse_name(const struct nlmsghdr *header, size_t size, char name[static IF_NAMESIZE]) {
        const struct rtattr *a;
        int left; /* signed, because RTA_NEXT() also subtracts padding, which the last attribute may lack */

        if (size < NLMSG_LENGTH(sizeof(struct ifinfomsg)) || header->nlmsg_type != RTM_NEWLINK)
                return false;
        a = IFLA_RTA((const struct ifinfomsg *) NLMSG_DATA(header));
        left = (int) (size - NLMSG_LENGTH(sizeof(struct ifinfomsg)));
        for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
                size_t length = RTA_PAYLOAD(a);

                if (a->rta_type != IFLA_IFNAME || length == 0 || length > IF_NAMESIZE ||
                    !memchr(RTA_DATA(a), '\0', length))
                        continue;
                memcpy(name, RTA_DATA(a), length);
                return true;
        }
        return false;
}

int link_monitor_read(int fd, char name[static IF_NAMESIZE]) {
        union {
                struct nlmsghdr header;
                uint8_t data[NOTIFICATION_MAX];
        } message;

        for (;;) {
                ssize_t n = recv(fd, &message, sizeof(message), 0);

                if (n < 0)
                        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
                if (parse_name(&message.header, (size_t) n, name))
                        return 1;
        }
}
