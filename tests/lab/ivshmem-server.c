/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * ivshmem-server SOCKET FILE: the server of a region of shared memory, as QEMU's docs/specs/ivshmem-spec has it, with
 * one doorbell per guest. It gives FILE as it is to whoever connects, and goes on until it is ended.
 */

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "util/cleanup.h"

#define PEERS_MAX 16U
#define VERSION_0 0
#define THE_FILE  (-1)

typedef struct Peer {
        int socket; /* -1: nobody has this id */
        int doorbell;
} Peer;

typedef struct Server {
        int listening;
        int file;
        Peer peers[PEERS_MAX];
} Server;

static int fail(const char *what) {
        (void) fprintf(stderr, "ivshmem-server: %s: %m\n", what);
        return EXIT_FAILURE;
}

/* With a descriptor, unless that is -1. Who does not take it is about to hang up. */
static void tell(int to, int64_t message, int fd) {
        int64_t wire = (int64_t) htole64((uint64_t) message);
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control = { 0 };
        struct iovec data = { .iov_base = &wire, .iov_len = sizeof(wire) };
        struct msghdr m = { .msg_iov = &data, .msg_iovlen = 1 };

        if (fd >= 0) {
                control.header = (struct cmsghdr) {
                        .cmsg_level = SOL_SOCKET,
                        .cmsg_type = SCM_RIGHTS,
                        .cmsg_len = CMSG_LEN(sizeof(fd)),
                };
                memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
                m.msg_control = &control;
                m.msg_controllen = sizeof(control.space);
        }
        if (sendmsg(to, &m, MSG_NOSIGNAL) < 0)
                perror("ivshmem-server: sendmsg");
}

/* Each learns of the doorbells of all, last of its own. */
static void welcome(Server *s) {
        Peer new = { .socket = accept(s->listening, NULL, NULL), .doorbell = eventfd(0, EFD_CLOEXEC) };
        size_t id = 0;

        while (id < PEERS_MAX && s->peers[id].socket >= 0)
                id++;
        if (new.socket < 0 || new.doorbell < 0 || id == PEERS_MAX) {
                cleanup_close(&new.socket);
                cleanup_close(&new.doorbell);
                return;
        }
        tell(new.socket, VERSION_0, -1);
        tell(new.socket, (int64_t) id, -1);
        tell(new.socket, THE_FILE, s->file);
        for (size_t i = 0; i < PEERS_MAX; i++) {
                if (s->peers[i].socket < 0)
                        continue;
                tell(s->peers[i].socket, (int64_t) id, new.doorbell);
                tell(new.socket, (int64_t) i, s->peers[i].doorbell);
        }
        tell(new.socket, (int64_t) id, new.doorbell);
        s->peers[id] = new;
}

/* A guest says nothing: it has gone. */
static void leave(Server *s, size_t id) {
        cleanup_close(&s->peers[id].socket);
        cleanup_close(&s->peers[id].doorbell);
        s->peers[id] = (Peer) { .socket = -1, .doorbell = -1 };
        for (size_t i = 0; i < PEERS_MAX; i++)
                if (s->peers[i].socket >= 0)
                        tell(s->peers[i].socket, (int64_t) id, -1);
}

static int serve(Server *s) {
        struct pollfd fds[PEERS_MAX + 1];

        for (;;) {
                fds[PEERS_MAX] = (struct pollfd) { .fd = s->listening, .events = POLLIN };
                for (size_t i = 0; i < PEERS_MAX; i++)
                        fds[i] = (struct pollfd) { .fd = s->peers[i].socket, .events = POLLIN };
                if (poll(fds, ELEMENTSOF(fds), -1) < 0)
                        return fail("poll");
                for (size_t i = 0; i < PEERS_MAX; i++)
                        if (fds[i].revents)
                                leave(s, i);
                if (fds[PEERS_MAX].revents)
                        welcome(s);
        }
}

int main(int argc, char *argv[]) {
        Server s = { .listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
        struct sockaddr_un at = { .sun_family = AF_UNIX };

        if (argc != 3 || strlen(argv[1]) >= sizeof(at.sun_path)) {
                (void) fprintf(stderr, "Usage: ivshmem-server SOCKET FILE\n");
                return 2;
        }
        (void) snprintf(at.sun_path, sizeof(at.sun_path), "%s", argv[1]);
        for (size_t i = 0; i < PEERS_MAX; i++)
                s.peers[i] = (Peer) { .socket = -1, .doorbell = -1 };
        s.file = open(argv[2], O_RDWR | O_CLOEXEC);
        if (s.file < 0)
                return fail(argv[2]);
        if (s.listening < 0 || bind(s.listening, (struct sockaddr *) &at, sizeof(at)) < 0 || listen(s.listening, 8) < 0)
                return fail(argv[1]);
        return serve(&s);
}
