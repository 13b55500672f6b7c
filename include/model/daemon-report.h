/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The state of the running daemon and of its libvirt, as the daemon reports it, for plan/check.h. */

#include "util/cleanup.h"

#define DAEMON_PROBLEMS_MAX 64U

/* Sentences have a full stop. All strings are owned. */
typedef struct DaemonReport {
        char *unreachable; /* why the daemon cannot be asked, a sentence; NULL: the other members are known */
        char *sysroot;     /* the directory of the machine that it serves, "/" usually */
        char *config_file; /* --config=; NULL: the files of the default search path */
        char *read_only;   /* why the daemon allocates nothing, a sentence; NULL: it does allocate */
        char *problems[DAEMON_PROBLEMS_MAX]; /* sentences */
        size_t n_problems;
        size_t n_unlisted;    /* number of further problems, which the last entry gives */
        bool asks_libvirt;    /* Libvirt= is not empty */
        char *libvirt_reason; /* why libvirt cannot be asked, a sentence; NULL: the next members are known */
        char *libvirt_version, *qemu_version; /* "11.3.0"; NULL: unknown */
        char *libvirt_features;               /* "maxphysaddr iommufd"; NULL: none */
} DaemonReport;

void daemon_report_done(DaemonReport *d);
#define _cleanup_daemon_report_ _cleanup_(daemon_report_done)
