/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The arguments of the plugin in plugstack.conf, NAME=VALUE. */

typedef struct Settings {
        const char *bus;       /* bus=ADDRESS of the bus that passthroughd is on; NULL: the system bus */
        const char *root;      /* root=DIR: sys/ of the machine is below it; default "" */
        const char *directory; /* directory=DIR of the files of jobs; default SETTINGS_DIRECTORY */
        const char *numa;      /* numa=POLICY of requests; default SETTINGS_NUMA */
        unsigned wait;         /* wait=SECONDS for passthroughd to come back; default SETTINGS_WAIT */
} Settings;

#define SETTINGS_DIRECTORY "/run/passthroughd-slurm"
#define SETTINGS_WAIT      60
/* Slurm has chosen the cores by then: with a stricter policy a job may never start. */
#define SETTINGS_NUMA      "preferred"

/* Keeps pointers into the arguments. 0, or -EINVAL with the wrong argument in *ret_wrong. */
int settings_parse(int argc, char **argv, Settings *ret, const char **ret_wrong);
