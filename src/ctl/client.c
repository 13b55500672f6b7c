/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connection to the daemon: method calls, and sentences for D-Bus errors. */
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bus/names.h"
#include "bus/reply-text.h"
#include "client.h"
#include "replay/replay.h"
#include "report.h"
#include "util/clock.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig) {
        interrupted = 1;
}

void client_catch_interrupt(void) {
        struct sigaction action = { .sa_handler = on_interrupt };
        sigset_t set;

        /* client_turn() unblocks SIGINT only in ppoll(). Otherwise a signal just before the poll would not interrupt
         * it. */
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) sigaction(SIGINT, &action, NULL);
}

/* Opens a socket connected to the private socket of the daemon. Returns a descriptor or a negative errno. */
static int open_private_socket(void) {
        const struct sockaddr_un address = { AF_UNIX, "/run/passthroughd/" BUS_PRIVATE_SOCKET };
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* Connects to the private socket, which only root and the daemon's user can open. Returns 1: connected; 0: use the bus
 * instead; or a negative errno. */
static int connect_private(Client *c) {
        int fd, r;

        if (getenv("DBUS_SYSTEM_BUS_ADDRESS"))
                return 0;
        fd = open_private_socket();
        if (fd < 0)
                return 0;
        r = sd_bus_new(&c->bus);
        if (r >= 0)
                r = sd_bus_set_fd(c->bus, fd, fd);
        if (r < 0)
                (void) close(fd);
        else
                r = sd_bus_start(c->bus);
        if (r < 0)
                return report_errno(c->args, r, "Cannot connect to passthroughd");
        c->is_private = true;
        return 1;
}

static int connect_node(Client *c, const char *node) {
        _cleanup_free_ char *problem = NULL;
        int r, fd;

        r = replay_new(node, c->args->text[OPTION_CONFIG], &c->replay, &problem);
        if (r < 0) {
                (void) report_failure(c->args, NULL, "%s", problem ? problem : "Out of memory.");
                return r;
        }
        r = sd_bus_new(&c->bus);
        if (r >= 0) {
                fd = replay_take_fd(c->replay);
                r = sd_bus_set_fd(c->bus, fd, fd);
        }
        if (r >= 0)
                r = sd_bus_start(c->bus);
        return r < 0 ? report_errno(c->args, r, "Cannot connect to the replay of the recorded node") : 0;
}

static int connect_any(Client *c, bool bus_only) {
        int r;

        if (args_has(c->args, OPTION_NODE))
                return connect_node(c, c->args->text[OPTION_NODE]);
        r = bus_only ? 0 : connect_private(c);
        if (r != 0)
                return r;
        r = sd_bus_open_system(&c->bus);
        return r < 0 ? report_errno(c->args, r, "Cannot reach the system bus") : 0;
}

static int client_new_full(const Args *args, bool bus_only, Client **ret) {
        _cleanup_(cleanup_client_free) Client *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return report_errno(args, -ENOMEM, "Cannot connect");
        c->args = args;
        r = connect_any(c, bus_only);
        if (r < 0)
                return r;
        /* At a terminal, polkit may ask the user for a password. */
        (void) sd_bus_set_allow_interactive_authorization(c->bus, isatty(STDIN_FILENO));
        *ret = TAKE_PTR(c);
        return 0;
}

int client_new(const Args *args, Client **ret) {
        return client_new_full(args, false, ret);
}

int client_new_on_bus(const Args *args, Client **ret) {
        return client_new_full(args, true, ret);
}

Client *client_free(Client *c) {
        if (!c)
                return NULL;
        sd_bus_flush_close_unref(c->bus);
        replay_free(c->replay);
        free(c);
        return NULL;
}

int client_lost(const Client *c, int error) {
        return report_errno(c->args, error,
                            args_has(c->args, OPTION_NODE) ? "The process that replays the recorded node died"
                            : c->is_private                ? "passthroughd closed the connection"
                                                           : "No connection to the bus");
}

int client_bad_reply(const Client *c, int error) {
        return report_errno(
                c->args, error,
                "Cannot parse the reply of passthroughd, which may be of another version than passthroughctl");
}

int client_method_of(Client *c, const char *interface, const char *member, sd_bus_message **ret) {
        int r = sd_bus_message_new_method_call(c->bus, ret, BUS_NAME, BUS_PATH, interface, member);

        /* Do not start a daemon that the administrator has stopped. If the daemon had a D-Bus service file, the bus
         * would otherwise start it. */
        if (r >= 0)
                r = sd_bus_message_set_auto_start(*ret, false);
        return r < 0 ? report_errno(c->args, r, "Cannot build the D-Bus call") : 0;
}

int client_method(Client *c, const char *member, sd_bus_message **ret) {
        return client_method_of(c, BUS_MANAGER_INTERFACE, member, ret);
}

/* Returns how long ppoll() may wait: until the next timeout of the bus, at most until `end`. NULL: without limit. */
static struct timespec *time_left(Client *c, uint64_t end, struct timespec *buf) {
        uint64_t until, usec;

        until = sd_bus_get_timeout(c->bus, &until) < 0 ? end : MIN(until, end);
        if (until == UINT64_MAX)
                return NULL;
        usec = clock_usec(CLOCK_MONOTONIC);
        usec = until > usec ? until - usec : 0;
        *buf = (struct timespec) { .tv_sec = (time_t) (usec / 1000000), .tv_nsec = (long) (usec % 1000000) * 1000 };
        return buf;
}

int client_turn(Client *c) {
        return client_turn_until(c, UINT64_MAX);
}

int client_turn_until(Client *c, uint64_t end) {
        struct pollfd pfd;
        struct timespec buf;
        sigset_t set;
        int r;

        /* Poll first, then process. sd_bus_process() returns 0 also after the callback of a call that timed out,
         * and then the caller must look for the reply instead of waiting for messages. */
        r = sd_bus_get_events(c->bus);
        if (r < 0)
                return r;
        pfd = (struct pollfd) { .fd = sd_bus_get_fd(c->bus), .events = (short) r };
        (void) sigprocmask(SIG_BLOCK, NULL, &set);
        sigdelset(&set, SIGINT);
        r = ppoll(&pfd, 1, time_left(c, end, &buf), &set) < 0 && errno != EINTR ? -errno : 0;
        if (interrupted)
                return -EINTR;
        if (r < 0)
                return r;
        r = sd_bus_process(c->bus, NULL);
        return MIN(r, 0);
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        sd_bus_message **reply = userdata;

        *reply = sd_bus_message_ref(m);
        return 0;
}

/* Reports that the user is neither root nor in the group to which the policy of the bus gives access. */
static int report_not_in_group(const Client *c, const sd_bus_error *error) {
        /* cppcheck-suppress getpwuidCalled ; passthroughctl has one thread */
        const struct passwd *user = getpwuid(getuid());

        return report_failure(c->args, error->name,
                              "Only root and members of the group '%s' may talk to passthroughd on this node: "
                              "sudo usermod -aG %s %s, then log in again.",
                              BUS_GROUP, BUS_GROUP, user ? user->pw_name : "USER");
}

/* Reports an error reply as a sentence. The errors of the bus and of sd-bus get their sentences here; the daemon's own
 * errors have one. */
static int report_bus_error(const Client *c, sd_bus_message *reply) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);

        if (sd_bus_error_has_names(error, SD_BUS_ERROR_SERVICE_UNKNOWN, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                return report_failure(c->args, error->name,
                                      "passthroughd is not running on this node: systemctl start passthroughd");
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED) &&
            streq_ptr(sd_bus_message_get_sender(reply), "org.freedesktop.DBus"))
                return report_not_in_group(c, error);
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_ACCESS_DENIED, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED))
                return report_failure(c->args, error->name,
                                      "%s Run it as root, or let a rule of polkit allow it: org.passthroughd1(5).",
                                      error->message ?: "Access denied.");
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_TIMEOUT, SD_BUS_ERROR_DISCONNECTED))
                return report_failure(c->args, error->name,
                                      "passthroughd stopped or did not reply within %u s; see 'journalctl -u "
                                      "passthroughd'.",
                                      (unsigned) (CLIENT_TIMEOUT_USEC / 1000000));
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_UNKNOWN_METHOD, SD_BUS_ERROR_UNKNOWN_OBJECT,
                                   SD_BUS_ERROR_UNKNOWN_INTERFACE, SD_BUS_ERROR_INVALID_ARGS))
                return report_failure(c->args, error->name,
                                      "passthroughd does not know this call; it may be of another version than "
                                      "passthroughctl. %s",
                                      error->message ? error->message : error->name);
        return report_failure(c->args, error->name, "%s",
                              error->message && *error->message ? error->message : error->name);
}

