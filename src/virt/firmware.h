/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the installed firmware for confidential guests by the descriptors of QEMU's firmware. */

#include "model/libvirt.h"

/* Sets f->firmware. root: "/". A directory or descriptor that cannot be read is skipped. */
void firmware_find(const char *root, LibvirtFeatures *f);
