/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lock files of job processes. */

#include "host/joblock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "util/fileio.h"
#include "util/strings.h"

/* The longest file is that of a job on a PF and all of its VFs, which are in one chain: 65536 lines like
 * "0000:83:00.1 1" take 960 KiB. */
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
        free(l->chains);
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

/* Writes the text of a lock file from its start. Returns the size of the text, or a negative errno. */
static int write_text(int fd, const char *job, const PciAddress *devices, const unsigned *chains, size_t n) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        ssize_t written;

        if (!f)
                return -ENOMEM;
        (void) fprintf(f, "%s\n", job);
        for (size_t i = 0; i < n; i++)
                (void) fprintf(f, "%s %u\n", PCI_ADDRESS_STR(devices[i]), chains[i]);
        if (fclose(f) != 0)
                return -ENOMEM;
        written = pwrite(fd, text, size, 0);
        if (written < 0)
                return -errno;
        return (size_t) written < size ? -ENOSPC : (int) size;
}

int job_lock_make(int dir_fd, uint32_t id, const char *job, const PciAddress *devices, const unsigned *chains,
                  size_t n) {
        char buf[NAME_SIZE];
        const char *name = file_name(id, buf);
        _cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r;

        if (fd < 0)
                return -errno;
        r = write_text(fd, job, devices, chains, n);
        if (r >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
                r = -errno;
        if (r >= 0)
                return TAKE_FD(fd);
        (void) unlinkat(dir_fd, name, 0);
        return r;
}

void job_lock_keep_chain(int fd, unsigned chain) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = chain, .l_len = 1 };
        char path[sizeof("/proc/self/fd/-2147483648")];
        int own;

        /* Open the file anew: an OFD lock belongs to the open file, and all processes of the job share that of fd. */
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        own = open(path, O_WRONLY | O_CLOEXEC);
        if (own < 0)
                return;
        (void) close(fcntl(own, F_OFD_SETLK, &lock) < 0 ? own : fd);
}

int job_lock_change(int dir_fd, uint32_t id, const char *job, const PciAddress *devices, const unsigned *chains,
                    size_t n) {
        char buf[NAME_SIZE];
        _cleanup_close_ int fd = openat(dir_fd, file_name(id, buf), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? -errno : write_text(fd, job, devices, chains, n);

        /* Cut off the rest of a longer former text. Until then a reader sees that rest, too. */
        return r < 0 ? r : ftruncate(fd, r) < 0 ? -errno : 0;
}

void job_lock_remove(int dir_fd, uint32_t id) {
        char buf[NAME_SIZE];

        (void) unlinkat(dir_fd, file_name(id, buf), 0);
}

/* Returns true when a process that works for the whole job holds the lock. */
static bool is_held_whole(const JobLock *l) {
        if (flock(l->fd, LOCK_EX | LOCK_NB) < 0)
                return true;
        (void) flock(l->fd, LOCK_UN);
        return false;
}

/* Returns true when a process holds the lock of one of the n chains from `first` on, or the locks cannot be read. If n
 * is 0, any chain from `first` on counts. */
static bool is_held(const JobLock *l, unsigned first, unsigned n) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = n };

        return fcntl(l->fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/* Checks the lock of the whole job before those of the chains: a process locks its chain before it drops the lock of
 * the job. */
bool job_lock_is_free(int dir_fd, JobLock *l) {
        if (l->fd >= 0 && (is_held_whole(l) || is_held(l, 0, 0)))
                return false;
        job_lock_remove(dir_fd, l->id);
        cleanup_close(&l->fd);
        l->fd = -1;
        return true;
}

size_t job_lock_split(JobLock *l) {
        bool whole = l->fd >= 0 && is_held_whole(l);
        size_t n = 0;

        for (size_t i = 0; i < l->n_devices; i++) {
                PciAddress device = l->devices[i];
                unsigned chain = l->chains[i];

                if (!whole && (l->fd < 0 || chain == 0 || !is_held(l, chain, 1)))
                        continue;
                l->devices[i] = l->devices[n];
                l->chains[i] = l->chains[n];
                l->devices[n] = device;
                l->chains[n++] = chain;
        }
        return n;
}

/* Parses a lock file: the name of the job, and a line for each device. Skips further lines that do not begin with a PCI
 * address. */
static int parse_lock_file(JobLock *l, char *text) {
        char *rest = text, *line = strsep(&rest, "\n");
        int r = string_copy(&l->job, line);

        if (r < 0)
                return r;
        while ((line = strsep(&rest, "\n"))) {
                const char *address = strsep(&line, " ");
                uint64_t chain = 0;
                PciAddress device;

                if (pci_address_parse(address, &device) < 0)
                        continue;
                if (line)
                        (void) parse_unsigned(line, UINT_MAX, &chain);
                if (ARRAY_RESERVE(l->devices, l->n_devices) < 0 || ARRAY_RESERVE(l->chains, l->n_devices) < 0)
                        return -ENOMEM;
                l->devices[l->n_devices] = device;
                l->chains[l->n_devices++] = (unsigned) chain;
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
        else
                ret->n_devices = job_lock_split(ret);
        return r < 0 ? r : 1;
}

int job_locks_find(int dir_fd, JobLock **ret, size_t *ret_n) {
        JobLock *locks = NULL;
        _cleanup_names_ char **names = NULL;
        size_t n_names = 0, n = 0;
        int r = list_dir_at(dir_fd, ".", JOB_LOCKS_MAX, &names, &n_names);

        for (size_t i = 0; r >= 0 && i < n_names; i++) {
                uint64_t id;

                /* Not the name of a lock file. */
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
