/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Network interfaces that the simulated kernel makes. */
#pragma once

#include "sim.h"

void netdevs_complete(Sim *sim, const Node *dev); /* sys/class/net of those the tree has */
/* What stands for a VF on the switch of its PF, in switchdev mode. */
void representor_make(Sim *sim, Node *pf, unsigned vf);
void representor_remove(Sim *sim, Node *pf, unsigned vf);
