/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Preloaded into a process with NODE_ROOT in its environment, this answers NETLINK_ROUTE and NETLINK_GENERIC sockets
 * from that simulated node. Such a socket is a real AF_UNIX socket that is connected to itself: a request is handled by
 * its sender, as in the kernel, and the replies wait in the socket's queue. Therefore it can be polled, inherited by
 * fork(), and closed. Other sockets are not changed. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "genetlink.h"
#include "rtnetlink.h"

#define NAME    "nodesim-netlink." /* of these sockets, abstract */
#define FDS_MAX 65536
#define EXPORT  __attribute__((visibility("default")))

typedef union Function {
        void *address;
        int (*socket)(int, int, int);
        int (*bind)(int, const struct sockaddr *, socklen_t);
        int (*getsockname)(int, struct sockaddr *, socklen_t *);
        int (*setsockopt)(int, int, int, const void *, socklen_t);
        ssize_t (*sendmsg)(int, const struct msghdr *, int);
        ssize_t (*sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
        ssize_t (*recvmsg)(int, struct msghdr *, int);
} Function;

static Function next(const char *name) {
        return (Function) { .address = dlsym(RTLD_NEXT, name) };
}

/* The ports of the sockets made here, by descriptor. A number may be reused, so is_ours() asks the kernel. */
static _Atomic uint32_t ports[FDS_MAX];
static _Atomic int protocols[FDS_MAX];
static _Atomic unsigned n_sockets;

static bool is_ours(int fd) {
        struct sockaddr_un name;
        socklen_t size = sizeof(name);

        if (fd < 0 || fd >= FDS_MAX || ports[fd] == 0)
                return false;
        return next("getsockname").getsockname(fd, (struct sockaddr *) &name, &size) == 0 &&
               name.sun_family == AF_UNIX && size > offsetof(struct sockaddr_un, sun_path) + sizeof(NAME) &&
               memcmp(name.sun_path + 1, NAME, strlen(NAME)) == 0;
}

static int connect_to_itself(int fd) {
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        struct timespec now;
        socklen_t size;
        int n;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, NAME "%d.%u.%lld.%ld", (int) getpid(), ++n_sockets,
                     (long long) now.tv_sec, now.tv_nsec);
        size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n);
        if (next("bind").bind(fd, (const struct sockaddr *) &name, size) < 0 ||
            connect(fd, (const struct sockaddr *) &name, size) < 0)
                return -1;
        return 0;
}

EXPORT int socket(int domain, int type, int protocol) {
        int fd;

        if (domain != AF_NETLINK || (protocol != NETLINK_ROUTE && protocol != NETLINK_GENERIC) || !getenv("NODE_ROOT"))
                return next("socket").socket(domain, type, protocol);
        fd = next("socket").socket(AF_UNIX, SOCK_DGRAM | (type & (SOCK_CLOEXEC | SOCK_NONBLOCK)), 0);
        if (fd < 0)
                return -1;
        if (fd >= FDS_MAX || connect_to_itself(fd) < 0) {
                (void) close(fd);
                errno = ENOBUFS;
                return -1;
        }
        ports[fd] = (uint32_t) getpid();
        protocols[fd] = protocol;
        return fd;
}

/* Returns the name of the listener to links: one process of the node. */
static socklen_t links_name(struct sockaddr_un *ret) {
        int n;

        *ret = (struct sockaddr_un) { .sun_family = AF_UNIX };
        n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, NAME "links.%s", getenv("NODE_ROOT"));
        return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n);
}

/* Makes a socket that others send to, instead of one that is connected to itself. */
static int listen_to_links(int fd) {
        int flags = fcntl(fd, F_GETFL), r;
        int other = next("socket").socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | (flags & O_NONBLOCK), 0);
        struct sockaddr_un name;
        socklen_t size = links_name(&name);

        r = other < 0 ? -1 : next("bind").bind(other, (const struct sockaddr *) &name, size);
        if (r == 0)
                r = dup3(other, fd, O_CLOEXEC);
        if (other >= 0)
                (void) close(other);
        return r < 0 ? -1 : 0;
}

