/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "netlink.h"

#include <errno.h>

/* Holds the largest reply: the list of VFs is one attribute, which has at most 64 KiB. */
#define RECEIVE_SIZE (256 * 1024)

/* A request and the state of its reply. */
typedef struct Exchange {
        int (*answer)(struct nlmsghdr *header, void *userdata);
        void *userdata;
        bool understood; /* libnl could parse a message of the last datagram */
        bool done;       /* the kernel has acknowledged or refused the request */
        int result;
} Exchange;

/* Converts an error of libnl to an errno. on_error() handles errors of the kernel. */
static int library_errno(int r) {
        return r == -NLE_NOMEM ? -ENOMEM : -EPROTO;
}

int netlink_open(int protocol, struct nl_sock **ret) {
        _cleanup_(cleanup_nl_socket_free) struct nl_sock *sk = nl_socket_alloc();
        int r;

        if (!sk)
                return -ENOMEM;
        r = nl_connect(sk, protocol);
        if (r < 0)
                return library_errno(r);
        r = nl_socket_set_msg_buf_size(sk, RECEIVE_SIZE);
        if (r < 0)
                return library_errno(r);
        *ret = TAKE_PTR(sk);
        return 0;
}

static int on_message(struct nl_msg *msg, void *userdata) {
        Exchange *x = userdata;

        x->understood = true;
        if (x->answer)
                x->result = x->answer(nlmsg_hdr(msg), x->userdata);
        return NL_OK;
}

static int on_ack(struct nl_msg *msg, void *userdata) {
        Exchange *x = userdata;

        x->understood = x->done = true;
        return NL_STOP;
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *error, void *userdata) {
        Exchange *x = userdata;

        x->understood = x->done = true;
        x->result = error->error < 0 ? error->error : -EPROTO;
        return NL_STOP;
}

int netlink_ask(struct nl_sock *sk, struct nl_msg *request, int (*answer)(struct nlmsghdr *header, void *userdata),
                void *userdata) {
        Exchange x = { .answer = answer, .userdata = userdata, .result = answer ? -EPROTO : 0 };
        int r;

        (void) nl_socket_modify_cb(sk, NL_CB_VALID, NL_CB_CUSTOM, on_message, &x);
        (void) nl_socket_modify_cb(sk, NL_CB_ACK, NL_CB_CUSTOM, on_ack, &x);
        (void) nl_socket_modify_err_cb(sk, NL_CB_CUSTOM, on_error, &x);
        r = nl_send_auto(sk, request);
        while (r >= 0 && !x.done) {
                x.understood = false;
                r = nl_recvmsgs_default(sk);
                /* No message was understood, as when one is cut off. The next receive would block for ever. */
                if (r >= 0 && !x.understood)
                        return -EPROTO;
        }
        return x.done ? x.result : library_errno(r);
}
