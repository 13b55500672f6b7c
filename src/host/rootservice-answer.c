/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughd-root's answers to the requests. */

#include "host/rootservice.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabricmanager.h"
#include "host/modprobe.h"
#include "nvml.h"
#include "rootservice-internal.h"
#include "units.h"
#include "util/clock.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/program.h"
#include "util/strings.h"
#include "xenstore.h"

static int check_unit(const Config *c, const char *name) {
        for (size_t i = 0; i < c->n_pools; i++)
                for (size_t j = 0; j < c->pools[i].n_stop_services; j++)
                        if (streq(c->pools[i].stop_services[j], name))
                                return 0;
        return log_denied("the configuration has no StopServices= with '%s'.", QUOTABLE(name));
}

/* Returns the number of addresses, 1 to max. -EPERM: no device can have one of them, which must not be formatted. */
static int read_addresses(const void *payload, size_t size, size_t max, PciAddress *ret) {
        const size_t n = size / sizeof(*ret);

        if (n == 0 || n > max || n * sizeof(*ret) != size)
                return -EINVAL;
        memcpy(ret, payload, size);
        for (size_t i = 0; i < n; i++)
                if (!pci_address_is_valid(ret[i]))
                        return log_denied("no device can have an address of the request.");
        return (int) n;
}

static int clean(const RootHost *h, const RootRequest *q, const void *payload, size_t size, int *ret_status) {
        const Pool *pool = config_find_pool(h->config, q->name);
        _cleanup_free_ char *command = NULL, *description = NULL, *addresses = NULL, *unit = NULL;
        _cleanup_free_ const char **words = NULL;
        _cleanup_free_ PciAddress *devices = calloc(ROOT_DEVICES_MAX, sizeof(*devices));
        char *rest, *word;
        size_t used = 0, n;
        int r;

        if (!pool || !pool->cleaner)
                return log_denied("the configuration has no CleanerCommand= for pool '%s'.", QUOTABLE(q->name));
        r = devices ? read_addresses(payload, size, ROOT_DEVICES_MAX, devices) : -ENOMEM;
        if (r < 0)
                return r;
        n = (size_t) r;
        r = root_check_clean(h, pool, devices, n);
        if (r < 0)
                return r;
        rest = command = strdup(pool->cleaner);
        words = calloc(CLEANER_WORDS_MAX + n + 1, sizeof(*words));
        addresses = calloc(n, PCI_ADDRESS_STRING_MAX);
        if (!command || !words || !addresses ||
            string_replace(&description, "Cleaning devices of pool %s", pool->name) < 0 ||
            string_replace(&unit, "passthroughd-clean-%d-%s.service", (int) getpid(), pool->name) < 0)
                return -ENOMEM;
        while (used < CLEANER_WORDS_MAX && (word = string_next_word(&rest)))
                words[used++] = word;
        for (size_t i = 0; i < n; i++)
                words[used++] = pci_address_format(devices[i], addresses + i * PCI_ADDRESS_STRING_MAX);
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

static int plug(const RootHost *h, const RootRequest *q, const void *payload, size_t size, int output,
                int *ret_status) {
        PlugRequest request;
        PlugPayload p;
        int r;

        if (!h->config->libvirt)
                return log_denied("the configuration has no Libvirt=.");
        if (size != sizeof(p) || output < 0)
                return -EINVAL;
        memcpy(&p, payload, sizeof(p));
        p.hostdev[sizeof(p.hostdev) - 1] = '\0';
        if (p.action >= _PLUG_ACTION_MAX)
                return -EINVAL;
        r = root_check_plug(h, (PlugAction) p.action, p.hostdev);
        if (r < 0) {
                static const char refused[] = "passthroughd-root refuses it and logs the reason";

                *ret_status = PLUG_FAILED;
                return write_all_fd(output, refused, strlen(refused));
        }
        request = (PlugRequest) {
                .action = (PlugAction) p.action,
                .uuid = q->name,
                .hostdev = p.hostdev,
                .timeout_sec = p.timeout_sec < PLUG_SECONDS_MAX ? p.timeout_sec : PLUG_SECONDS_MAX,
        };
        *ret_status = (int) plug_make(h->config->libvirt, &request, output);
        return 0;
}

/* The connection of the request and the answer, for on_alarm(). */
static int answer_fd = -1;
static RootAnswer *late_answer;

/* A library of NVIDIA hangs, or xenstore. */
static void on_alarm(int signal_number _unused_) {
        late_answer->result = -ETIMEDOUT;
        (void) send(answer_fd, late_answer, sizeof(*late_answer), MSG_NOSIGNAL | MSG_DONTWAIT);
        _exit(EXIT_FAILURE);
}

/* Ends the process when the time of the request is up. */
static void set_alarm(uint64_t end, int fd, RootAnswer *answer) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        answer_fd = fd;
        late_answer = answer;
        (void) signal(SIGALRM, on_alarm);
        (void) alarm((unsigned) (end > now ? (end - now) / 1000000U : 0) + 1);
}

