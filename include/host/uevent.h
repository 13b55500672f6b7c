/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Events of PCI functions, PCI drivers, CPUs and memory as udev passes them on. An event says where to
 * look; what is there is read from sysfs.
 */

#include "model/pciaddr.h"
#include "util/cleanup.h"

typedef enum UeventAction {
        UEVENT_CHANGE, /* unbind, change, and whatever else there is */
        UEVENT_ADD,    /* drivers are tried next: one may be at work on it, with the device's lock held */
        UEVENT_BIND,   /* and be through */
        UEVENT_REMOVE,
        UEVENT_DRIVERS,  /* a driver came or went, as its module did: of no function */
        UEVENT_CAPACITY, /* CPUs or memory went online or offline, or a NUMA node came or went: of no function */
} UeventAction;

typedef struct UeventMonitor UeventMonitor;

/* From here on events are kept for uevent_monitor_read(). */
int uevent_monitor_new(UeventMonitor **ret);
UeventMonitor *uevent_monitor_free(UeventMonitor *m);
DEFINE_CLEANUP(UeventMonitor *, uevent_monitor_free)

/* Readable when there is something to read. */
int uevent_monitor_fd(const UeventMonitor *m);

/* 1: an event, of *ret_address unless it is UEVENT_DRIVERS or UEVENT_CAPACITY. 0: none waits. -ENOBUFS: some were lost,
 * those that follow are still to be read; or another errno. */
int uevent_monitor_read(UeventMonitor *m, UeventAction *ret_action, PciAddress *ret_address);
