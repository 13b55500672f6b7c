/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lock files of job processes. */

#include "host/joblock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "util/fileio.h"
#include "util/strings.h"

/* A job on all VFs of a PF has thousands of lines at most. */
#define FILE_SIZE_MAX (1024U * 1024U)
#define NAME_SIZE     sizeof("4294967295")

static const char *file_name(uint32_t id, char buf[static NAME_SIZE]) {
        (void) snprintf(buf, NAME_SIZE, "%" PRIu32, id);
        return buf;
}

void job_lock_done(JobLock *l) {
        cleanup_close(&l->fd);
        free(l->job);
        free(l->devices);
        *l = (JobLock) { .fd = -1 };
}

JobLock *job_locks_free(JobLock *locks, size_t n) {
        for (size_t i = 0; i < n; i++)
                job_lock_done(&locks[i]);
        free(locks);
        return NULL;
}

int job_locks_open(const char *state_dir) {
        _cleanup_close_ int parent = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int fd;

        if (parent < 0 || (mkdirat(parent, "jobs", 0700) < 0 && errno != EEXIST))
                return -errno;
        fd = openat(parent, "jobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int write_text(int fd, const char *job, const PciAddress *devices, size_t n) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        ssize_t written;

        if (!f)
                return -ENOMEM;
        (void) fprintf(f, "%s\n", job);
        for (size_t i = 0; i < n; i++)
                (void) fprintf(f, "%s\n", PCI_ADDRESS_STR(devices[i]));
        if (fclose(f) != 0)
                return -ENOMEM;
        written = pwrite(fd, text, size, 0);
        if (written < 0)
                return -errno;
        if ((size_t) written < size)
                return -ENOSPC;
        /* The text before may have been longer. A reader before this sees the end of that text, too. */
        return ftruncate(fd, (off_t) size) < 0 ? -errno : 0;
}

int job_lock_make(int dir_fd, uint32_t id, const char *job, const PciAddress *devices, size_t n) {
        char buf[NAME_SIZE];
        const char *name = file_name(id, buf);
        _cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r;

        if (fd < 0)
                return -errno;
        r = write_text(fd, job, devices, n);
        if (r >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
                r = -errno;
        if (r >= 0)
                return TAKE_FD(fd);
        (void) unlinkat(dir_fd, name, 0);
        return r;
}

int job_lock_change(int dir_fd, uint32_t id, const char *job, const PciAddress *devices, size_t n) {
        char buf[NAME_SIZE];
        _cleanup_close_ int fd = openat(dir_fd, file_name(id, buf), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : write_text(fd, job, devices, n);
}

void job_lock_remove(int dir_fd, uint32_t id) {
        char buf[NAME_SIZE];

        (void) unlinkat(dir_fd, file_name(id, buf), 0);
}

bool job_lock_is_free(int dir_fd, JobLock *l) {
        if (l->fd >= 0 && flock(l->fd, LOCK_EX | LOCK_NB) < 0)
                return false;
        job_lock_remove(dir_fd, l->id);
        cleanup_close(&l->fd);
        l->fd = -1;
        return true;
}

/* Lines that are not a PCI address are ignored. */
static int parse_lock_file(JobLock *l, char *text) {
        char *rest = text, *line = strsep(&rest, "\n");
        int r = string_copy(&l->job, line);

        while (r >= 0 && (line = strsep(&rest, "\n"))) {
                PciAddress address;

                if (pci_address_parse(line, &address) == 0)
                        r = pci_address_append(&l->devices, &l->n_devices, address);
        }
        return r;
}

int job_lock_find(int dir_fd, uint32_t id, JobLock *ret) {
        _cleanup_free_ char *text = NULL;
        char buf[NAME_SIZE];
        int r;

        *ret = (JobLock) { .id = id };
        ret->fd = openat(dir_fd, file_name(id, buf), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (ret->fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (job_lock_is_free(dir_fd, ret))
                return 0;
        r = read_file_fd(ret->fd, FILE_SIZE_MAX, &text, NULL);
        if (r >= 0)
                r = parse_lock_file(ret, text);
        if (r < 0)
                job_lock_done(ret);
        return r < 0 ? r : 1;
}

int job_locks_find(int dir_fd, JobLock **ret, size_t *ret_n) {
        JobLock *locks = NULL;
        _cleanup_names_ char **names = NULL;
        size_t n_names = 0, n = 0;
        int r = list_dir_at(dir_fd, ".", JOB_LOCKS_MAX, &names, &n_names);

        for (size_t i = 0; r >= 0 && i < n_names; i++) {
                uint64_t id;

                /* Other files are none of ours. */
                if (parse_unsigned(names[i], UINT32_MAX, &id) < 0)
                        continue;
                r = ARRAY_RESERVE(locks, n);
                if (r >= 0)
                        r = job_lock_find(dir_fd, (uint32_t) id, &locks[n]);
                n += r > 0;
        }
        if (r < 0) {
                (void) job_locks_free(locks, n);
                return r;
        }
        *ret = locks;
        *ret_n = n;
        return 0;
}
