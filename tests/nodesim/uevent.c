/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The netlink socket, the queue of unsent events, and the message format of libudev. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "uevent.h"

/* Multicast groups of NETLINK_KOBJECT_UEVENT as bits: that of udev, and one without listeners. */
#define GROUP_UDEV   (1U << 1)
#define GROUP_NOBODY (1U << 31)

#define MONITOR_MAGIC 0xfeedcafeU
#define HASH_FACTOR   0x5bd1e995U

/* Members other than sizes are in network byte order. */
typedef struct MonitorHeader {
        char prefix[8];
        uint32_t magic;
        uint32_t header_size, properties_off, properties_len;
        uint32_t subsystem_hash, devtype_hash, tag_bloom_hi, tag_bloom_lo;
} MonitorHeader;

struct UEvents {
        int fd;
        bool off;
        unsigned long long seqnum;
        UEvent *queue;
        size_t n;
};

/* MurmurHash2 with seed 0. */
static uint32_t string_hash(const char *s) {
        size_t n = strlen(s);
        uint32_t hash = (uint32_t) n, k;

        for (; n >= sizeof(k); n -= sizeof(k), s += sizeof(k)) {
                memcpy(&k, s, sizeof(k));
                k *= HASH_FACTOR;
                hash = hash * HASH_FACTOR ^ (k ^ k >> 24) * HASH_FACTOR;
        }
        k = 0;
        memcpy(&k, s, n);
        if (n > 0)
                hash = (hash ^ k) * HASH_FACTOR;
        hash = (hash ^ hash >> 13) * HASH_FACTOR;
        return hash ^ hash >> 15;
}

/* the socket */

static int message_send(int fd, uint32_t group, const struct iovec *parts, size_t n) {
        struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_groups = group };
        const struct msghdr message = {
                .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = (struct iovec *) parts, .msg_iovlen = n
        };

        return sendmsg(fd, &message, 0) < 0 ? -errno : 0;
}

int uevents_open(Sim *sim) {
        struct UEvents *u = xrealloc(NULL, 1, sizeof(*u));
        char nothing = 0;
        int r;

        *u = (struct UEvents) { .fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT) };
        r = u->fd < 0 ? -errno : message_send(u->fd, GROUP_NOBODY, &(struct iovec) { &nothing, 1 }, 1);
        sim->uevents = u;
        if (r < 0)
                uevents_close(sim);
        return r;
}

void uevents_close(Sim *sim) {
        struct UEvents *u = sim->uevents;

        if (!u)
                return;
        for (size_t i = 0; i < u->n; i++)
                free(u->queue[i].properties);
        free(u->queue);
        if (u->fd >= 0)
                close(u->fd);
        free(u);
        sim->uevents = NULL;
}

int uevents_enable(Sim *sim, bool on) {
        if (!sim->uevents)
                return -EOPNOTSUPP;
        sim->uevents->off = !on;
        return 0;
}

UEvent *uevents_take(Sim *sim, size_t *ret_n) {
        struct UEvents *u = sim->uevents;
        UEvent *events = u ? u->queue : NULL;

        *ret_n = u ? u->n : 0;
        if (u) {
                u->queue = NULL;
                u->n = 0;
        }
        return events;
}

/* Sends one event. When a receiver's buffer is full, the event is lost, as with udev. */
static void send_one(int fd, const UEvent *e) {
        const MonitorHeader header = {
                .prefix = "libudev",
                .magic = htonl(MONITOR_MAGIC),
                .header_size = sizeof(header),
                .properties_off = sizeof(header),
                .properties_len = (uint32_t) e->size,
                .subsystem_hash = htonl(e->subsystem),
        };
        const struct iovec parts[] = { { (void *) &header, sizeof(header) }, { e->properties, e->size } };

        for (unsigned long i = 0; i < e->times; i++)
                (void) message_send(fd, GROUP_UDEV, parts, 2);
}

static const char *path_of(const UEvent *e) {
        for (size_t i = 0; i < e->size; i += strlen(&e->properties[i]) + 1)
                if (strncmp(&e->properties[i], "DEVPATH=", strlen("DEVPATH=")) == 0)
                        return &e->properties[i + strlen("DEVPATH=")];
        return "";
}

/* Returns whether both events are of one device, or one is of a node below the other's device. */
static bool are_of_one_device(const UEvent *a, const UEvent *b) {
        const char *path = path_of(a), *other = path_of(b);
        size_t n = strlen(path) < strlen(other) ? strlen(path) : strlen(other);

        return strncmp(path, other, n) == 0 && (path[n] == '/' || path[n] == '\0') &&
               (other[n] == '/' || other[n] == '\0');
}

/* Swaps some events of different devices. Linux and udev keep the order only for events of one device. */
static void mix(const Sim *sim, UEvent *events, size_t n) {
        uint32_t random = sim->jitter_seed;

        for (size_t i = n; i-- > 1;) {
                random = random * 1664525U + 1013904223U;
                if (random >> 31 && !are_of_one_device(&events[i - 1], &events[i])) {
                        UEvent e = events[i];

                        events[i] = events[i - 1];
                        events[i - 1] = e;
                }
        }
}

