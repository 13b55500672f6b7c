/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Recording block devices and network interfaces as far as they lead down to PCI functions. */

#include <errno.h>
#include <fcntl.h>

#include "replay/snapshot.h"
#include "util/fileio.h"

#define ENTRIES_MAX 65536U

/* The links in the directory dir whose names begin with prefix. */
static int record_links(Recorder *r, const char *dir, const char *prefix) {
        _cleanup_close_ int fd = -1;
        char **names;
        size_t n;
        int e = record_list(r, dir, &fd, &names, &n);

        for (size_t i = 0; i < n && e >= 0; i++)
                if (strncmp(names[i], prefix, strlen(prefix)) == 0)
                        e = record_link_at(r, fd, dir, names[i]);
        (void) free_names(names, n);
        return e;
}

/* With native multipath a disk hangs below its subsystem, whose links lead to the controllers. */
static int record_nvme_subsystem(Recorder *r, const char *path) {
        static const char marker[] = "/nvme-subsystem/";
        const char *at = strstr(path, marker);
        _cleanup_free_ char *subsystem = NULL;
        _cleanup_close_ int fd = -1;
        char **names;
        size_t n;
        int e;

        if (!at)
                return 0;
        at += strlen(marker);
        subsystem = strndup(path, (size_t) (at - path) + strcspn(at, "/"));
        if (!subsystem)
                return -ENOMEM;
        e = record_list(r, subsystem, &fd, &names, &n);
        for (size_t i = 0; i < n && e >= 0; i++) {
                _cleanup_free_ char *link = NULL, *controller = NULL;
                char target[8];

                if (strncmp(names[i], "nvme", 4) != 0 || readlinkat(fd, names[i], target, sizeof(target)) < 0)
                        continue;
                e = record_link_at(r, fd, subsystem, names[i]);
                if (e >= 0 && asprintf(&link, "%s/%s", subsystem, names[i]) < 0) {
                        link = NULL;
                        e = -ENOMEM;
                }
                if (e >= 0 && sysfs_realpath(r->fs, link, &controller) >= 0)
                        e = record_directory(r, controller);
        }
        (void) free_names(names, n);
        return MIN(e, 0);
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
                e = record_links(r, slaves, "");
        if (e >= 0)
                e = record_links(r, path, "lower_");
        return e < 0 ? e : record_nvme_subsystem(r, path);
}

static int record_class(Recorder *r, const char *class) {
        _cleanup_close_ int fd = -1;
        char **names;
        size_t n;
        int e = record_list(r, class, &fd, &names, &n);

        for (size_t i = 0; i < n && e >= 0; i++) {
                _cleanup_free_ char *link = NULL;

                e = record_link_at(r, fd, class, names[i]);
                if (e >= 0 && asprintf(&link, "%s/%s", class, names[i]) < 0) {
                        link = NULL;
                        e = -ENOMEM;
                }
                if (e >= 0)
                        e = record_stack(r, link);
        }
        (void) free_names(names, n);
        return e;
}

int record_classes(Recorder *r) {
        int e = record_class(r, "sys/class/block");

        if (e >= 0)
                e = record_links(r, "sys/dev/block", "");
        return e < 0 ? e : record_class(r, "sys/class/net");
}
