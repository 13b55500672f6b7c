/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Processes of jobs that outlived their daemon. */

#include <systemd/sd-event.h>

#include "host/joblock.h"

struct Orphans {
        int dir_fd;     /* negative: no locks can be made */
        bool unwritten; /* which has been said */
        JobLock *locks;
        size_t n;
        sd_event_source *timer;
};

/* The job may have the kernel's lock for VFs that come and go. */
bool orphan_changes_vfs(const JobLock *lock);
