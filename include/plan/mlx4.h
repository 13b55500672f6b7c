/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * mlx4_core, the driver of ConnectX-2 and ConnectX-3, makes VFs only when it is loaded, as its module options say, and
 * it has one set of options for all its cards. What these have to be follows from pools and cards; who writes them down
 * is host/modprobe.h, and loading the driver again is left to the admin. Pure.
 */

#include "config/policy.h"
#include "ledger/ledger.h"

/* num_vfs= as a single number, which is VFs that span both ports: what a port can have (MLX4_MAX_NUM_VF_P_PORT - 1). */
#define MLX4_VFS_MAX 63U
/* How the first line of each fragment begins that is ours. */
#define MLX4_MARK    "# Written by passthroughd"

typedef struct Mlx4 {
        unsigned num_vfs;  /* of each card; 0: no options are wanted */
        char *text;        /* the fragment for modprobe.d, NULL: none */
        bool unknown;      /* what is wanted cannot be told: the fragment that is there stays */
        char *problem;     /* why they are not written though VFs are wanted, and what to do, sentences; or NULL */
        ConfigPlace place; /* of the line that the problem is about */
        char *file;        /* set by who wrote text there; NULL: nobody did */
} Mlx4;

/* The options of mlx4_core that the policy asks for. Adds the problem to those of the policy. 0 or -ENOMEM. */
int mlx4_decide(Policy *p, Mlx4 *ret);
void mlx4_done(Mlx4 *m);

/* A pool wants another number of VFs on it than it has. */
bool mlx4_is_due(const Policy *p, const PciDevice *pf);

/*
 * VERDICT_NOT_SUPPORTED: the PF has another number of VFs than count, and why that is not changed here and now; how it
 * can be, and which allocation is against it.
 */
Verdict mlx4_refuse(const Mlx4 *m, const Policy *p, const Ledger *l, const PciDevice *pf, unsigned count, Refusal *ret);