/* Reports an error reply. With --json, prints the second string of the reply if it has one: the refusal as JSON. */
static int report_error_reply(const Client *c, sd_bus_message *reply) {
        const char *sentence, *refusal;

        if (args_has(c->args, OPTION_JSON) && !c->args->problem && sd_bus_message_has_signature(reply, "ss") > 0 &&
            sd_bus_message_read(reply, "ss", &sentence, &refusal) > 0) {
                puts(refusal);
                return EXIT_FAILURE;
        }
        return report_bus_error(c, reply);
}

int client_call(Client *c, sd_bus_message *call, sd_bus_message **ret_reply) {
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        r = sd_bus_call_async(c->bus, &slot, call, on_reply, &reply, CLIENT_TIMEOUT_USEC);
        while (r >= 0 && !reply)
                r = client_turn(c);
        if (r == -EINTR)
                return r;
        if (r < 0 || sd_bus_is_ready(c->bus) <= 0)
                return client_lost(c, r < 0 ? r : -ECONNRESET);
        if (sd_bus_message_is_method_error(reply, NULL)) {
                (void) report_error_reply(c, reply);
                return -EREMOTEIO;
        }
        if (ret_reply)
                *ret_reply = TAKE_PTR(reply);
        return 0;
}

int client_ask(Client *c, const char *member, sd_bus_message **ret_reply, const char *types, ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        va_list ap;
        int r;

        r = client_method(c, member, &call);
        if (r < 0)
                return r;
        va_start(ap, types);
        r = sd_bus_message_appendv(call, types, ap);
        va_end(ap);
        if (r < 0)
                return report_errno(c->args, r, "Cannot build the D-Bus call");
        return client_call(c, call, ret_reply);
}

int client_read_text(const Client *c, sd_bus_message *reply, char **ret) {
        int r = bus_read_reply_text(reply, ret);

        return r < 0 ? client_bad_reply(c, r) : 0;
}