/* The driver lets a process with CAP_SYS_ADMIN alone change persistence mode, so systemd runs this program. */
static int set_persistence(const RootRequest *q, PciAddress gpu) {
        _cleanup_free_ char *unit = NULL, *description = NULL, *option = NULL;
        char program[PATH_MAX];
        int status = 0, r = program_path("passthroughd-root", program);

        if (r >= 0 && (string_replace(&unit, "passthroughd-persistence-%d.service", (int) getpid()) < 0 ||
                       string_replace(&description, "Turning on persistence mode of %s", PCI_ADDRESS_STR(gpu)) < 0 ||
                       string_replace(&option, "--persistence=%s", PCI_ADDRESS_STR(gpu)) < 0))
                r = -ENOMEM;
        if (r >= 0)
                r = unit_run(unit, description, (const char *const[]) { program, option, NULL }, q->end, &status);
        if (r > 0)
                log_warning("Failed to turn on persistence mode of %s again, see the log of %s.", PCI_ADDRESS_STR(gpu),
                            unit);
        return r < 0 ? log_warning_errno(r, "Failed to turn on persistence mode of %s again: %m", PCI_ADDRESS_STR(gpu))
                     : 0;
}

int root_enable_persistence(const char *gpu) {
        PciAddress address;
        int r = pci_address_parse(gpu, &address);

        if (r >= 0)
                r = nvml_set_persistence(address);
        return r < 0 ? log_error_errno(r, "Failed to turn on persistence mode of %s: %m", QUOTABLE(gpu)) : 0;
}

/* A machine without the library, or a GPU that it does not know, has no state to check. */
static int check_health(const RootHost *h, PciAddress gpu) {
        /* With Manager=, a GPU without a partition is registered with none, and Fabric Manager is asked instead. */
        int r = nvml_check_gpu(gpu, !h->config->fabric_manager);

        if (r == -ENODATA)
                log_info("NVIDIA's library does not know %s, so its health is not checked.", PCI_ADDRESS_STR(gpu));
        return r == -ENODATA || r == -ELIBACC ? 0 : r;
}

/* Each GPU has the same part of the time: the driver initializes one after the other, which takes seconds for each. */
static void ask_each(const RootHost *h, const RootRequest *q, const PciAddress *gpus, size_t n, int fd,
                     RootAnswer *answer) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC), part = q->end > now ? (q->end - now) / n : 0;

        for (size_t i = 0; i < n; i++) {
                if (answer->gpus[i] < 0)
                        continue;
                answer->gpus[i] = -ETIMEDOUT;
                set_alarm(clock_usec(CLOCK_MONOTONIC) + part, fd, answer);
                answer->gpus[i] =
                        q->action == ROOT_CHECK_GPUS ? check_health(h, gpus[i]) : nvml_read_persistence(gpus[i]);
        }
}

static int ask_about_gpus(const RootHost *h, const RootRequest *q, const void *payload, size_t size, int fd,
                          RootAnswer *answer) {
        const bool several = q->action == ROOT_PERSISTENCE || q->action == ROOT_CHECK_GPUS;
        PciAddress gpus[ROOT_GPUS_MAX];
        int r = read_addresses(payload, size, several ? ROOT_GPUS_MAX : 1, gpus);
        size_t n;

        if (r < 0)
                return r;
        n = (size_t) r;
        r = root_check_gpus(h, (RootAction) q->action, gpus, n, answer->gpus);
        if (r < 0 || q->action == ROOT_SET_PERSISTENCE)
                return r < 0 ? r : set_persistence(q, gpus[0]);
        if (several)
                ask_each(h, q, gpus, n, fd, answer);
        else {
                set_alarm(q->end, fd, answer);
                r = nvml_read_module(gpus[0]);
        }
        (void) alarm(0);
        return r;
}