void uevents_send(const Sim *sim, UEvent *events, size_t n) {
        if (sim->jitter_msec > 0)
                mix(sim, events, n);
        for (size_t i = 0; i < n; i++) {
                send_one(sim->uevents->fd, &events[i]);
                free(events[i].properties);
        }
        free(events);
}

/* messages */

static _printf_(2, 3) void add(FILE *f, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        vfprintf(f, format, ap);
        va_end(ap);
        fputc('\0', f);
}

static FILE *event_begin(struct UEvents *u, UEvent *e, const char *action, const char *subsystem, const char *path) {
        FILE *f = open_memstream(&e->properties, &e->size);

        if (!f)
                abort();
        e->subsystem = string_hash(subsystem);
        add(f, "ACTION=%s", action);
        add(f, "DEVPATH=%s", path);
        add(f, "SUBSYSTEM=%s", subsystem);
        add(f, "SEQNUM=%llu", ++u->seqnum);
        return f;
}

static void event_end(struct UEvents *u, UEvent *e, FILE *f) {
        fclose(f);
        u->queue = xrealloc(u->queue, u->n + 1, sizeof(UEvent));
        u->queue[u->n++] = *e;
}

static unsigned number(const Node *dev, const char *name) {
        _cleanup_free_ char *text = node_text(dev, name);

        return text ? (unsigned) strtoul(text, NULL, 16) : 0;
}

/* Adds the properties that the PCI core adds to events of devices. */
static void add_pci(FILE *f, const Node *dev) {
        unsigned class = number(dev, "class"), vendor = number(dev, "vendor"), device = number(dev, "device");
        unsigned subvendor = number(dev, "subsystem_vendor"), subdevice = number(dev, "subsystem_device");
        const char *driver = node_link_name(dev, "driver");

        if (driver)
                add(f, "DRIVER=%s", driver);
        add(f, "PCI_CLASS=%04X", class);
        add(f, "PCI_ID=%04X:%04X", vendor, device);
        add(f, "PCI_SUBSYS_ID=%04X:%04X", subvendor, subdevice);
        add(f, "PCI_SLOT_NAME=%s", dev->name);
        add(f, "MODALIAS=pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", vendor, device, subvendor, subdevice,
            class >> 16 & 0xff, class >> 8 & 0xff, class & 0xff);
}

/* Returns the path below sysfs, as in DEVPATH. */
static char *device_path(const Node *dev) {
        _cleanup_free_ char *path = node_path(dev);

        return xstrdup(path + strlen("sys"));
}

static void queue_device(struct UEvents *u, const char *action, const Node *dev, unsigned long times) {
        UEvent e = { .times = times };
        _cleanup_free_ char *path = device_path(dev);
        FILE *f = event_begin(u, &e, action, "pci", path);

        add_pci(f, dev);
        event_end(u, &e, f);
}

static bool is_on(const Sim *sim) {
        return sim->uevents && !sim->uevents->off;
}

void uevent_device(Sim *sim, const char *action, const Node *dev) {
        if (is_on(sim))
                queue_device(sim->uevents, action, dev, 1);
}

void uevent_driver(Sim *sim, const char *action, const char *name) {
        _cleanup_free_ char *path = xasprintf("/bus/pci/drivers/%s", name);
        UEvent e = { .times = 1 };

        if (is_on(sim))
                event_end(sim->uevents, &e, event_begin(sim->uevents, &e, action, "drivers", path));
}

void uevent_vfio_group(Sim *sim, const char *action, int group) {
        _cleanup_free_ char *path = xasprintf("/devices/virtual/vfio/%d", group);
        UEvent e = { .times = 1 };
        FILE *f;

        if (!is_on(sim))
                return;
        f = event_begin(sim->uevents, &e, action, "vfio", path);
        add(f, "DEVNAME=/dev/vfio/%d", group);
        event_end(sim->uevents, &e, f);
}

void uevent_child(Sim *sim, const char *action, const char *subsystem, const Node *child) {
        _cleanup_free_ char *path = device_path(child);
        UEvent e = { .times = 1 };

        if (is_on(sim))
                event_end(sim->uevents, &e, event_begin(sim->uevents, &e, action, subsystem, path));
}

int uevent_force(Sim *sim, const char *action, const char *address, unsigned long times) {
        const Node *dev = device_find(sim, address);
        UEvent e = { .times = times };

        if (!sim->uevents)
                return -EOPNOTSUPP;
        if (dev)
                queue_device(sim->uevents, action, dev, times);
        else { /* any root will do, because the device is gone */
                _cleanup_free_ char *path = xasprintf("/devices/pci0000:00/%s", address);
                FILE *f = event_begin(sim->uevents, &e, action, "pci", path);

                add(f, "PCI_SLOT_NAME=%s", address);
                event_end(sim->uevents, &e, f);
        }
        return 0;
}

int uevent_system(Sim *sim, const char *action, const char *subsystem, const char *name) {
        _cleanup_free_ char *path = xasprintf("/devices/system/%s/%s", subsystem, name);
        UEvent e = { .times = 1 };

        if (!sim->uevents)
                return -EOPNOTSUPP;
        event_end(sim->uevents, &e, event_begin(sim->uevents, &e, action, subsystem, path));
        return 0;
}
