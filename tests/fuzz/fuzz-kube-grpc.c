/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A client of the gRPC server that sends these bytes after the HTTP/2 preface, and closes the connection. The server
 * answers some calls at once, some as a stream, some never. It must forget each call exactly once, and serve the next
 * client.
 */

#include "fuzz.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "kube/grpc.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static sd_event *event;
static GrpcServer *server;
static char path[64];
static int n_open;

static void on_gone(GrpcCall *call, void *userdata) {
        n_open--;
}

static void run_echo(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        _cleanup_(wire_done) WireBuffer answer = { 0 };

        wire_append(&answer, data, size);
        grpc_reply(call, &answer);
}

static void run_stream(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        _cleanup_(wire_done) WireBuffer answer = { 0 };

        n_open++;
        grpc_call_watch(call, on_gone, NULL);
        wire_append(&answer, data, size);
        grpc_send(call, &answer);
        grpc_send(call, &answer);
}

static void run_fail(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        grpc_fail(call, GRPC_INTERNAL, "No.");
}

static void run_never(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        n_open++;
        grpc_call_watch(call, on_gone, NULL);
}

/* Short paths, which a fuzzer finds. */
static const GrpcMethod methods[] = {
        { "/e", run_echo }, { "/s", run_stream }, { "/f", run_fail }, { "/n", run_never }
};

static void stop(void) {
        grpc_server_free(server);
        sd_event_unref(event);
}

static void start(void) {
        (void) snprintf(path, sizeof(path), "/dev/shm/fuzz-kube-grpc.%d", (int) getpid());
        assert_true(sd_event_new(&event) >= 0);
        assert_int_equal(grpc_server_new(event, path, methods, ELEMENTSOF(methods), NULL, &server), 0);
        (void) atexit(stop);
}

static int connect_peer(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void) strcpy(address.sun_path, path);
        assert_true(fd >= 0 && connect(fd, (struct sockaddr *) &address, sizeof(address)) == 0);
        return fd;
}

static void run_loop(void) {
        while (sd_event_run(event, 0) > 0)
                ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint8_t buf[4096];
        int fd;

        if (!event)
                start();
        fd = connect_peer();
        /* Half of the inputs begin with frames, the others before the preface. */
        if (size > 0 && data[0] % 2 == 0)
                assert_true(send(fd, PREFACE, strlen(PREFACE), MSG_NOSIGNAL) > 0);
        if (size > 1)
                (void) send(fd, data + 1, size - 1, MSG_NOSIGNAL);
        run_loop();
        while (recv(fd, buf, sizeof(buf), 0) > 0)
                run_loop();
        (void) close(fd);
        run_loop();
        assert_int_equal(n_open, 0);
        assert_true(grpc_server_is_reachable(server));
        return 0;
}