/* Does not ask the configuration: a wrong Hypervisor= must not hide a guest. */
static int read_xen_guests(const RootRequest *q, int fd, int output, RootAnswer *answer) {
        _cleanup_(xen_guests_done) XenGuests guests = { 0 };
        size_t size;
        int r;

        if (output < 0)
                return -EINVAL;
        set_alarm(q->end, fd, answer);
        r = xenstore_read_guests(&guests);
        (void) alarm(0);
        size = guests.n * sizeof(*guests.devices);
        if (r == 0 && size > 0 && write(output, guests.devices, size) != (ssize_t) size)
                return -EIO;
        return r;
}

static int ask_manager(const Config *c, const RootRequest *q, const PartitionsPayload *p, int fd, RootAnswer *answer) {
        _cleanup_(cleanup_fabric_manager_close) FabricManager *f = NULL;
        int r;

        set_alarm(q->end, fd, answer);
        r = fabric_manager_open(c->fabric_manager, &f);
        if (r == 0)
                r = q->action == ROOT_FOLLOW ? fabric_manager_follow(f, p->ids, p->n, p->active, &answer->fabric)
                                             : fabric_manager_set(f, fabric_table_find(&c->fabric, p->ids[0]),
                                                                  q->action == ROOT_ACTIVATE);
        (void) alarm(0);
        return r;
}

static int set_partitions(const RootHost *h, const RootRequest *q, const void *payload, size_t size, int fd,
                          RootAnswer *answer) {
        PartitionsPayload p = { .active = 1, .n = 1 };
        int r;

        if (!h->config->fabric_manager)
                return log_denied("the configuration has no Manager=.");
        if (size != (q->action == ROOT_FOLLOW ? sizeof(p) : sizeof(*p.ids)))
                return -EINVAL;
        memcpy(q->action == ROOT_FOLLOW ? (void *) &p : (void *) p.ids, payload, size);
        if (p.n > ELEMENTSOF(p.ids))
                return -EINVAL;
        r = root_check_partitions(h, &p);
        return r < 0 ? r : ask_manager(h->config, q, &p, fd, answer);
}

static int serve(const RootHost *h, const RootRequest *q, const char *payload, size_t size, int fd, int output,
                 RootAnswer *answer) {
        const Config *c = h->config;
        int r;

        switch (q->action) {
        case ROOT_STOP_UNIT:
                r = check_unit(c, q->name);
                return r < 0 ? r : unit_stop(q->name, q->end);
        case ROOT_START_UNIT:
                answer->asked = true;
                r = check_unit(c, q->name);
                return r < 0 ? r : unit_start(q->name, q->end, &answer->asked);
        case ROOT_CLEAN:
                return clean(h, q, payload, size, &answer->status);
        case ROOT_SET_OPTIONS:
                if (strlen(payload) != size)
                        return -EINVAL;
                r = root_check_options(c, payload);
                return r < 0 ? r : set_options(h->modprobe_directory, payload);
        case ROOT_REMOVE_OPTIONS:
                return set_options(h->modprobe_directory, NULL);
        case ROOT_PLUG:
                return plug(h, q, payload, size, output, &answer->status);
        case ROOT_ACTIVATE:
        case ROOT_DEACTIVATE:
        case ROOT_FOLLOW:
                return set_partitions(h, q, payload, size, fd, answer);
        case ROOT_MODULE:
        case ROOT_PERSISTENCE:
        case ROOT_SET_PERSISTENCE:
        case ROOT_CHECK_GPUS:
                return ask_about_gpus(h, q, payload, size, fd, answer);
        case ROOT_XEN_GUESTS:
                return read_xen_guests(q, fd, output, answer);
        default:
                return -EINVAL;
        }
}

/* The descriptor of the message, which the caller closes; -1: none. */
static int take_descriptor(struct msghdr *m) {
        const struct cmsghdr *c = CMSG_FIRSTHDR(m);
        int fd = -1;

        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd)))
                memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        return fd;
}

int root_answer(int fd, const RootHost *h) {
        _cleanup_free_ char *payload = calloc(1, ROOT_PAYLOAD_MAX + 1);
        RootAnswer answer = { 0 };
        RootRequest q;
        struct iovec parts[] = { { &q, sizeof(q) }, { payload, ROOT_PAYLOAD_MAX } };
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
        answer.result = serve(h, &q, payload, (size_t) n - sizeof(q), fd, output, &answer);
        return send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0 ? -errno : 0;
}
