/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the embedded switch (eswitch) of a PF: its mode by devlink, and the representors of its VFs. Changes nothing.
 */

#include <net/if.h>

#include "model/pciaddr.h"
#include "util/sysfs.h"

/*
 * Queries whether the eswitch is in switchdev mode. Blocks while another process holds the devlink instance of the PF,
 * so only the child of a job may call it. Returns 0; -ENOENT when the kernel has no devlink; -EPROTO when an answer is
 * malformed; or another negative errno, such as that of the kernel when the PF has no devlink instance or no eswitch.
 */
int eswitch_ask(PciAddress pf, bool *ret_switchdev);

/* Finds the representor of a VF by its phys_port_name, such as pf0vf3, and copies its interface name to ret. Returns
 * false, with ret unchanged, when it finds none: a PF has representors only in switchdev mode, and they may be in
 * another network namespace. May block, so only the child of a job may call it. */
bool eswitch_find_representor(const Sysfs *fs, PciAddress pf, unsigned vf, char ret[static IF_NAMESIZE]);
