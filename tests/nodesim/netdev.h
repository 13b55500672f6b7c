/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Network interfaces of the simulated kernel. */
#pragma once

#include "sim.h"

void netdevs_complete(Sim *sim, const Node *dev); /* adds sys/class/net for the interfaces of the tree */
/* Makes the representor of a VF on the eswitch of its PF, in switchdev mode. */
void representor_make(Sim *sim, Node *pf, unsigned vf);
void representor_remove(Sim *sim, Node *pf, unsigned vf);
