/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "grpc.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/strings.h"

#define PREFIX_SIZE  5U /* bytes before a message: a flag and a big-endian length */
#define PATH_SIZE    128U
#define READ_SIZE    16384U
#define TIMEOUT_USEC (GRPC_TIMEOUT_SEC * UINT64_C(1000000))

typedef struct Connection Connection;

struct GrpcCall {
        LIST_ENTRY(GrpcCall) calls;
        Connection *connection;
        int32_t id;
        uint64_t begun;
        /* What the peer has sent so far. */
        char path[PATH_SIZE];
        bool is_post, is_grpc, is_complete;
        size_t headers_size;
        WireBuffer in;
        /* What is sent to the peer. */
        bool is_answered, has_headers;
        WireBuffer out;
        size_t sent;
        GrpcStatus status;
        const char *message; /* grpc-message; NULL: none */
        void (*gone)(GrpcCall *c, void *userdata);
        void *userdata;
};

struct Connection {
        LIST_ENTRY(Connection) connections;
        GrpcServer *server;
        int fd;
        nghttp2_session *session;
        sd_event_source *io, *timer;
        LIST_HEAD(CallList, GrpcCall) calls;
        uint64_t begun, last_call; /* time of the connection's start, and of its last call; last_call is 0 before the
                                      first call */
        uint64_t blocked;          /* since when the socket has accepted no bytes; UINT64_MAX: it accepts bytes */
        bool has_settings, is_broken;
};

struct GrpcServer {
        sd_event *event;
        sd_event_source *io;
        int fd;
        struct sockaddr_un address;
        ino_t inode;
        const GrpcMethod *methods;
        size_t n_methods;
        void *userdata;
        LIST_HEAD(ConnectionList, Connection) connections;
};

static void free_call(GrpcCall *call) {
        LIST_REMOVE(call, calls);
        if (call->gone && !call->is_answered)
                call->gone(call, call->userdata);
        wire_done(&call->in);
        wire_done(&call->out);
        free(call);
}

/* Asks for a writable event, so that the loop sends what was submitted: a method may answer while nghttp2 is reading,
 * when nothing may be sent. */
static void wake_connection(Connection *c) {
        if (sd_event_source_set_io_events(c->io, EPOLLIN | EPOLLOUT) < 0)
                c->is_broken = true;
}

static nghttp2_nv header(const char *name, const char *value) {
        return (nghttp2_nv) { (uint8_t *) (uintptr_t) name, (uint8_t *) (uintptr_t) value, strlen(name), strlen(value),
                              NGHTTP2_NV_FLAG_NONE };
}

static ssize_t on_read_answer(nghttp2_session *session, int32_t id, uint8_t *buf, size_t size, uint32_t *flags,
                              nghttp2_data_source *source, void *userdata) {
        GrpcCall *call = source->ptr;
        size_t n = MIN(size, call->out.size - call->sent);
        char status[16];
        nghttp2_nv trailer[2];

        if (n > 0)
                memcpy(buf, call->out.data + call->sent, n);
        call->sent += n;
        if (call->sent < call->out.size)
                return (ssize_t) n;
        if (!call->is_answered)
                return n > 0 ? (ssize_t) n : NGHTTP2_ERR_DEFERRED;
        (void) snprintf(status, sizeof(status), "%d", (int) call->status);
        trailer[0] = header("grpc-status", status);
        trailer[1] = header("grpc-message", call->message ?: "");
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        return nghttp2_submit_trailer(session, id, trailer, call->message ? 2 : 1) < 0
                       ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE
                       : (ssize_t) n;
}

/* Cancels the stream of a call. Further frames of its request are ignored. */
static void reset_call(GrpcCall *call) {
        call->is_complete = true;
        if (nghttp2_submit_rst_stream(call->connection->session, NGHTTP2_FLAG_NONE, call->id, NGHTTP2_INTERNAL_ERROR) !=
            0)
                call->connection->is_broken = true;
        wake_connection(call->connection);
}

