/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* NVIDIA's management library, libnvidia-ml.so.1, which is opened at run time. A call of it may block for ever, so only
 * a process with a deadline calls these functions. */

#include "model/pciaddr.h"

/*
 * Returns the NVLink module id of a GPU that is bound to NVIDIA's driver; 0: the GPU answers, but has no module id.
 * -ENODEV: the driver has lost the GPU. -ELIBACC: the library is missing or lacks a function. -ENODATA: the library
 * failed.
 */
int nvml_read_module(PciAddress gpu);
