/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Receives the uevents of PCI functions, their mediated devices, PCI drivers, CPUs, memory and NUMA nodes from udev. An
 * event only names the changed device; the caller reads the device's state from sysfs.
 */

#include "model/pciaddr.h"
#include "util/cleanup.h"

typedef enum UeventAction {
        UEVENT_CHANGE,   /* a PCI function: change, or any action that is not listed here; a mediated device of the
                            function: any action */
        UEVENT_ADD,      /* a new PCI function; the kernel may be probing drivers and hold the device lock */
        UEVENT_BIND,     /* a driver was bound to a PCI function; probing has ended */
        UEVENT_UNBIND,   /* a driver was unbound from a PCI function */
        UEVENT_REMOVE,   /* a PCI function was removed */
        UEVENT_DRIVERS,  /* a PCI driver was registered or unregistered; no function is named */
        UEVENT_CAPACITY, /* CPUs or memory went online or offline, or a NUMA node changed; no function is named */
} UeventAction;

typedef struct UeventMonitor UeventMonitor;

/* Starts to receive events. The kernel queues them until uevent_monitor_read() reads them. */
int uevent_monitor_new(UeventMonitor **ret);
UeventMonitor *uevent_monitor_free(UeventMonitor *m);
DEFINE_CLEANUP(UeventMonitor *, uevent_monitor_free)

/* Returns the descriptor to poll, which is readable when an event is queued. Owned by the monitor. */
int uevent_monitor_fd(const UeventMonitor *m);

/*
 * Reads one event. 1: *ret_action is set, and *ret_address unless the action is UEVENT_DRIVERS or UEVENT_CAPACITY. 0:
 * no event is queued, or only events about other devices were read. -ENOBUFS: events were lost, and later ones can
 * still be read. Otherwise a negative errno.
 */
int uevent_monitor_read(UeventMonitor *m, UeventAction *ret_action, PciAddress *ret_address);
