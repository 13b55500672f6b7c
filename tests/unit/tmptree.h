/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A machine in a temporary directory, for tests of one detail. A failure ends the test. */

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "util/sysfs.h"

static inline void tree_require(bool condition, const char *what) {
        if (!condition) {
                perror(what);
                abort();
        }
}

static inline char *tree_new(void) {
        char *root = strdup("/tmp/passthrough-test-XXXXXX");

        tree_require(root && mkdtemp(root), "mkdtemp");
        return root;
}

static inline int tree_remove_entry(const char *path, const struct stat *st _unused_, int flag _unused_,
                                    struct FTW *ftw _unused_) {
        return remove(path);
}

static inline void tree_done(char *root) {
        (void) nftw(root, tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        free(root);
}

/* Returns ROOT/PATH, and makes its directories. */
static inline char *tree_path(const char *root, const char *path) {
        char *full;

        tree_require(asprintf(&full, "%s/%s", root, path) >= 0, "asprintf");
        for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
                *at = '\0';
                (void) mkdir(full, 0700);
                *at = '/';
        }
        return full;
}

static inline void tree_dir(const char *root, const char *path) {
        _cleanup_free_ char *full = tree_path(root, path);

        (void) mkdir(full, 0700);
}

static inline void tree_bytes(const char *root, const char *path, const void *data, size_t size) {
        _cleanup_free_ char *full = tree_path(root, path);
        FILE *f;

        (void) remove(full);
        f = fopen(full, "w");
        tree_require(f && fwrite(data, 1, size, f) == size && fclose(f) == 0, full);
}

/* Writes text with a newline, as the kernel prints it. */
static inline void tree_file(const char *root, const char *path, const char *text) {
        _cleanup_free_ char *line = NULL;

        tree_require(asprintf(&line, "%s\n", text) >= 0, "asprintf");
        tree_bytes(root, path, line, strlen(line));
}

static inline void tree_link(const char *root, const char *path, const char *target) {
        _cleanup_free_ char *full = tree_path(root, path);

        (void) remove(full);
        tree_require(symlink(target, full) == 0, full);
}

static inline void tree_unlink(const char *root, const char *path) {
        _cleanup_free_ char *full = tree_path(root, path);

        tree_require(remove(full) == 0, full);
}

/* One attribute of a device by its address. */
static inline void tree_attribute(const char *root, const char *address, const char *name, const char *value) {
        _cleanup_free_ char *path = NULL;

        tree_require(asprintf(&path, "sys/bus/pci/devices/%s/%s", address, name) >= 0, "asprintf");
        tree_file(root, path, value);
}

static inline void tree_attribute_link(const char *root, const char *address, const char *name, const char *target) {
        _cleanup_free_ char *path = NULL;

        tree_require(asprintf(&path, "sys/bus/pci/devices/%s/%s", address, name) >= 0, "asprintf");
        tree_link(root, path, target);
}

/* Makes a function at path below sys/devices, with a link from the bus, IDs and class. */
static inline void tree_device(const char *root, const char *path, const char *vendor, const char *device,
                               const char *class) {
        const char *address = strrchr(path, '/') + 1;
        _cleanup_free_ char *dir = NULL, *link = NULL, *target = NULL;

        tree_require(asprintf(&dir, "sys/devices/%s", path) >= 0, "asprintf");
        tree_require(asprintf(&link, "sys/bus/pci/devices/%s", address) >= 0, "asprintf");
        tree_require(asprintf(&target, "../../../devices/%s", path) >= 0, "asprintf");
        tree_dir(root, dir);
        tree_link(root, link, target);
        tree_attribute(root, address, "vendor", vendor);
        tree_attribute(root, address, "device", device);
        tree_attribute(root, address, "class", class);
}
