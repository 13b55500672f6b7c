/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtual functions of the simulated kernel. */
#pragma once

#include "sim.h"

int vf_template_add(Sim *sim, const char *pf, const char *options); /* options: the words after %vf PF */
unsigned sriov_count(const Node *pf);                               /* number of existing VFs */
VfKind sriov_kind(const Sim *sim, const Node *pf);
void sriov_complete(Sim *sim, Node *pf);              /* adds files that the tree lacks for its VFs */
void sriov_create_declared(Sim *sim);                 /* creates the VFs of created= */
int sriov_set(Sim *sim, Node *pf, const char *value); /* a write to sriov_numvfs */
void sriov_destroy(Sim *sim, Node *pf);
void sriov_limit(const Sim *sim, Node *pf, const Driver *driver); /* sets sriov_totalvfs for the driver, or for none */
