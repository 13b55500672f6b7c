/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Monitors network interfaces through rtnetlink link notifications. When an attribute of a VF is set, the kernel sends
 * a notification for the PF's interface if that interface is up. The notification does not contain the VF attributes.
 */

#include <net/if.h>

/* Returns a descriptor to poll, close-on-exec and non-blocking, or a negative errno. */
int link_monitor_open(void);
/*
 * Reads one notification. Returns 1 and the name of the changed interface, or 0 when no notification is queued.
 * -ENOBUFS: the kernel dropped notifications. Otherwise a negative errno.
 */
int link_monitor_read(int fd, char name[static IF_NAMESIZE]);
