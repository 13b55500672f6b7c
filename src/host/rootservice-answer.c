/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers requests to passthroughd-root. */

#include "host/rootservice.h"

#include <errno.h>
#include <signal.h>
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

/* A request, and its answer. */
typedef struct RootCall {
        const RootHost *host;
        int fd; /* the client's connection */
        RootAction action;
        RootRequest q;
        const char *payload;
        size_t size;
        RootAnswer answer;
        char *rest; /* what follows the answer in the message; owned */
        size_t rest_size;
} RootCall;

static int check_unit(const Config *c, const char *name) {
        for (size_t i = 0; i < c->n_pools; i++)
                for (size_t j = 0; j < c->pools[i].n_stop_services; j++)
                        if (streq(c->pools[i].stop_services[j], name))
                                return 0;
        return log_denied("the configuration has no StopServices= with '%s'.", QUOTABLE(name));
}

/* Reads 1 to max addresses from the payload. Returns their number. -EINVAL: the payload has another number of
 * addresses. -EPERM: no device can have one of the addresses. Such an address must not be formatted. */
static int read_addresses(const RootCall *c, size_t max, PciAddress *ret) {
        const size_t n = c->size / sizeof(*ret);

        if (n == 0 || n > max || n * sizeof(*ret) != c->size)
                return -EINVAL;
        memcpy(ret, c->payload, c->size);
        for (size_t i = 0; i < n; i++)
                if (!pci_address_is_valid(ret[i]))
                        return log_denied("no device can have an address of the request.");
        return (int) n;
}

static int clean(RootCall *c) {
        const Pool *pool = config_find_pool(c->host->config, c->q.name);
        _cleanup_free_ char *command = NULL, *description = NULL, *addresses = NULL, *unit = NULL;
        _cleanup_free_ const char **words = NULL;
        _cleanup_free_ PciAddress *devices = calloc(ROOT_DEVICES_MAX, sizeof(*devices));
        char *rest, *word;
        size_t used = 0, n;
        int r;

        if (!pool || !pool->cleaner)
                return log_denied("the configuration has no CleanerCommand= for pool '%s'.", QUOTABLE(c->q.name));
        r = devices ? read_addresses(c, ROOT_DEVICES_MAX, devices) : -ENOMEM;
        if (r < 0)
                return r;
        n = (size_t) r;
        r = root_check_clean(c->host, pool, devices, n);
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
        return unit_run(unit, description, words, c->q.end, &c->answer.status);
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

static int plug(RootCall *c) {
        const char *libvirt = c->host->config->libvirt;
        PlugRequest request;
        PlugPayload p;
        int r;

        if (!libvirt)
                return log_denied("the configuration has no Libvirt=.");
        if (c->size != sizeof(p))
                return -EINVAL;
        memcpy(&p, c->payload, sizeof(p));
        p.hostdev[sizeof(p.hostdev) - 1] = '\0';
        if (p.action >= _PLUG_ACTION_MAX)
                return -EINVAL;
        request = (PlugRequest) {
                .action = (PlugAction) p.action,
                .uuid = c->q.name,
                .hostdev = p.hostdev,
                .timeout_sec = p.timeout_sec < PLUG_SECONDS_MAX ? p.timeout_sec : PLUG_SECONDS_MAX,
        };
        r = root_check_plug(c->host, request.action, p.hostdev);
        c->rest = r < 0 ? strdup("passthroughd-root refuses it and logs the reason") : NULL;
        c->answer.status = (int) (r < 0 ? PLUG_FAILED : plug_make(libvirt, &request, &c->rest));
        c->rest_size = c->rest ? strlen(c->rest) : 0;
        return 0;
}

static int send_answer(const RootCall *c, int result) {
        const struct iovec parts[] = { { (void *) &c->answer, sizeof(c->answer) }, { c->rest, c->rest_size } };

        return wire_send(c->fd, result, parts, ELEMENTSOF(parts));
}

static const RootCall *late_call;

/* Ends the process at the deadline: NVIDIA's library, Fabric Manager or xenstore hangs. */
static void on_alarm(int signal_number _unused_) {
        (void) send_answer(late_call, -ETIMEDOUT);
        _exit(EXIT_FAILURE);
}

/* Starts the alarm for `end`, the deadline of the request or of the question about one GPU. */
static void set_alarm(const RootCall *c, uint64_t end) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        late_call = c;
        (void) signal(SIGALRM, on_alarm);
        (void) alarm((unsigned) (end > now ? (end - now) / 1000000U : 0) + 1);
}

