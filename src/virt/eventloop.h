/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Runs libvirt's descriptors and timers on an sd-event loop. */

#include <systemd/sd-event.h>

/* Call once, before the first connection to libvirt. The loop must outlive all connections. */
void eventloop_register(sd_event *event);
