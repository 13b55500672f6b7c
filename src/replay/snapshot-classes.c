/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Recording block devices and network interfaces as far as they lead down to PCI functions. */

#include <errno.h>

#include "host/critical.h"
#include "replay/snapshot.h"

static int record_link(Recorder *r, const Entry *entry) {
        return record_link_at(r, entry->dir_fd, entry->dir, entry->name);
}

static int record_controller(Recorder *r, const Entry *entry) {
        _cleanup_free_ char *controller = NULL;
        char target[8];
        int e;

        if (readlinkat(entry->dir_fd, entry->name, target, sizeof(target)) < 0)
                return 0;
        e = record_link(r, entry);
        if (e >= 0 && sysfs_realpath(r->fs, entry->path, &controller) >= 0)
                e = record_directory(r, controller);
        return e;
}

static int record_nvme_subsystem(Recorder *r, const char *path) {
        _cleanup_free_ char *subsystem = NULL;
        int e = critical_nvme_subsystem(path, &subsystem);

        return subsystem ? record_entries(r, subsystem, "nvme", record_controller) : e;
}

static int record_stack(Recorder *r, const char *link) {
        _cleanup_free_ char *path = NULL, *slaves = NULL;
        int e = sysfs_realpath(r->fs, link, &path);

        if (e < 0)
                return e == -ENOMEM ? e : 0;
        if (asprintf(&slaves, "%s/slaves", path) < 0) {
                slaves = NULL;
                return -ENOMEM;
        }
        e = record_directory(r, path);
        if (e >= 0)
                e = record_entries(r, slaves, "", record_link);
        if (e >= 0)
                e = record_entries(r, path, "lower_", record_link);
        return e < 0 ? e : record_nvme_subsystem(r, path);
}

static int record_member(Recorder *r, const Entry *entry) {
        int e = record_link(r, entry);

        return e < 0 ? e : record_stack(r, entry->path);
}

int record_classes(Recorder *r) {
        int e = record_entries(r, "sys/class/block", "", record_member);

        if (e >= 0)
                e = record_entries(r, "sys/dev/block", "", record_link);
        return e < 0 ? e : record_entries(r, "sys/class/net", "", record_member);
}