/* Turns on persistence mode by a transient unit: NVIDIA's driver requires CAP_SYS_ADMIN, which this process lacks. */
static int set_persistence(const RootCall *c, PciAddress gpu) {
        _cleanup_free_ char *unit = NULL, *description = NULL, *option = NULL;
        char program[PATH_MAX];
        int status = 0, r = program_path("passthroughd-root", program);

        if (r >= 0 && (string_replace(&unit, "passthroughd-persistence-%d.service", (int) getpid()) < 0 ||
                       string_replace(&description, "Turning on persistence mode of %s", PCI_ADDRESS_STR(gpu)) < 0 ||
                       string_replace(&option, "--persistence=%s", PCI_ADDRESS_STR(gpu)) < 0))
                r = -ENOMEM;
        if (r >= 0)
                r = unit_run(unit, description, (const char *const[]) { program, option, NULL }, c->q.end, &status);
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

/* Returns the health of a GPU as nvml_check_gpu() does. Returns 0 if the library is missing, fails or does not know the
 * GPU: then nothing is known against the GPU. */
static int check_health(const RootHost *h, PciAddress gpu) {
        /* With Manager=, do not check the GPU's registration with Fabric Manager: GPUs outside of partitions are not
         * registered. */
        int r = nvml_check_gpu(gpu, !h->config->fabric_manager);

        if (r == -ENODATA)
                log_info("NVIDIA's library does not know %s, so its health is not checked.", PCI_ADDRESS_STR(gpu));
        return r == -ENODATA || r == -ELIBACC ? 0 : r;
}

/* Queries one GPU after the other, each with an equal part of the time: initializing a GPU takes its driver seconds.
 * Skips GPUs that root_check_gpus() has refused. */
static void ask_each(RootCall *c, const PciAddress *gpus, size_t n) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC), part = c->q.end > now ? (c->q.end - now) / n : 0;

        for (size_t i = 0; i < n; i++) {
                int32_t *result = &c->answer.gpus[i];

                if (*result < 0)
                        continue;
                *result = -ETIMEDOUT;
                set_alarm(c, clock_usec(CLOCK_MONOTONIC) + part);
                *result =
                        c->action == ROOT_CHECK_GPUS ? check_health(c->host, gpus[i]) : nvml_read_persistence(gpus[i]);
        }
}

static int ask_about_gpus(RootCall *c) {
        const bool several = c->action == ROOT_PERSISTENCE || c->action == ROOT_CHECK_GPUS;
        PciAddress gpus[ROOT_GPUS_MAX];
        int n = read_addresses(c, several ? ROOT_GPUS_MAX : 1, gpus), r;

        if (n < 0)
                return n;
        r = root_check_gpus(c->host, c->action, gpus, (size_t) n, c->answer.gpus);
        if (r < 0 || c->action == ROOT_SET_PERSISTENCE)
                return r < 0 ? r : set_persistence(c, gpus[0]);
        if (several)
                ask_each(c, gpus, (size_t) n);
        else {
                set_alarm(c, c->q.end);
                r = nvml_read_module(gpus[0]);
        }
        (void) alarm(0);
        return r;
}

