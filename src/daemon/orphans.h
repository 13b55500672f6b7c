/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Orphans: children of an earlier daemon that are still alive. */

#include <systemd/sd-event.h>

#include "host/joblock.h"

struct Orphans {
        int dir_fd;     /* directory of the locks; negative when it could not be opened */
        bool unwritten; /* the failure to write a lock was logged */
        JobLock *locks;
        size_t n;
        sd_event_source *timer;
};

/* The job may hold the kernel's lock for adding and removing VFs. */
bool orphan_changes_vfs(const JobLock *lock);
