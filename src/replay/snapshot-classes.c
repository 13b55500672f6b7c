/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Records block devices, network interfaces and displays with the links from which the daemon finds the PCI functions
 * below them. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "host/critical.h"
#include "snapshot.h"

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

/* Replaces a volume name by its hash, because the name may identify the machine. */
static char *filter_name(const Recorder *r, char *text) {
        char *copy = NULL;
        size_t size;
        FILE *f = r->identities.keep ? NULL : open_memstream(&copy, &size);

        if (r->identities.keep)
                return text;
        if (f) {
                identities_write_hash(&r->identities, text, strcspn(text, "\n"), f);
                (void) fputc('\n', f);
        }
        if (f && fclose(f) != 0)
                free(TAKE_PTR(copy));
        free(text);
        return copy;
}

/* Keeps the backing device of a loop device. Removes the name of a backing file, which the daemon does not need. */
static char *filter_backing(const Recorder *r, char *text) {
        if (strncmp(text, "/dev/", strlen("/dev/")) != 0)
                *text = '\0';
        return text;
}

static int record_below(Recorder *r, const char *path, const char *name, RecordFilter filter) {
        _cleanup_free_ char *below = NULL;

        if (asprintf(&below, "%s/%s", path, name) < 0) {
                below = NULL;
                return -ENOMEM;
        }
        return record_file(r, below, filter);
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
                e = record_below(r, path, "dm/name", filter_name);
        if (e >= 0)
                e = record_below(r, path, "loop/backing_file", filter_backing);
        if (e >= 0)
                e = record_entries(r, path, "lower_", record_link);
        return e < 0 ? e : record_nvme_subsystem(r, path);
}

static int record_member(Recorder *r, const Entry *entry) {
        int e = record_link(r, entry);

        return e < 0 ? e : record_stack(r, entry->path);
}

static int record_console(Recorder *r, const Entry *entry) {
        _cleanup_free_ char *path = NULL;
        int e = record_link(r, entry);

        if (e >= 0)
                e = sysfs_realpath(r->fs, entry->path, &path);
        return e < 0 ? (e == -ENOMEM ? e : 0) : record_below(r, path, "name", NULL);
}

static int record_display(Recorder *r) {
        int e = record_entries(r, "sys/class/graphics", "fb", record_member);

        return e < 0 ? e : record_entries(r, "sys/class/vtconsole", "", record_console);
}

/* The name of the entry is the name of the mounted block device. The contents do not matter. */
static int record_mounted(Recorder *r, const Entry *entry) {
        _cleanup_free_ char *link = NULL;
        _cleanup_close_ int fd = -1;

        if (asprintf(&link, "sys/class/block/%s", entry->name) < 0) {
                link = NULL;
                return -ENOMEM;
        }
        fd = sysfs_open(r->fs, link, O_PATH);
        return fd < 0 ? 0 : record_directory(r, entry->path);
}

static int record_btrfs_device(Recorder *r, const Entry *entry) {
        _cleanup_free_ char *clean = identities_scrub(&r->identities, entry->path, false);

        return clean ? record_directory(r, clean) : -ENOMEM;
}

static int record_btrfs(Recorder *r, const Entry *entry) {
        _cleanup_free_ char *devices = NULL;

        if (asprintf(&devices, "%s/devices", entry->path) < 0) {
                devices = NULL;
                return -ENOMEM;
        }
        return record_entries(r, devices, "", record_btrfs_device);
}

static int record_file_systems(Recorder *r) {
        int e = record_entries(r, CRITICAL_BTRFS, "", record_btrfs);

        for (size_t i = 0; critical_mounted_dirs[i] && e >= 0; i++)
                e = record_entries(r, critical_mounted_dirs[i], "", record_mounted);
        return e;
}

int record_classes(Recorder *r) {
        int e = record_entries(r, "sys/class/block", "", record_member);

        if (e >= 0)
                e = record_display(r);
        if (e >= 0)
                e = record_file_systems(r);

        if (e >= 0)
                e = record_entries(r, "sys/dev/block", "", record_link);
        return e < 0 ? e : record_entries(r, "sys/class/net", "", record_member);
}