/* Submits the headers of the answer or, when they have been sent, resumes the data. */
static void submit_answer(GrpcCall *call) {
        nghttp2_session *session = call->connection->session;
        const nghttp2_nv headers[] = { header(":status", "200"), header("content-type", "application/grpc") };
        nghttp2_data_provider provider = { .source.ptr = call, .read_callback = on_read_answer };
        int r = call->has_headers ? nghttp2_session_resume_data(session, call->id)
                                  : nghttp2_submit_response(session, call->id, headers, ELEMENTSOF(headers), &provider);

        call->has_headers = true;
        /* nghttp2 returns NGHTTP2_ERR_INVALID_ARGUMENT when the data is not deferred. It then sends the new data
         * anyway. */
        if (r != 0 && r != NGHTTP2_ERR_INVALID_ARGUMENT)
                reset_call(call);
        wake_connection(call->connection);
}

static void put_message(GrpcCall *call, const WireBuffer *message) {
        uint8_t prefix[PREFIX_SIZE] = { 0, (uint8_t) (message->size >> 24), (uint8_t) (message->size >> 16),
                                        (uint8_t) (message->size >> 8), (uint8_t) message->size };

        if (call->sent == call->out.size)
                call->sent = call->out.size = 0;
        wire_append(&call->out, prefix, sizeof(prefix));
        wire_append(&call->out, message->data, message->size);
}

void grpc_reply(GrpcCall *call, const WireBuffer *message) {
        put_message(call, message);
        if (message->is_failed || call->out.is_failed) {
                grpc_fail(call, GRPC_INTERNAL, "Out of memory.");
                return;
        }
        call->is_answered = true;
        submit_answer(call);
}

void grpc_send(GrpcCall *call, const WireBuffer *message) {
        put_message(call, message);
        if (message->is_failed || call->out.is_failed || call->out.size - call->sent > GRPC_UNREAD_MAX)
                reset_call(call);
        else
                submit_answer(call);
}

void grpc_fail(GrpcCall *call, GrpcStatus status, const char *message) {
        call->is_answered = true;
        call->status = status;
        call->message = message;
        call->out.size = call->sent;
        submit_answer(call);
}

void grpc_call_watch(GrpcCall *call, void (*gone)(GrpcCall *c, void *userdata), void *userdata) {
        call->gone = gone;
        call->userdata = userdata;
}

/* Calls the method when the request is complete. A request must have exactly one message. */
static void run_call(GrpcCall *call) {
        const GrpcServer *s = call->connection->server;
        const uint8_t *in = call->in.data;
        bool has_prefix = call->is_post && call->is_grpc && !call->in.is_failed && call->in.size >= PREFIX_SIZE;
        size_t size = has_prefix ? (size_t) in[1] << 24 | (size_t) in[2] << 16 | (size_t) in[3] << 8 | in[4] : 0;

        call->is_complete = true;
        call->connection->last_call = clock_usec(CLOCK_MONOTONIC);
        if (!has_prefix || (in[0] == 0 && size != call->in.size - PREFIX_SIZE)) {
                grpc_fail(call, GRPC_INTERNAL, "This is no call of gRPC with one message.");
                return;
        }
        if (in[0] != 0) {
                grpc_fail(call, GRPC_UNIMPLEMENTED, "Compressed messages are not supported.");
                return;
        }
        for (size_t i = 0; i < s->n_methods; i++)
                if (streq(call->path, s->methods[i].path)) {
                        s->methods[i].run(call, in + PREFIX_SIZE, size, s->userdata);
                        return;
                }
        grpc_fail(call, GRPC_UNIMPLEMENTED, "There is no such method.");
}

/* Callbacks of nghttp2. */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *userdata) {
        Connection *c = userdata;
        GrpcCall *call;

        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        call = calloc(1, sizeof(*call));
        if (!call)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        *call = (GrpcCall) { .connection = c, .id = frame->hd.stream_id, .begun = clock_usec(CLOCK_MONOTONIC) };
        LIST_INSERT_HEAD(&c->calls, call, calls);
        return nghttp2_session_set_stream_user_data(session, call->id, call);
}

