/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Requests of agents: blocking, and in a loop with other work. The server is openssl's, which requires a client
 * certificate, or a socket with the test's replies. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "unit.h"

#include "agent/http.h"
#include "model/json-value.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

typedef struct Fixture {
        sd_event *event;
        int listener;
        unsigned short port;
        const char *replies[4]; /* a reply for each connection; NULL: no reply */
        size_t n_connections;
        int connections[8];
        char request[8192]; /* the last request */
        unsigned ticks;
        HttpReply reply;
        unsigned n_done, n_wanted;
} Fixture;

static const HttpTls no_tls;

static int on_request(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Fixture *f = userdata;
        size_t n = strlen(f->request);
        ssize_t got = recv(fd, f->request + n, sizeof(f->request) - n - 1, 0);
        const char *reply = NULL;

        for (size_t i = 0; i < f->n_connections && i < ELEMENTSOF(f->replies); i++)
                if (f->connections[i] == fd)
                        reply = f->replies[i];
        if (got <= 0)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        f->request[n + (size_t) got] = '\0';
        if (!reply || !strstr(f->request, "\r\n\r\n"))
                return 0;
        assert_int_equal(send(fd, reply, strlen(reply), MSG_NOSIGNAL), strlen(reply));
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        return 0;
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Fixture *f = userdata;
        struct sockaddr_in address;
        socklen_t size = sizeof(address);
        int connection = accept4(fd, (struct sockaddr *) &address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

        assert_true(connection >= 0 && f->n_connections < ELEMENTSOF(f->connections));
        f->connections[f->n_connections++] = connection;
        f->request[0] = '\0';
        return sd_event_add_io(f->event, NULL, connection, EPOLLIN, on_request, f);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata) {
        Fixture *f = userdata;

        f->ticks++;
        assert_int_equal(sd_event_source_set_time_relative(source, 10000), 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void setup(Fixture *f) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        socklen_t size = sizeof(address);

        *f = (Fixture) { .n_wanted = 1 };
        assert_true(sd_event_new(&f->event) >= 0);
        f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(f->listener, (struct sockaddr *) &address, size), 0);
        assert_int_equal(listen(f->listener, 8), 0);
        assert_int_equal(getsockname(f->listener, (struct sockaddr *) &address, &size), 0);
        f->port = ntohs(address.sin_port);
        assert_true(sd_event_add_io(f->event, NULL, f->listener, EPOLLIN, on_connection, f) >= 0);
        assert_true(sd_event_add_time_relative(f->event, NULL, CLOCK_MONOTONIC, 0, 1, on_tick, f) >= 0);
}

static void teardown(Fixture *f) {
        for (size_t i = 0; i < f->n_connections; i++)
                (void) close(f->connections[i]);
        (void) close(f->listener);
        http_reply_done(&f->reply);
        sd_event_unref(f->event);
}

static void on_done(HttpReply *reply, void *userdata) {
        Fixture *f = userdata;

        http_reply_done(&f->reply);
        f->reply = *reply;
        *reply = (HttpReply) { 0 };
        if (++f->n_done == f->n_wanted)
                (void) sd_event_exit(f->event, 0);
}

static void start(Fixture *f, Http *h, const HttpRequest *q, HttpCall **ret) {
        _cleanup_free_ char *url = string_format("http://127.0.0.1:%u/x", f->port);
        HttpRequest whole = *q;

        whole.url = url;
        assert_int_equal(http_start(h, &whole, on_done, f, ret), 0);
}

TEST(test_in_loop) {
        static const char *const headers[] = { "Authorization: Bearer abc", NULL };
        _cleanup_json_ json_object *body = json_object_new_object();
        _cleanup_(cleanup_http_free) Http *h = NULL;
        Fixture f;

        setup(&f);
        f.replies[0] = "HTTP/1.1 409 Conflict\r\nX-Why: because\r\nContent-Length: 7\r\n\r\n{\"a\":1}";
        assert_int_equal(http_new(f.event, &no_tls, &h), 0);
        assert_true(member_add(body, "b", json_object_new_int(2)));
        start(&f, h,
              &(const HttpRequest) { .method = "PATCH",
                                     .body = body,
                                     .content_type = "application/merge-patch+json",
                                     .headers = headers,
                                     .reply_header = "x-why" },
              NULL);
        assert_int_equal(f.n_done, 0);
        assert_int_equal(sd_event_loop(f.event), 0);
        assert_int_equal(f.reply.status, 409);
        assert_int_equal(json_object_get_int(member(f.reply.document, "a")), 1);
        assert_true(f.reply.has_body);
        assert_string_equal(f.reply.header, "because");
        assert_ptr_equal(strstr(f.request, "PATCH /x HTTP/1.1\r\n"), f.request);
        assert_non_null(strstr(f.request, "\r\nContent-Type: application/merge-patch+json\r\n"));
        assert_non_null(strstr(f.request, "\r\nAuthorization: Bearer abc\r\n"));
        assert_non_null(strstr(f.request, "\r\n\r\n{\"b\":2}"));
        assert_int_equal(http_requests(h), 1);
        teardown(&f);
}

/* A silent server does not block the loop. Other requests go on, and this one ends at its deadline. */
TEST(test_silent) {
        _cleanup_(cleanup_http_free) Http *h = NULL;
        unsigned ticks;
        Fixture f;

        setup(&f);
        f.n_wanted = 2;
        f.replies[1] = "HTTP/1.1 204 No Content\r\n\r\n";
        assert_int_equal(http_new(f.event, &no_tls, &h), 0);
        start(&f, h, &(const HttpRequest) { .method = "GET", .timeout_sec = 3 }, NULL);
        while (f.n_connections == 0)
                assert_true(sd_event_run(f.event, UINT64_MAX) >= 0);
        start(&f, h, &(const HttpRequest) { .method = "DELETE" }, NULL);
        while (f.n_done == 0)
                assert_true(sd_event_run(f.event, UINT64_MAX) >= 0);
        assert_int_equal(f.reply.status, 204);
        assert_false(f.reply.has_body);
        ticks = f.ticks;
        assert_int_equal(sd_event_loop(f.event), 0);
        assert_int_equal(f.reply.status, -EHOSTUNREACH);
        assert_in_range(f.ticks - ticks, 10, 450);
        teardown(&f);
}

TEST(test_cancel) {
        _cleanup_(cleanup_http_free) Http *h = NULL;
        HttpCall *call = NULL;
        Fixture f;

        setup(&f);
        assert_int_equal(http_new(f.event, &no_tls, &h), 0);
        start(&f, h, &(const HttpRequest) { .method = "GET" }, &call);
        start(&f, h, &(const HttpRequest) { .method = "GET" }, NULL);
        while (f.n_connections < 2)
                assert_true(sd_event_run(f.event, UINT64_MAX) >= 0);
        assert_null(http_cancel(call));
        h = http_free(h);
        for (unsigned ticks = f.ticks; f.ticks < ticks + 3;)
                assert_true(sd_event_run(f.event, UINT64_MAX) >= 0);
        assert_int_equal(f.n_done, 0);
        teardown(&f);
}

/* A port without listener, and a reply without JSON. */
TEST(test_bad_replies) {
        _cleanup_(cleanup_http_free) Http *h = NULL;
        Fixture f;

        setup(&f);
        f.replies[0] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>";
        assert_int_equal(http_new(f.event, &no_tls, &h), 0);
        start(&f, h, &(const HttpRequest) { .method = "GET" }, NULL);
        assert_int_equal(sd_event_loop(f.event), 0);
        assert_int_equal(f.reply.status, 200);
        assert_null(f.reply.document);
        assert_true(f.reply.has_body);
        teardown(&f);

        h = http_free(h);
        setup(&f);
        (void) close(f.listener);
        assert_int_equal(http_new(NULL, &no_tls, &h), 0);
        assert_int_equal(http_send(h, &(const HttpRequest) { .method = "GET", .url = "http://127.0.0.1:1/" }, &f.reply),
                         -EHOSTUNREACH);
        assert_int_equal(http_send(h, &(const HttpRequest) { .method = "GET", .url = "file:///etc/passwd" }, &f.reply),
                         -EHOSTUNREACH);
        teardown(&f);
}

/* TLS, with a certificate of the client */

#define MAKE_KEYS                                                                                                      \
        "exec openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=node -addext "            \
        "subjectAltName=IP:127.0.0.1 -days 2 -keyout key -out cert >/dev/null 2>&1"

/* Starts a program in the directory. It ends with the test. */
static pid_t spawn(const char *directory, const char *command) {
        pid_t pid = fork();

        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (chdir(directory) == 0)
                        (void) execl("/bin/sh", "sh", "-c", command, NULL);
                _exit(127);
        }
        return pid;
}