/* Lists the devices of guests whatever Hypervisor= is: a wrong setting must not hide a guest. */
static int read_xen_guests(RootCall *c) {
        _cleanup_(xen_guests_done) XenGuests guests = { 0 };
        int r;

        set_alarm(c, c->q.end);
        r = xenstore_read_guests(&guests);
        (void) alarm(0);
        c->rest = (char *) TAKE_PTR(guests.devices);
        c->rest_size = r == 0 ? guests.n * sizeof(*guests.devices) : 0;
        return r;
}

static int ask_manager(RootCall *c, const PartitionsPayload *p) {
        _cleanup_(cleanup_fabric_manager_close) FabricManager *f = NULL;
        const Config *config = c->host->config;
        int r;

        set_alarm(c, c->q.end);
        r = fabric_manager_open(config->fabric_manager, &f);
        if (r == 0)
                r = c->action == ROOT_FOLLOW ? fabric_manager_follow(f, p->ids, p->n, p->active, &c->answer.fabric)
                                             : fabric_manager_set(f, fabric_table_find(&config->fabric, p->ids[0]),
                                                                  c->action == ROOT_ACTIVATE);
        (void) alarm(0);
        return r;
}

static int set_partitions(RootCall *c) {
        PartitionsPayload p = { .active = 1, .n = 1 };
        int r;

        if (!c->host->config->fabric_manager)
                return log_denied("the configuration has no Manager=.");
        if (c->size != (c->action == ROOT_FOLLOW ? sizeof(p) : sizeof(*p.ids)))
                return -EINVAL;
        memcpy(c->action == ROOT_FOLLOW ? (void *) &p : (void *) p.ids, c->payload, c->size);
        if (p.n > ELEMENTSOF(p.ids))
                return -EINVAL;
        r = root_check_partitions(c->host, &p);
        return r < 0 ? r : ask_manager(c, &p);
}

static int serve(RootCall *c) {
        const RootHost *h = c->host;
        int r;

        switch (c->action) {
        case ROOT_STOP_UNIT:
                r = check_unit(h->config, c->q.name);
                return r < 0 ? r : unit_stop(c->q.name, c->q.end);
        case ROOT_START_UNIT:
                c->answer.asked = true;
                r = check_unit(h->config, c->q.name);
                return r < 0 ? r : unit_start(c->q.name, c->q.end, &c->answer.asked);
        case ROOT_CLEAN:
                return clean(c);
        case ROOT_SET_OPTIONS:
                if (strlen(c->payload) != c->size)
                        return -EINVAL;
                r = root_check_options(h->config, c->payload);
                return r < 0 ? r : set_options(h->modprobe_directory, c->payload);
        case ROOT_REMOVE_OPTIONS:
                return set_options(h->modprobe_directory, NULL);
        case ROOT_PLUG:
                return plug(c);
        case ROOT_ACTIVATE:
        case ROOT_DEACTIVATE:
        case ROOT_FOLLOW:
                return set_partitions(c);
        case ROOT_MODULE:
        case ROOT_PERSISTENCE:
        case ROOT_SET_PERSISTENCE:
        case ROOT_CHECK_GPUS:
                return ask_about_gpus(c);
        case ROOT_XEN_GUESTS:
                return read_xen_guests(c);
        default:
                return -EINVAL;
        }
}

int root_answer(int fd, const RootHost *h) {
        _cleanup_wire_ WireMessage m = { 0 };
        RootCall c = { .host = h, .fd = fd };
        int r = wire_receive(fd, sizeof(c.q) + ROOT_PAYLOAD_MAX, &m);

        if (r < 0)
                return r;
        if (m.size < sizeof(c.q))
                return -EBADMSG;
        memcpy(&c.q, m.data, sizeof(c.q));
        c.q.name[sizeof(c.q.name) - 1] = '\0';
        c.action = (RootAction) m.code;
        c.payload = (const char *) m.data + sizeof(c.q);
        c.size = m.size - sizeof(c.q);
        r = send_answer(&c, serve(&c));
        free(c.rest);
        return r;
}
