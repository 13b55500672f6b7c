/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "host/xen.h"

/*
 * Reads from xenstore which PCI devices guests have. May block for ever. Returns 0, -ENOENT or -ECONNREFUSED when there
 * is no xenstore, -E2BIG for more than XEN_GUEST_DEVICES_MAX devices, -EAGAIN when xenstore changes too often, or
 * another negative errno. The caller frees *ret with xen_guests_done(), also after an error.
 */
int xenstore_read_guests(XenGuests *ret);
