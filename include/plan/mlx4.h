/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * mlx4_core, the driver of ConnectX-2 and ConnectX-3, creates VFs only when it is loaded, as its module options say.
 * One set of options applies to all mlx4 cards. This code derives the options from the pools and the cards.
 * host/modprobe.h writes them to a file; the admin reloads the driver. Pure.
 */

#include "config/policy.h"
#include "ledger/ledger.h"

/*
 * Most VFs on one card when num_vfs= is a single number: such VFs span both ports, and a port has at most
 * MLX4_MAX_NUM_VF_P_PORT - 1 of them.
 */
#define MLX4_VFS_MAX 63U
/* The first line of each modprobe.d file (fragment) of the daemon begins with this. */
#define MLX4_MARK    "# Written by passthroughd"

typedef struct Mlx4 {
        unsigned num_vfs; /* VFs on each card; 0: there is no text */
        char *text;       /* text of the modprobe.d fragment; NULL: none is needed, or `unknown` or `problem` is set */
        bool unknown;     /* the options cannot be derived now, so keep an existing fragment */
        char *problem; /* sentences: why VFs are configured but no options are written, and the remedy; NULL: no problem
                        */
        ConfigPlace place; /* the configuration line with the problem */
        char *file;        /* path of the fragment, set by the function that wrote it; NULL: none was written */
} Mlx4;

/*
 * Derives the options of mlx4_core from the policy, and adds the problem, if any, to the problems of the policy. 0 or
 * -ENOMEM.
 */
int mlx4_decide(Policy *p, Mlx4 *ret);
/* Formats the options for the pool's VirtualFunctions= and PortTypes= as one line without a newline. 0 or -ENOMEM; the
 * caller frees *ret. */
int mlx4_format_options(const Pool *pool, char **ret);
void mlx4_done(Mlx4 *m);

/* Returns true when pf is an mlx4 card and has another number of VFs than its pool wants. Only new options of mlx4_core
 * change that. */
bool mlx4_needs_options(const Policy *p, const PciDevice *pf);

/*
 * Refuses with VERDICT_NOT_SUPPORTED: the PF does not have `count` VFs, and the daemon cannot change that while
 * mlx4_core is loaded. The refusal says how the admin can change it, and which allocation prevents that.
 */
Verdict mlx4_refuse(const Mlx4 *m, const Policy *p, const Ledger *l, const PciDevice *pf, unsigned count, Refusal *ret);
