/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

/* Defines the document on stdin, and starts it. Prints libvirt's reason. Returns a DefineResult of guest/define.h. */
int define_run(const char *uri, bool start);
