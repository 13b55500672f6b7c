/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Network interfaces that changed, as rtnetlink notifies of them. The kernel notifies of an interface that is up when
 * an attribute of one of its VFs was set; the notification does not have the attributes.
 */

#include <net/if.h>

/* Returns a descriptor to be polled, close-on-exec and non-blocking, or a negative errno. */
int link_monitor_open(void);
/* The name of an interface that changed: 1. 0: no notification waits. -ENOBUFS: some were lost. Else an errno. */
int link_monitor_read(int fd, char name[static IF_NAMESIZE]);
