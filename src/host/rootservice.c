/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The requests to passthroughd-root and their answers, from both sides. */

#include "host/rootservice.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricmanager.h"
#include "host/modprobe.h"
#include "nvml.h"
#include "units.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/strings.h"

/* Time that the service needs besides: systemd starts it, and kills a command that takes too long. */
#define GRACE_USEC    3000000U
#define PAYLOAD_MAX   65536U
#define ADDRESSES_MAX (ROOT_DEVICES_MAX * sizeof(PciAddress))

typedef enum RootAction {
        ROOT_STOP_UNIT,   /* name: of the unit */
        ROOT_START_UNIT,  /* name: of the unit */
        ROOT_CLEAN,       /* name: of the pool; payload: the addresses of the devices */
        ROOT_SET_OPTIONS, /* payload: the text */
        ROOT_REMOVE_OPTIONS,
        ROOT_PLUG, /* name: the UUID of the domain; payload: the action, the seconds, the <hostdev>; with a descriptor
                    */
        ROOT_ACTIVATE,   /* payload: the id of an NVLink partition */
        ROOT_DEACTIVATE, /* payload: the same */
        ROOT_FOLLOW,     /* payload: the ids of the active partitions */
        ROOT_MODULE,     /* payload: the address of a GPU */
} RootAction;

/* The payload of ROOT_PLUG. */
typedef struct PlugPayload {
        uint32_t action, timeout_sec;
        char hostdev[PLUG_HOSTDEV_MAX + 1];
} PlugPayload;

/* The payload follows in the same message. */
typedef struct Request {
        uint32_t action;
        char name[UNIT_NAME_MAX + 1];
        uint64_t end;
} Request;

typedef struct Answer {
        int32_t result, status;
        bool asked;
        FabricReport fabric;
} Answer;

_Static_assert(ADDRESSES_MAX <= PAYLOAD_MAX, "a message holds the addresses");
_Static_assert(sizeof(PlugPayload) <= PAYLOAD_MAX, "a message holds the <hostdev>");

/* A descriptor that goes with a message. */
typedef union Passed {
        char buffer[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
} Passed;

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

        *passed = (Passed){ 0 };
        m->msg_control = passed;
        m->msg_controllen = sizeof(*passed);
        c = CMSG_FIRSTHDR(m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

/* The descriptor of the message, which the caller closes; -1: none. */
static int take_descriptor(struct msghdr *m) {
        const struct cmsghdr *c = CMSG_FIRSTHDR(m);
        int fd = -1;

        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd)))
                memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        return fd;
}

/*
 * A call on a socket with a timeout fails with EINTR when the process goes on after a stop, for example by a freezer.
 * output: a descriptor to pass; -1: none.
 */
static int exchange(const Request *q, const void *payload, size_t size, int output, Answer *ret) {
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
                    Answer *ret) {
        Request q = { .action = action, .end = end };
        int r;

        *ret = (Answer){ 0 };
        if (strlen(name) >= sizeof(q.name) || size > PAYLOAD_MAX)
                return -E2BIG;
        strcpy(q.name, name);
        r = exchange(&q, payload, size, output, ret);
        if (r >= 0)
                return ret->result;
        log_warning_errno(r, "passthroughd-root does not answer: %m");
        return -EHOSTDOWN;
}

static int ask(RootAction action, const char *name, const void *payload, size_t size, uint64_t end, Answer *ret) {
        return ask_with(action, name, payload, size, -1, end, ret);
}

int root_stop_unit(const char *name, uint64_t end) {
        Answer answer;

        return ask(ROOT_STOP_UNIT, name, NULL, 0, end, &answer);
}

int root_start_unit(const char *name, uint64_t end, bool *ret_asked) {
        Answer answer;
        int r = ask(ROOT_START_UNIT, name, NULL, 0, end, &answer);

        *ret_asked = answer.asked;
        return r;
}

int root_clean(const char *pool, const PciAddress *devices, size_t n, uint64_t end, int *ret_status) {
        Answer answer;
        int r = ask(ROOT_CLEAN, pool, devices, n * sizeof(*devices), end, &answer);

        *ret_status = answer.status;
        return r;
}

int root_set_options(const char *text, uint64_t end) {
        Answer answer;

        return ask(text ? ROOT_SET_OPTIONS : ROOT_REMOVE_OPTIONS, "", text, text ? strlen(text) : 0, end, &answer);
}