static void notify(const void *data, size_t size) {
        struct sockaddr_un name;
        socklen_t name_size = links_name(&name);
        int fd = next("socket").socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return;
        (void) next("sendto").sendto(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *) &name,
                                     name_size);
        (void) close(fd);
}

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t size) {
        if (!is_ours(fd))
                return next("bind").bind(fd, address, size);
        if (size < sizeof(struct sockaddr_nl) || address->sa_family != AF_NETLINK) {
                errno = EINVAL;
                return -1;
        }
        const struct sockaddr_nl *a = (const struct sockaddr_nl *) (const void *) address;
        ports[fd] = a->nl_pid > 0 ? a->nl_pid : (uint32_t) getpid();
        return a->nl_groups & RTMGRP_LINK ? listen_to_links(fd) : 0;
}

static void tell_address(uint32_t port, void *ret, socklen_t *size) {
        const struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_pid = port };

        memcpy(ret, &address, *size < sizeof(address) ? *size : sizeof(address));
        *size = sizeof(address);
}

EXPORT int getsockname(int fd, struct sockaddr *ret, socklen_t *size) {
        if (!is_ours(fd))
                return next("getsockname").getsockname(fd, ret, size);
        tell_address(ports[fd], ret, size);
        return 0;
}

EXPORT int setsockopt(int fd, int level, int option, const void *value, socklen_t size) {
        if (level == SOL_NETLINK && is_ours(fd))
                return 0;
        return next("setsockopt").setsockopt(fd, level, option, value, size);
}

/* requests */

/* Queues a reply without waiting: a netlink socket whose owner does not read loses messages. */
static void queue(void *userdata, const void *data, size_t size) {
        int fd = *(const int *) userdata;

        if (next("sendto").sendto(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) < 0)
                fprintf(stderr, "netlink of the simulated node: a reply of %zu bytes is lost: %m\n", size);
}

/* A child process has sockets of its parent. */
static void handle(int fd, const void *data, size_t size) {
        const Reply reply = { .send = queue, .userdata = &fd, .port = ports[fd], .notify = notify };

        if (protocols[fd] == NETLINK_GENERIC)
                genetlink_handle(data, size, &reply);
        else
                rtnetlink_handle(data, size, &reply);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
        size_t size = 0;
        uint8_t *data;

        if (!is_ours(fd))
                return next("sendmsg").sendmsg(fd, message, flags);
        for (size_t i = 0; i < message->msg_iovlen; i++)
                size += message->msg_iov[i].iov_len;
        data = malloc(size + 1);
        if (!data)
                return -1;
        size = 0;
        for (size_t i = 0; i < message->msg_iovlen; i++) {
                memcpy(data + size, message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
                size += message->msg_iov[i].iov_len;
        }
        handle(fd, data, size);
        free(data);
        return (ssize_t) size;
}

EXPORT ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t to_size) {
        if (!is_ours(fd))
                return next("sendto").sendto(fd, data, size, flags, to, to_size);
        handle(fd, data, size);
        return (ssize_t) size;
}

EXPORT ssize_t send(int fd, const void *data, size_t size, int flags) {
        return sendto(fd, data, size, flags, NULL, 0);
}

/* replies; recv() and read() need no replacement */

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
        ssize_t n;

        if (!is_ours(fd))
                return next("recvmsg").recvmsg(fd, message, flags);
        struct msghdr inner = *message;
        inner.msg_name = NULL;
        inner.msg_namelen = 0;
        n = next("recvmsg").recvmsg(fd, &inner, flags);
        message->msg_flags = inner.msg_flags;
        message->msg_controllen = inner.msg_controllen;
        if (n >= 0 && message->msg_name)
                tell_address(0, message->msg_name, &message->msg_namelen);
        return n;
}