static bool header_is(const uint8_t *name, size_t size, const char *wanted) {
        return size == strlen(wanted) && memcmp(name, wanted, size) == 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_size,
                     const uint8_t *value, size_t value_size, uint8_t flags, void *userdata) {
        static const char grpc[] = "application/grpc";
        GrpcCall *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

        if (!call)
                return 0;
        call->headers_size += name_size + value_size + 32;
        if (call->headers_size > GRPC_HEADERS_MAX)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        if (header_is(name, name_size, ":path") && value_size < sizeof(call->path)) {
                memcpy(call->path, value, value_size);
                call->path[value_size] = '\0';
        } else if (header_is(name, name_size, ":method"))
                call->is_post = header_is(value, value_size, "POST");
        else if (header_is(name, name_size, "content-type"))
                call->is_grpc = value_size >= strlen(grpc) && memcmp(value, grpc, strlen(grpc)) == 0;
        return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t size,
                   void *userdata) {
        GrpcCall *call = nghttp2_session_get_stream_user_data(session, id);

        if (!call || call->is_complete)
                return 0;
        if (call->in.size + size > GRPC_REQUEST_MAX + PREFIX_SIZE)
                reset_call(call);
        else
                wire_append(&call->in, data, size);
        return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *userdata) {
        Connection *c = userdata;
        GrpcCall *call;

        if (frame->hd.type == NGHTTP2_SETTINGS)
                c->has_settings = true;
        if ((frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) ||
            !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
                return 0;
        call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
        if (call && !call->is_complete)
                run_call(call);
        return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *userdata) {
        GrpcCall *call = nghttp2_session_get_stream_user_data(session, id);

        if (call)
                free_call(call);
        return 0;
}

static void close_connection(Connection *c) {
        LIST_REMOVE(c, connections);
        while (!LIST_EMPTY(&c->calls))
                free_call(LIST_FIRST(&c->calls));
        nghttp2_session_del(c->session);
        sd_event_source_disable_unref(c->io);
        sd_event_source_disable_unref(c->timer);
        (void) close(c->fd);
        free(c);
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t size, int flags, void *userdata) {
        Connection *c = userdata;
        ssize_t n = send(c->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0)
                c->blocked = UINT64_MAX;
        else if (errno != EAGAIN && errno != EINTR)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
        else if (c->blocked == UINT64_MAX)
                c->blocked = clock_usec(CLOCK_MONOTONIC);
        return n >= 0 ? n : NGHTTP2_ERR_WOULDBLOCK;
}

/* Sets the events and the timer of the connection. The timer runs while the server waits for the peer: for its
 * settings, for the rest of a request, or for room in the socket. */
static int update_connection(Connection *c) {
        uint64_t since = c->has_settings ? c->blocked : MIN(c->begun, c->blocked);
        const GrpcCall *call;
        int r;

        LIST_FOREACH(call, &c->calls, calls)
        if (!call->is_complete)
                since = MIN(since, call->begun);
        r = sd_event_source_set_io_events(c->io, EPOLLIN | (c->blocked < UINT64_MAX ? EPOLLOUT : 0U));
        if (r >= 0 && since < UINT64_MAX)
                r = sd_event_source_set_time(c->timer, since + TIMEOUT_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(c->timer, since < UINT64_MAX ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Connection *c = userdata;
        uint8_t buf[READ_SIZE];
        ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) ||
            (n > 0 && nghttp2_session_mem_recv(c->session, buf, (size_t) n) < 0) ||
            nghttp2_session_send(c->session) != 0 || update_connection(c) < 0 || c->is_broken ||
            (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session)))
                close_connection(c);
        return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        close_connection(userdata);
        return 0;
}

static int make_session(Connection *c) {
        static const nghttp2_settings_entry settings[] = {
                { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, GRPC_CALLS_MAX },
                { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, GRPC_HEADERS_MAX },
        };
        nghttp2_session_callbacks *callbacks = NULL;
        int r = nghttp2_session_callbacks_new(&callbacks);

        if (r != 0)
                return -ENOMEM;
        nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
        r = nghttp2_session_server_new(&c->session, callbacks, c);
        nghttp2_session_callbacks_del(callbacks);
        if (r == 0)
                r = nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, ELEMENTSOF(settings));
        return r == 0 ? 0 : -ENOMEM;
}