static int get(const HttpTls *tls, unsigned port) {
        _cleanup_(cleanup_http_free) Http *h = NULL;
        _cleanup_(http_reply_done) HttpReply reply = { 0 };
        char url[64];

        (void) snprintf(url, sizeof(url), "https://127.0.0.1:%u/", port);
        assert_int_equal(http_new(NULL, tls, &h), 0);
        return http_send(h, &(const HttpRequest) { .method = "GET", .url = url }, &reply);
}

TEST(test_client_certificate) {
        char directory[] = "/tmp/test-http-XXXXXX", cert[64], key[64], command[256];
        _cleanup_free_ char *cert_text = NULL, *key_text = NULL;
        pid_t server, pid;
        Fixture f;
        int status;

        if (access("/usr/bin/openssl", X_OK) < 0)
                skip();
        setup(&f);
        (void) close(f.listener); /* closes the port */
        assert_non_null(mkdtemp(directory));
        pid = spawn(directory, MAKE_KEYS);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        (void) snprintf(cert, sizeof(cert), "%s/cert", directory);
        (void) snprintf(key, sizeof(key), "%s/key", directory);
        assert_int_equal(read_file_at(AT_FDCWD, cert, 65536, &cert_text, NULL), 0);
        assert_int_equal(read_file_at(AT_FDCWD, key, 65536, &key_text, NULL), 0);
        (void) snprintf(command, sizeof(command),
                        "exec openssl s_server -www -cert cert -key key -CAfile cert -Verify 1 -verify_return_error "
                        "-port %u >/dev/null 2>&1",
                        f.port);
        server = spawn(directory, command);
        for (int i = 0; i < 1200; i++) {
                status = get(&(const HttpTls) { .ca_file = cert, .certificate_file = cert, .key_file = key }, f.port);
                if (status == 200)
                        break;
                (void) usleep(50000);
        }
        assert_int_equal(status, 200);
        assert_int_equal(
                get(&(const HttpTls) { .ca_text = cert_text, .certificate_text = cert_text, .key_text = key_text },
                    f.port),
                200);
        assert_int_equal(get(&(const HttpTls) { .ca_file = cert }, f.port), -EHOSTUNREACH);
        assert_int_equal(get(&(const HttpTls) { .certificate_file = cert, .key_file = key }, f.port), -EHOSTUNREACH);
        (void) kill(server, SIGKILL);
        (void) waitpid(server, NULL, 0);
        (void) unlink(cert);
        (void) unlink(key);
        (void) rmdir(directory);
        teardown(&f);
}

TEST(test_retry) {
        uint64_t delay = 0;

        for (uint64_t expected = 1000000; expected < 200000000; expected *= 2) {
                uint64_t usec = retry_usec(&delay);

                assert_int_equal(delay, MIN(expected, UINT64_C(60000000)));
                assert_in_range(usec, delay / 2, delay + delay / 2);
        }
}
