/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the running daemon reports about itself and its libvirt, for plan/check.h. */

#include "util/cleanup.h"

#define DAEMON_PROBLEMS_MAX 64U

/* The report owns all strings. Sentences have a full stop. */
typedef struct DaemonReport {
        char *unreachable; /* sentence: why the daemon cannot be asked; NULL: the other members are set */
        char *sysroot;     /* directory of the machine that it serves; usually "/" */
        char *config_file; /* its --config=; NULL: it searches the default paths */
        char *read_only;   /* sentence: why it makes no allocations; NULL: it makes them */
        char *problems[DAEMON_PROBLEMS_MAX]; /* sentences about devices, allocations, endpoints and the configuration */
        size_t n_problems;
        size_t n_unlisted;    /* how many further problems the last entry stands for */
        bool asks_libvirt;    /* Libvirt= is not empty */
        char *libvirt_reason; /* sentence: why libvirt does not answer; NULL: it answers, or is not asked */
        char *libvirt_version, *qemu_version; /* "11.3.0"; NULL: unknown */
        char *libvirt_features;               /* words: "maxphysaddr iommufd"; NULL: none */
} DaemonReport;

void daemon_report_done(DaemonReport *d);
#define _cleanup_daemon_report_ _cleanup_(daemon_report_done)
