/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The switch of a PF as the kernel has it: its mode by devlink, and what stands for a VF on it. Nothing is changed. */

#include <net/if.h>

#include "model/eswitch.h"
#include "util/sysfs.h"

/* A PF whose driver is one of networks; asks nobody who may keep us waiting. */
bool eswitch_may_be(const Sysfs *fs, const PciDevice *pf);

/*
 * Asks for the mode of each PF in turn and tells it at once: ESWITCH_UNKNOWN where there is none. For a child only:
 * it waits for whoever holds the devlink instance of a PF. -ENOENT: the kernel has no devlink. -EPROTO: it could not be
 * understood, for any PF. Else the kernel's errno.
 */
int eswitch_ask(const PciAddress *pfs, size_t n, void (*tell)(size_t i, EswitchMode mode, void *userdata),
                void *userdata);

/*
 * The interface that stands for a VF on the switch of its PF, which has one only in switchdev mode: found by what its
 * driver calls the port, pf0vf3. For the child of a job.
 */
bool eswitch_find_representor(const Sysfs *fs, PciAddress pf, unsigned vf, char ret[static IF_NAMESIZE]);
