/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Receives uevents with libudev's monitor. */

#include "host/uevent.h"

#include <errno.h>
#include <libudev.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/strings.h"

/* Room for thousands of events: all VFs of a host may appear at once, each with several events. */
#define RECEIVE_BUFFER (16 * 1024 * 1024)
/* How many events about other devices one call skips at most. */
#define SKIPPED_MAX    256
/* Device paths, relative to /sys. */
#define PCI_DRIVERS    "/bus/pci/drivers/"
#define SYSTEM_DEVICES "/devices/system/"

struct UeventMonitor {
        struct udev *udev;
        struct udev_monitor *monitor;
};

static const char *const subsystems[] = { "pci", "drivers", "mdev", "cpu", "memory", "node" };

int uevent_monitor_new(UeventMonitor **ret) {
        _cleanup_(cleanup_uevent_monitor_free) UeventMonitor *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return -ENOMEM;
        m->udev = udev_new();
        m->monitor = m->udev ? udev_monitor_new_from_netlink(m->udev, "udev") : NULL;
        if (!m->monitor)
                return errno > 0 ? -errno : -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(subsystems); i++) {
                r = udev_monitor_filter_add_match_subsystem_devtype(m->monitor, subsystems[i], NULL);
                if (r < 0)
                        return r;
        }
        /*
         * Ignore a failure: with a smaller buffer more events are lost, and each loss makes the daemon scan everything.
         */
        (void) udev_monitor_set_receive_buffer_size(m->monitor, RECEIVE_BUFFER);
        r = udev_monitor_enable_receiving(m->monitor);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

UeventMonitor *uevent_monitor_free(UeventMonitor *m) {
        if (!m)
                return NULL;
        if (m->monitor)
                (void) udev_monitor_unref(m->monitor);
        if (m->udev)
                (void) udev_unref(m->udev);
        free(m);
        return NULL;
}

int uevent_monitor_fd(const UeventMonitor *m) {
        return udev_monitor_get_fd(m->monitor);
}

static UeventAction action_from_string(const char *s) {
        if (streq_ptr(s, "add"))
                return UEVENT_ADD;
        if (streq_ptr(s, "bind"))
                return UEVENT_BIND;
        if (streq_ptr(s, "unbind"))
                return UEVENT_UNBIND;
        return streq_ptr(s, "remove") ? UEVENT_REMOVE : UEVENT_CHANGE;
}

/* Finds the parent of a mediated device, whose path ends with .../0000:82:00.0/4b20d080-1b54-4048-85b3-a6a62d165c01. */
static int read_mdev_parent(const char *path, PciAddress *ret) {
        const char *end = path ? strrchr(path, '/') : NULL;
        const char *slash = end ? memrchr(path, '/', (size_t) (end - path)) : NULL;
        _cleanup_free_ char *parent = slash ? strndup(slash + 1, (size_t) (end - slash - 1)) : NULL;

        return parent ? pci_address_parse(parent, ret) : -EINVAL;
}

/* Reads an event. -EINVAL: it is not about a PCI function, its mediated device, a PCI driver or a system device. */
static int read_event(struct udev_device *event, UeventAction *ret_action, PciAddress *ret_address) {
        const char *name = udev_device_get_sysname(event), *path = udev_device_get_devpath(event);
        int r;

        if (path && strncmp(path, PCI_DRIVERS, strlen(PCI_DRIVERS)) == 0) {
                *ret_action = UEVENT_DRIVERS;
                return 0;
        }
        if (path && strncmp(path, SYSTEM_DEVICES, strlen(SYSTEM_DEVICES)) == 0) {
                *ret_action = UEVENT_CAPACITY;
                return 0;
        }
        if (streq_ptr(udev_device_get_subsystem(event), "mdev")) {
                *ret_action = UEVENT_CHANGE;
                return read_mdev_parent(path, ret_address);
        }
        r = name ? pci_address_parse(name, ret_address) : -EINVAL;
        if (r >= 0)
                *ret_action = action_from_string(udev_device_get_action(event));
        return r;
}

int uevent_monitor_read(UeventMonitor *m, UeventAction *ret_action, PciAddress *ret_address) {
        for (unsigned i = 0; i < SKIPPED_MAX; i++) {
                struct udev_device *event;
                int r;

                errno = 0;
                event = udev_monitor_receive_device(m->monitor);
                if (!event)
                        return errno == EAGAIN || errno == EINTR ? 0 : errno > 0 ? -errno : 0;
                r = read_event(event, ret_action, ret_address);
                (void) udev_device_unref(event);
                if (r >= 0)
                        return 1;
        }
        return 0;
}
