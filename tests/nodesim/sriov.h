/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtual functions of the simulated kernel. */
#pragma once

#include "sim.h"

int vf_template_add(Sim *sim, const char *pf, const char *options); /* the words after %vf PF */
unsigned sriov_count(const Node *pf);                               /* VFs there are now */
VfKind sriov_kind(const Sim *sim, const Node *pf);
void sriov_complete(Sim *sim, Node *pf);              /* of VFs that the tree has, what it does not say */
void sriov_create_declared(Sim *sim);                 /* those of created= */
int sriov_set(Sim *sim, Node *pf, const char *value); /* as a write to sriov_numvfs */
void sriov_destroy(Sim *sim, Node *pf);
void sriov_limit(const Sim *sim, Node *pf, const Driver *driver); /* sriov_totalvfs with this driver, or none */
