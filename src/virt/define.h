/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

/* Defines the domain of the document on stdin, and starts the domain if `start` is set. If `uri` is "", connects to the
 * libvirt of the document's hypervisor. On failure, prints the reason. Returns a DefineResult of guest/define.h. */
int define_run(const char *uri, bool start);