/*
 * Returns whether another connection fits. If there are GRPC_CONNECTIONS_MAX, closes one without a running call: one
 * that has made no call or, failing that, whose last call is the oldest. Returns false if all connections have a
 * running call. A kubelet whose connection was closed connects again.
 */
static bool make_room(GrpcServer *s) {
        Connection *c, *oldest = NULL;
        size_t n = 0;

        LIST_FOREACH(c, &s->connections, connections) {
                n++;
                if (LIST_EMPTY(&c->calls) && (!oldest || c->last_call <= oldest->last_call))
                        oldest = c;
        }
        if (n < GRPC_CONNECTIONS_MAX)
                return true;
        if (oldest)
                close_connection(oldest);
        return oldest;
}

static int on_accept(sd_event_source *source, int listening, uint32_t events, void *userdata) {
        GrpcServer *s = userdata;
        /* cppcheck-suppress nullPointer */ /* the peer's address is not wanted */
        int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), r;
        Connection *c = fd >= 0 && make_room(s) ? calloc(1, sizeof(*c)) : NULL;

        if (!c) {
                if (fd >= 0)
                        (void) close(fd);
                return 0;
        }
        *c = (Connection) { .server = s, .fd = fd, .begun = clock_usec(CLOCK_MONOTONIC), .blocked = UINT64_MAX };
        LIST_INSERT_HEAD(&s->connections, c, connections);
        r = make_session(c);
        if (r >= 0)
                r = sd_event_add_io(s->event, &c->io, fd, EPOLLIN | EPOLLOUT, on_connection, c);
        if (r >= 0)
                r = sd_event_add_time_relative(s->event, &c->timer, CLOCK_MONOTONIC, TIMEOUT_USEC, 0, on_deadline, c);
        if (r < 0)
                close_connection(c);
        return 0;
}

int grpc_server_new(sd_event *event, const char *path, const GrpcMethod *methods, size_t n, void *userdata,
                    GrpcServer **ret) {
        GrpcServer *s = calloc(1, sizeof(*s));
        struct stat st;
        int r = 0;

        if (!s)
                return log_error_errno(-ENOMEM, "Failed to listen at %s: %m", path);
        *s = (GrpcServer) { .event = sd_event_ref(event), .methods = methods, .n_methods = n, .userdata = userdata };
        s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        s->address.sun_family = AF_UNIX;
        if (snprintf(s->address.sun_path, sizeof(s->address.sun_path), "%s", path) >= (int) sizeof(s->address.sun_path))
                r = -ENAMETOOLONG;
        else if (s->fd < 0 || (unlink(path) < 0 && errno != ENOENT) ||
                 bind(s->fd, (struct sockaddr *) &s->address, sizeof(s->address)) < 0 || chmod(path, 0600) < 0 ||
                 stat(path, &st) < 0 || listen(s->fd, SOMAXCONN) < 0)
                r = -errno;
        else
                s->inode = st.st_ino;
        if (r >= 0)
                r = sd_event_add_io(event, &s->io, s->fd, EPOLLIN, on_accept, s);
        if (r < 0) {
                grpc_server_free(s);
                return log_error_errno(r, "Failed to listen at %s: %m", path);
        }
        *ret = s;
        return 0;
}

bool grpc_server_is_reachable(const GrpcServer *s) {
        struct stat st;

        return stat(s->address.sun_path, &st) == 0 && st.st_ino == s->inode;
}

GrpcServer *grpc_server_free(GrpcServer *s) {
        if (!s)
                return NULL;
        while (!LIST_EMPTY(&s->connections))
                close_connection(LIST_FIRST(&s->connections));
        sd_event_source_disable_unref(s->io);
        if (s->inode && grpc_server_is_reachable(s))
                (void) unlink(s->address.sun_path);
        if (s->fd >= 0)
                (void) close(s->fd);
        sd_event_unref(s->event);
        free(s);
        return NULL;
}
