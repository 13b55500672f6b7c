/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the embedded switch (eswitch) of a PF: its mode by devlink, and the representors of its VFs. Changes nothing.
 */

#include <net/if.h>

#include "model/eswitch.h"
#include "util/sysfs.h"

/* Whether the PF may have an eswitch: its driver is a network or RDMA driver of the host. Reads sysfs only and does not
 * block. */
bool eswitch_may_be(const Sysfs *fs, const PciDevice *pf);

/*
 * Queries the mode of each PF and calls tell() with each result, ESWITCH_UNKNOWN for a PF without an eswitch. Blocks
 * while another process holds the devlink instance of a PF, so only a child process may call it. Returns 0; -ENOENT
 * when the kernel has no devlink; -EPROTO when an answer is malformed; or another errno of the kernel.
 */
int eswitch_ask(const PciAddress *pfs, size_t n, void (*tell)(size_t i, EswitchMode mode, void *userdata),
                void *userdata);

/* Finds the representor of a VF by its phys_port_name, pf0vf3, and copies its interface name to ret. A PF has
 * representors only in switchdev mode. May block, so only the child of a job may call it. */
bool eswitch_find_representor(const Sysfs *fs, PciAddress pf, unsigned vf, char ret[static IF_NAMESIZE]);
