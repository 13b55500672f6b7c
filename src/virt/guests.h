/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reports the features and the running domains of the libvirt at uri on the packet socket fd, in the format of
 * guest/guest-list.h. Returns when the daemon has closed the socket, and after any failure, such as a lost connection
 * to libvirt.
 */
void guests_report(const char *uri, int fd);
