/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the status files of libvirt to list the running guests. */

#include "host/guests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "guest/domain-status.h"
#include "util/fileio.h"
#include "util/strings.h"

#define FILES_MAX 65536U
#define FILE_MAX  (16U * 1024U * 1024U)

GuestList *guest_list_free(GuestList *l) {
        for (size_t i = 0; l && i < l->n_guests; i++) {
                free(l->guests[i].domain);
                free(l->guests[i].uuid);
        }
        if (l) {
                free(l->devices);
                free(l->guests);
        }
        free(l);
        return NULL;
}

/* Whether the arguments of a process (cmdline, each with its NUL) have the UUID of the domain. libvirt passes it to
 * every QEMU. */
static bool has_uuid(const char *cmdline, size_t size, const char *uuid) {
        const char *before = "";

        for (size_t i = 0; i < size; i += strlen(cmdline + i) + 1) {
                if (streq(before, "-uuid") && strcasecmp(cmdline + i, uuid) == 0)
                        return true;
                before = cmdline + i;
        }
        return false;
}

/*
 * A status file can be stale: it remains when QEMU dies while libvirt is not running, and another program may have its
 * pid. A process without arguments is exiting and has unmapped its memory. Its open files are the concern of
 * host/holders.h.
 */
static bool is_alive(const Sysfs *fs, const DomainStatus *status) {
        _cleanup_close_ int fd = -1;
        _cleanup_free_ char *cmdline = NULL;
        char path[32];
        size_t size;
        int r;

        (void) snprintf(path, sizeof(path), "proc/%d", status->pid);
        fd = sysfs_open(fs, path, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd != -ENOENT;
        /*
         * libvirt writes the file before its child process executes QEMU, so the arguments are not those of QEMU yet.
         */
        if (!status->uuid || status->starting)
                return true;
        r = read_file_at(fd, "cmdline", FILE_MAX, &cmdline, &size);
        if (r < 0)
                return r != -ENOENT && r != -ESRCH;
        return has_uuid(cmdline, size, status->uuid);
}

static int append_guest(GuestList *l, const DomainStatus *status) {
        Guest *guest;

        if (ARRAY_RESERVE(l->guests, l->n_guests) < 0)
                return -ENOMEM;
        guest = &l->guests[l->n_guests++];
        *guest = (Guest){ .starting = status->starting };
        if (string_copy(&guest->domain, status->name) < 0 || string_copy(&guest->uuid, status->uuid) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < status->n_devices; i++) {
                if (ARRAY_RESERVE(l->devices, l->n) < 0)
                        return -ENOMEM;
                l->devices[l->n++] = (GuestDevice){ .address = status->devices[i], .guest = l->n_guests - 1 };
        }
        return 0;
}

static int read_guest(const Sysfs *fs, int dir_fd, const char *name, GuestList *l) {
        _cleanup_(domain_status_done) DomainStatus status = { 0 };
        _cleanup_free_ char *text = NULL;
        int r = read_file_at(dir_fd, name, FILE_MAX, &text, NULL);

        if (r == -ENOENT)
                return 0; /* the guest stopped since the listing */
        if (r >= 0)
                r = domain_status_parse(text, &status);
        if (r < 0)
                return r;
        return is_alive(fs, &status) ? append_guest(l, &status) : 0;
}

int guests_read(const Sysfs *fs, GuestList **ret) {
        _cleanup_close_ int fd = sysfs_open(fs, GUESTS_DIR, O_RDONLY | O_DIRECTORY);
        _cleanup_(cleanup_guest_list_free) GuestList *l = calloc(1, sizeof(*l));
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = 0;

        if (!l)
                return -ENOMEM;
        if (fd < 0 && fd != -ENOENT)
                return fd;
        if (fd >= 0)
                r = list_dir_at(fd, ".", FILES_MAX, &names, &n);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                const char *suffix = strrchr(names[i], '.');

                if (suffix && streq(suffix, ".xml"))
                        r = read_guest(fs, fd, names[i], l);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}
