/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A configuration for a node that has none yet: pools by model, VFs of NICs, and CPUs for the host. Pure. */

#include "model/inventory.h"

/*
 * Makes the text of a configuration file, with a comment for each choice, and for each GPU, accelerator, display, NIC,
 * NVMe controller and NVSwitch that the configuration leaves out. inv: with PciDevice.critical set; the VFs that the
 * configuration would create are added to it. cmdline: of the kernel, "" when unknown. The caller frees *ret. 0 or
 * -ENOMEM.
 */
int suggest_configuration(Inventory *inv, const char *cmdline, char **ret);