int root_set_partition(unsigned id, bool active, uint64_t end) {
        Answer answer;

        return ask(active ? ROOT_ACTIVATE : ROOT_DEACTIVATE, "", &id, sizeof(id), end, &answer);
}

int root_follow_partitions(const unsigned *ids, size_t n, uint64_t end, FabricReport *ret) {
        Answer answer;
        int r = ask(ROOT_FOLLOW, "", ids, n * sizeof(*ids), end, &answer);

        *ret = answer.fabric;
        return r;
}

int root_read_module(PciAddress gpu, uint64_t end) {
        Answer answer;

        return ask(ROOT_MODULE, "", &gpu, sizeof(gpu), end, &answer);
}

PlugResult root_plug(const PlugRequest *request, char **ret_text) {
        _cleanup_close_ int output = memfd_create("answer", MFD_CLOEXEC);
        PlugPayload payload = { .action = request->action, .timeout_sec = request->timeout_sec };
        uint64_t patience = (request->timeout_sec + (uint64_t) PLUG_GRACE_SEC) * 1000000U;
        Answer answer;

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

static bool is_stopped_for_jobs(const Config *c, const char *name) {
        for (size_t i = 0; i < c->n_pools; i++)
                for (size_t j = 0; j < c->pools[i].n_stop_services; j++)
                        if (streq(c->pools[i].stop_services[j], name))
                                return true;
        return false;
}

static int clean(const Config *c, const Request *q, const void *payload, size_t size, int *ret_status) {
        const Pool *pool = config_find_pool(c, q->name);
        _cleanup_free_ char *command = NULL, *description = NULL, *addresses = NULL, *unit = NULL;
        _cleanup_free_ const char **words = NULL;
        const size_t n = size / sizeof(PciAddress);
        char *rest, *word;
        size_t used = 0;

        if (!pool || !pool->cleaner)
                return -EPERM;
        if (n == 0 || n > ROOT_DEVICES_MAX || n * sizeof(PciAddress) != size)
                return -EINVAL;
        rest = command = strdup(pool->cleaner);
        words = calloc(CLEANER_WORDS_MAX + n + 1, sizeof(*words));
        addresses = calloc(n, PCI_ADDRESS_STRING_MAX);
        if (!command || !words || !addresses ||
            string_replace(&description, "Cleaning devices of pool %s", pool->name) < 0 ||
            string_replace(&unit, "passthroughd-clean-%d-%s.service", (int) getpid(), pool->name) < 0)
                return -ENOMEM;
        while (used < CLEANER_WORDS_MAX && (word = string_next_word(&rest)))
                words[used++] = word;
        for (size_t i = 0; i < n; i++) {
                PciAddress device;

                memcpy(&device, (const char *) payload + i * sizeof(device), sizeof(device));
                words[used++] = pci_address_format(device, addresses + i * PCI_ADDRESS_STRING_MAX);
        }
        return unit_run(unit, description, words, q->end, ret_status);
}

static int set_options(const char *directory, const char *text) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        _cleanup_close_ int dir = -1;
        int r = sysfs_new("/", &fs);

        if (r < 0)
                return r;
        dir = modprobe_open(fs, directory);
        return dir < 0 ? dir : modprobe_set(dir, text);
}

static int plug(const Config *c, const Request *q, const void *payload, size_t size, int output, int *ret_status) {
        PlugRequest request;
        PlugPayload p;

        if (!c->libvirt)
                return -EPERM;
        if (size != sizeof(p) || output < 0)
                return -EINVAL;
        memcpy(&p, payload, sizeof(p));
        p.hostdev[sizeof(p.hostdev) - 1] = '\0';
        if (p.action >= _PLUG_ACTION_MAX)
                return -EINVAL;
        request = (PlugRequest){
                .action = (PlugAction) p.action,
                .uuid = q->name,
                .hostdev = p.hostdev,
                .timeout_sec = p.timeout_sec < PLUG_SECONDS_MAX ? p.timeout_sec : PLUG_SECONDS_MAX,
        };
        *ret_status = (int) plug_make(c->libvirt, &request, output);
        return 0;
}

/* The connection of the request, for on_alarm(). */
static int answer_fd = -1;

/* A library of NVIDIA hangs. */
static void on_alarm(int signal_number _unused_) {
        static const Answer late = { .result = -ETIMEDOUT };

        (void) send(answer_fd, &late, sizeof(late), MSG_NOSIGNAL | MSG_DONTWAIT);
        _exit(EXIT_FAILURE);
}

