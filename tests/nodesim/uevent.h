/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Uevents as udev sends them to all listeners in this network namespace, in the order of the kernel: for PCI devices,
 * their drivers, VFIO groups, VFIO devices and mediated devices. */
#pragma once

#include "sim.h"

typedef struct UEvent {
        char *properties; /* KEY=VALUE strings, each with a NUL */
        size_t size;
        uint32_t subsystem; /* its hash, which the filter of a receiver compares */
        unsigned long times;
} UEvent;

/* From now on changes cause events. Returns for example -EPERM when this namespace does not permit that. */
int uevents_open(Sim *sim);
void uevents_close(Sim *sim);
int uevents_enable(Sim *sim, bool on); /* off: changes cause no events. -EOPNOTSUPP: not open */

/* Queues the event of a change, unless events are off or not open. */
void uevent_device(Sim *sim, const char *action, const Node *dev);
void uevent_driver(Sim *sim, const char *action, const char *name);
void uevent_vfio_group(Sim *sim, const char *action, int group);
/* subsystem: "vfio-dev" for DEVICE/vfio-dev/vfioN, "mdev" for DEVICE/UUID. */
void uevent_child(Sim *sim, const char *action, const char *subsystem, const Node *child);
/* Queues events even if events are off or the device does not exist. -EOPNOTSUPP: not open. */
int uevent_force(Sim *sim, const char *action, const char *address, unsigned long times);
/* Queues an event of a CPU ("cpu", "cpu3") or of memory, which the model does not have. */
int uevent_system(Sim *sim, const char *action, const char *subsystem, const char *name);

/* The first function is called with the lock held. The second one sends and frees the events, without the lock and
 * after every reader can see the change. */
UEvent *uevents_take(Sim *sim, size_t *ret_n);
void uevents_send(const Sim *sim, UEvent *events, size_t n);
