/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The arguments of the plugin in plugstack.conf, NAME=VALUE. */

typedef struct Settings {
        const char *bus;       /* bus=ADDRESS: the D-Bus address; NULL: the system bus */
        const char *root;      /* root=DIR: the directory with sys/ of the machine; default "" */
        const char *directory; /* directory=DIR: where the files of jobs are; default SETTINGS_DIRECTORY */
        const char *numa;      /* numa=POLICY: the NUMA policy of requests; default SETTINGS_NUMA */
        unsigned wait;         /* wait=SECONDS: how long to wait for passthroughd; default SETTINGS_WAIT */
} Settings;

#define SETTINGS_DIRECTORY "/run/passthroughd-slurm"
#define SETTINGS_WAIT      60
/* Slurm has chosen the job's cores already. If these were on another NUMA node than all free devices, the job would
 * never start with a stricter policy. */
#define SETTINGS_NUMA      "preferred"

/* Parses the arguments, into which *ret points. 0, or -EINVAL with the wrong argument in *ret_wrong. */
int settings_parse(int argc, char **argv, Settings *ret, const char **ret_wrong);