/* Ends the process when the time of the request is up. */
static void set_alarm(const Request *q, int fd) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        answer_fd = fd;
        (void) signal(SIGALRM, on_alarm);
        (void) alarm((unsigned) (q->end > now ? (q->end - now) / 1000000U : 0) + 1);
}

static int read_module(const Request *q, const void *payload, size_t size, int fd) {
        PciAddress gpu;
        int r;

        if (size != sizeof(gpu))
                return -EINVAL;
        memcpy(&gpu, payload, sizeof(gpu));
        set_alarm(q, fd);
        r = nvml_read_module(gpu);
        (void) alarm(0);
        return r;
}

static int ask_manager(const Config *c, const Request *q, const unsigned *ids, size_t n, int fd, FabricReport *report) {
        _cleanup_(cleanup_fabric_manager_close) FabricManager *f = NULL;
        int r;

        set_alarm(q, fd);
        r = fabric_manager_open(c->fabric_manager, &f);
        if (r == 0)
                r = q->action == ROOT_FOLLOW
                            ? fabric_manager_follow(f, ids, n, report)
                            : fabric_manager_set(f, fabric_table_find(&c->fabric, ids[0]), q->action == ROOT_ACTIVATE);
        (void) alarm(0);
        return r;
}

static int set_partitions(const Config *c, const Request *q, const void *payload, size_t size, int fd,
                          FabricReport *report) {
        unsigned ids[FABRIC_PARTITIONS_MAX];
        size_t n = size / sizeof(*ids);

        if (!c->fabric_manager)
                return -EPERM;
        if (n > ELEMENTSOF(ids) || n * sizeof(*ids) != size || (n != 1 && q->action != ROOT_FOLLOW))
                return -EINVAL;
        memcpy(ids, payload, size);
        for (size_t i = 0; i < n; i++)
                if (!fabric_table_find(&c->fabric, ids[i]))
                        return -EPERM;
        return ask_manager(c, q, ids, n, fd, report);
}

static int serve(const Config *c, const char *modprobe_directory, const Request *q, const char *payload, size_t size,
                 int fd, int output, Answer *answer) {
        switch (q->action) {
        case ROOT_STOP_UNIT:
                return is_stopped_for_jobs(c, q->name) ? unit_stop(q->name, q->end) : -EPERM;
        case ROOT_START_UNIT:
                answer->asked = true;
                return is_stopped_for_jobs(c, q->name) ? unit_start(q->name, q->end, &answer->asked) : -EPERM;
        case ROOT_CLEAN:
                return clean(c, q, payload, size, &answer->status);
        case ROOT_SET_OPTIONS:
                return strlen(payload) == size ? set_options(modprobe_directory, payload) : -EINVAL;
        case ROOT_REMOVE_OPTIONS:
                return set_options(modprobe_directory, NULL);
        case ROOT_PLUG:
                return plug(c, q, payload, size, output, &answer->status);
        case ROOT_ACTIVATE:
        case ROOT_DEACTIVATE:
        case ROOT_FOLLOW:
                return set_partitions(c, q, payload, size, fd, &answer->fabric);
        case ROOT_MODULE:
                return read_module(q, payload, size, fd);
        default:
                return -EINVAL;
        }
}

int root_answer(int fd, const Config *c, const char *modprobe_directory) {
        _cleanup_free_ char *payload = calloc(1, PAYLOAD_MAX + 1);
        Answer answer = { 0 };
        Request q;
        struct iovec parts[] = { { &q, sizeof(q) }, { payload, PAYLOAD_MAX } };
        Passed passed;
        struct msghdr message = { .msg_iov = parts,
                                  .msg_iovlen = ELEMENTSOF(parts),
                                  .msg_control = &passed,
                                  .msg_controllen = sizeof(passed) };
        _cleanup_close_ int output = -1;
        ssize_t n;

        if (!payload)
                return -ENOMEM;
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
        if (n < 0)
                return -errno;
        output = take_descriptor(&message);
        if ((size_t) n < sizeof(q) || message.msg_flags & MSG_TRUNC)
                return -EBADMSG;
        q.name[sizeof(q.name) - 1] = '\0';
        answer.result = serve(c, modprobe_directory, &q, payload, (size_t) n - sizeof(q), fd, output, &answer);
        if (answer.result == -EPERM)
                log_warning("Refused: the configuration has no StopServices=, CleanerCommand=, Libvirt= or Manager= "
                            "for '%s'.",
                            QUOTABLE(q.name));
        return send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0 ? -errno : 0;
}
