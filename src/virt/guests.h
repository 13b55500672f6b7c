/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reports the running domains of the libvirt at uri on the packet socket fd, in the format of guest/guest-list.h, until
 * the connection to libvirt or to the daemon is lost.
 */
void guests_report(const char *uri, int fd);
