/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The requests to passthroughd-root. */

#include "host/rootservice.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "rootservice-internal.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/strings.h"

/* Time that the service needs besides: systemd starts it, and kills a command that takes too long. */
#define GRACE_USEC 8000000U

static const char *socket_path = ROOT_SOCKET;

void root_service_use_socket(const char *path) {
        socket_path = path;
}

static int connect_service(uint64_t end) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        uint64_t now = clock_usec(CLOCK_MONOTONIC), patience = (end > now ? end - now : 0) + GRACE_USEC;
        const struct timeval time = { .tv_sec = (time_t) (patience / 1000000U),
                                      .tv_usec = (suseconds_t) (patience % 1000000U) };
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (fd < 0)
                return -errno;
        if (strlen(socket_path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, socket_path);
        if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) < 0 ||
            TEMP_FAILURE_RETRY(connect(fd, (const struct sockaddr *) &address, sizeof(address))) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static void pass_descriptor(struct msghdr *m, Passed *passed, int fd) {
        struct cmsghdr *c;

        *passed = (Passed) { 0 };
        m->msg_control = passed;
        m->msg_controllen = sizeof(*passed);
        c = CMSG_FIRSTHDR(m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

/*
 * A call on a socket with a timeout fails with EINTR when the process goes on after a stop, for example by a freezer.
 * output: a descriptor to pass; -1: none.
 */
static int exchange(const RootRequest *q, const void *payload, size_t size, int output, RootAnswer *ret) {
        _cleanup_close_ int fd = connect_service(q->end);
        struct iovec parts[] = { { (void *) q, sizeof(*q) }, { (void *) payload, size } };
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = ELEMENTSOF(parts) };
        Passed passed;
        ssize_t n;

        if (fd < 0)
                return fd;
        if (output >= 0)
                pass_descriptor(&message, &passed, output);
        if (TEMP_FAILURE_RETRY(sendmsg(fd, &message, MSG_NOSIGNAL)) < 0)
                return -errno;
        n = TEMP_FAILURE_RETRY(recv(fd, ret, sizeof(*ret), 0));
        if (n < 0)
                return -errno;
        return n == sizeof(*ret) ? 0 : -ECONNRESET;
}

/* Returns the result of the answer. output: as exchange(). */
static int ask_with(RootAction action, const char *name, const void *payload, size_t size, int output, uint64_t end,
                    RootAnswer *ret) {
        RootRequest q = { .action = action, .end = end };
        int r;

        *ret = (RootAnswer) { 0 };
        if (strlen(name) >= sizeof(q.name) || size > ROOT_PAYLOAD_MAX)
                return -E2BIG;
        strcpy(q.name, name);
        r = exchange(&q, payload, size, output, ret);
        if (r >= 0)
                return ret->result;
        log_warning_errno(r, "passthroughd-root does not answer: %m");
        return -EHOSTDOWN;
}

static int ask(RootAction action, const char *name, const void *payload, size_t size, uint64_t end, RootAnswer *ret) {
        return ask_with(action, name, payload, size, -1, end, ret);
}

int root_stop_unit(const char *name, uint64_t end) {
        RootAnswer answer;

        return ask(ROOT_STOP_UNIT, name, NULL, 0, end, &answer);
}

int root_start_unit(const char *name, uint64_t end, bool *ret_asked) {
        RootAnswer answer;
        int r = ask(ROOT_START_UNIT, name, NULL, 0, end, &answer);

        *ret_asked = answer.asked;
        return r;
}

int root_clean(const char *pool, const PciAddress *devices, size_t n, uint64_t end, int *ret_status) {
        RootAnswer answer;
        int r = ask(ROOT_CLEAN, pool, devices, n * sizeof(*devices), end, &answer);

        *ret_status = answer.status;
        return r;
}

int root_set_options(const char *text, uint64_t end) {
        RootAnswer answer;

        return ask(text ? ROOT_SET_OPTIONS : ROOT_REMOVE_OPTIONS, "", text, text ? strlen(text) : 0, end, &answer);
}

int root_set_partition(unsigned id, bool active, uint64_t end) {
        RootAnswer answer;

        return ask(active ? ROOT_ACTIVATE : ROOT_DEACTIVATE, "", &id, sizeof(id), end, &answer);
}

int root_follow_partitions(const unsigned *ids, size_t n, uint64_t active, uint64_t end, FabricReport *ret) {
        PartitionsPayload payload = { .active = active, .n = (uint32_t) n };
        RootAnswer answer;
        int r;

        memcpy(payload.ids, ids, n * sizeof(*ids));
        r = ask(ROOT_FOLLOW, "", &payload, sizeof(payload), end, &answer);
        *ret = answer.fabric;
        return r;
}

static int ask_about_gpu(RootAction action, PciAddress gpu, uint64_t end) {
        RootAnswer answer;

        return ask(action, "", &gpu, sizeof(gpu), end, &answer);
}

int root_read_module(PciAddress gpu, uint64_t end) {
        return ask_about_gpu(ROOT_MODULE, gpu, end);
}

static int ask_about_gpus(RootAction action, const PciAddress *gpus, size_t n, uint64_t end, int32_t *results) {
        RootAnswer answer;
        int r = ask(action, "", gpus, n * sizeof(*gpus), end, &answer);

        memcpy(results, answer.gpus, n * sizeof(*results));
        return r;
}

int root_read_persistence(const PciAddress *gpus, size_t n, uint64_t end, int32_t *results) {
        return ask_about_gpus(ROOT_PERSISTENCE, gpus, n, end, results);
}

int root_set_persistence(PciAddress gpu, uint64_t end) {
        return ask_about_gpu(ROOT_SET_PERSISTENCE, gpu, end);
}

int root_check_health(const PciAddress *gpus, size_t n, uint64_t end, int32_t *results) {
        return ask_about_gpus(ROOT_CHECK_GPUS, gpus, n, end, results);
}

PlugResult root_plug(const PlugRequest *request, char **ret_text) {
        _cleanup_close_ int output = memfd_create("answer", MFD_CLOEXEC);
        PlugPayload payload = { .action = request->action, .timeout_sec = request->timeout_sec };
        uint64_t patience = (request->timeout_sec + (uint64_t) PLUG_GRACE_SEC) * 1000000U;
        RootAnswer answer;

        *ret_text = NULL;
        if (output < 0 || strlen(request->hostdev) >= sizeof(payload.hostdev))
                return PLUG_FAILED;
        strcpy(payload.hostdev, request->hostdev);
        if (ask_with(ROOT_PLUG, request->uuid, &payload, sizeof(payload), output,
                     clock_usec(CLOCK_MONOTONIC) + patience, &answer) < 0 ||
            answer.status < 0 || answer.status >= _PLUG_RESULT_MAX ||
            plug_read_text(output, request->action == PLUG_DESCRIBE && answer.status == PLUG_DONE, ret_text) < 0)
                return PLUG_UNKNOWN;
        return (PlugResult) answer.status;
}

/* The service writes the array of devices to the file. */
static int take_guests(int output, XenGuests *ret) {
        off_t size = lseek(output, 0, SEEK_END);
        size_t n = (size_t) size / sizeof(*ret->devices);

        if (size < 0)
                return -errno;
        if (n > XEN_GUEST_DEVICES_MAX || n * sizeof(*ret->devices) != (size_t) size)
                return -EBADMSG;
        ret->devices = calloc(n + 1, sizeof(*ret->devices));
        if (!ret->devices)
                return -ENOMEM;
        if (pread(output, ret->devices, (size_t) size, 0) != (ssize_t) size)
                return -EBADMSG;
        ret->n = n;
        for (size_t i = 0; i < n; i++)
                ret->devices[i].name[XEN_NAME_MAX - 1] = '\0';
        return 0;
}

int root_read_xen_guests(uint64_t end, XenGuests *ret) {
        _cleanup_close_ int output = memfd_create("guests", MFD_CLOEXEC);
        RootAnswer answer;
        int r = output < 0 ? -errno : ask_with(ROOT_XEN_GUESTS, "", NULL, 0, output, end, &answer);

        return r < 0 ? r : take_guests(output, ret);
}
