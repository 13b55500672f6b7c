/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds, creates and removes the file of a shared memory region. */

#include "host/region.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "region-memory.h"
#include "util/fileio.h"
#include "util/group.h"
#include "util/log.h"
#include "util/strings.h"

#define SHM_DIR         "dev/shm"
#define HUGEPAGES_NAME  "hugepages"
#define DEV_ENTRIES_MAX 16384U
#define SHM_ENTRIES_MAX 65536U

#define MODE_NEW  0600 /* only the daemon may open the file until the region is complete */
#define MODE_DONE 0660

/* Where a region's file is. */
typedef struct Place {
        int shm;       /* descriptor of dev/shm */
        int memory;    /* descriptor of the directory with the file itself: dev/shm or a hugetlbfs */
        char path[64]; /* absolute path of that hugetlbfs, for the link in dev/shm */
} Place;

static void place_done(Place *p) {
        if (p->memory >= 0 && p->memory != p->shm)
                (void) close(p->memory);
        cleanup_close(&p->shm);
}

static int open_directory(const Sysfs *fs, const char *path, struct statfs *ret) {
        _cleanup_close_ int fd = sysfs_open(fs, path, O_RDONLY | O_DIRECTORY);

        if (fd < 0)
                return fd;
        return fstatfs(fd, ret) < 0 ? -errno : TAKE_FD(fd);
}

/* Finds a hugetlbfs with this page size in dev/hugepages*. The daemon's sandbox leaves only dev/shm and the usual
 * dev/hugepages* writable in dev. Writes the absolute path to `path`. -ENODEV: there is none. */
static int open_hugepages(const Sysfs *fs, uint64_t page_size, char *path, size_t size) {
        _cleanup_close_ int dev = sysfs_open(fs, "dev", O_RDONLY | O_DIRECTORY);
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int found = -ENODEV, r = dev < 0 ? dev : list_dir_at(dev, ".", DEV_ENTRIES_MAX, &names, &n);

        if (r < 0)
                return r;
        for (size_t i = 0; found < 0 && i < n; i++) {
                _cleanup_close_ int fd = -1;
                struct statfs s;

                if (strncmp(names[i], HUGEPAGES_NAME, strlen(HUGEPAGES_NAME)) != 0 ||
                    (size_t) snprintf(path, size, "/dev/%s", names[i]) >= size)
                        continue;
                fd = open_directory(fs, path, &s);
                if (fd >= 0 && s.f_type == HUGETLBFS_MAGIC && (uint64_t) s.f_bsize == page_size)
                        found = TAKE_FD(fd);
        }
        return found;
}

/* Makes the hugetlbfs writable for the daemon. Usually only root may write there. */
static int make_writable(int dir) {
        if (faccessat(dir, ".", W_OK, AT_EACCESS) >= 0 || errno != EACCES)
                return 0;
        return fchown(dir, geteuid(), (gid_t) -1) < 0 ? -errno : 0;
}

static int place_find(const Sysfs *fs, const Region *r, Place *p) {
        struct statfs s;

        *p = (Place) { .shm = -1, .memory = -1 };
        p->shm = open_directory(fs, SHM_DIR, &s);
        if (p->shm < 0)
                return p->shm;
        if (s.f_type != TMPFS_MAGIC)
                return -ENOTSUP;
        p->memory = r->page_size > 0 ? open_hugepages(fs, r->page_size, p->path, sizeof(p->path)) : p->shm;
        return p->memory < 0 ? p->memory : 0;
}

/* Returns true when the file belongs to the daemon or to root. No other user can make such a file. */
static bool is_of_root_or_own(const struct stat *s) {
        return s->st_uid == geteuid() || s->st_uid == 0;
}

/* What a file with the region's name is. */
typedef struct FileState {
        bool intact;   /* the daemon created it, and no user has resized or linked it; it may be empty after a crash */
        bool altered;  /* the daemon created it, but a member of the group resized or linked it */
        bool complete; /* has the region's size, memory and mode */
} FileState;

static FileState check_file(const struct stat *s, const Region *r) {
        bool own = S_ISREG(s->st_mode) && s->st_uid == geteuid(), done = (s->st_mode & 07777) == MODE_DONE;
        bool as_made = s->st_nlink == 1 && (s->st_size == 0 || (uint64_t) s->st_size == r->size);

        return (FileState) {
                .intact = own && as_made,
                .altered = own && !as_made && done, /* before MODE_DONE only the daemon can change it */
                .complete = done && (uint64_t) s->st_size == r->size && (uint64_t) s->st_blocks * 512 >= r->size,
        };
}

/* Opens the file with the region's name if it is intact or altered. -ENOENT: there is no such file. -EEXIST: the file
 * is neither, so the daemon did not create it for this region. */
static int open_found(int dir, const Region *r, FileState *ret) {
        char name[REGION_FILE_MAX];
        /* Another user may have made a link or a FIFO there. */
        _cleanup_close_ int fd =
                openat(dir, region_file(r, name), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat s;

        if (fd < 0)
                return errno == ENOENT ? -ENOENT : -EEXIST;
        if (fstat(fd, &s) < 0)
                return -errno;
        *ret = check_file(&s, r);
        return ret->intact || ret->altered ? TAKE_FD(fd) : -EEXIST;
}

/* Opens the region's file if it is intact. -ENOENT: there is none. -EEXIST: the daemon did not create the file, or the
 * file was altered. */
static int open_intact(int dir, const Region *r) {
        FileState found;
        _cleanup_close_ int fd = open_found(dir, r, &found);

        if (fd < 0)
                return fd;
        return found.intact ? TAKE_FD(fd) : -EEXIST;
}

/*
 * Renames a file with the region's name that belongs neither to root nor to the daemon's user. Every user can create
 * such a file in dev/shm while the region has none, for example after a boot. The ledger reserves the name for the
 * region. The renamed file keeps its contents.
 */
static int move_aside(int dir, const char *name) {
        char aside[REGION_FILE_MAX + 32];
        uint64_t random;
        struct stat s;

        if (fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW) < 0 || is_of_root_or_own(&s))
                return 0;
        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
                return -EIO;
        (void) snprintf(aside, sizeof(aside), "moved-%s-%016" PRIx64, name, random);
        if (renameat2(dir, name, dir, aside, RENAME_NOREPLACE) < 0)
                return -errno;
        log_warning("A file of uid %u had the name of the shared memory region %s. The file was renamed to %s.",
                    s.st_uid, name, aside);
        return 0;
}

/* Creates the symbolic link in dev/shm to a region's file in a hugetlbfs, unless it exists: QEMU opens the file in
 * dev/shm for libvirt's <shmem>. Does nothing for a file in dev/shm itself. Returns -EEXIST if another file or link has
 * the name. */
static int link_memory(const Place *p, const char *name) {
        char target[sizeof(p->path) + 1 + REGION_FILE_MAX], current[sizeof(target)];
        struct stat s;
        ssize_t n;

        if (p->memory == p->shm)
                return 0;
        (void) snprintf(target, sizeof(target), "%s/%s", p->path, name);
        if (symlinkat(target, p->shm, name) < 0 && errno != EEXIST)
                return -errno;
        if (fstatat(p->shm, name, &s, AT_SYMLINK_NOFOLLOW) < 0 || !is_of_root_or_own(&s))
                return -EEXIST;
        n = readlinkat(p->shm, name, current, sizeof(current));
        if (n != (ssize_t) strlen(target) || memcmp(current, target, (size_t) n) != 0)
                return -EEXIST;
        /* In a sticky directory, QEMU can follow only its own links and those of the directory's owner
         * (fs.protected_symlinks). Without CAP_CHOWN, as in tests, the link belongs to the daemon. */
        if (geteuid() != 0)
                (void) !fchownat(p->shm, name, 0, (gid_t) -1, AT_SYMLINK_NOFOLLOW);
        return 0;
}

/* Allocates the region's memory, creates the link, and gives the file to the group. */
static int fill_region(const Place *p, int fd, const Region *r, gid_t gid) {
        char name[REGION_FILE_MAX];
        int k = 0;

        if (ftruncate(fd, (off_t) r->size) < 0)
                return -errno;
        k = region_populate(fd, r);
        if (k >= 0 && p->memory != p->shm)
                k = move_aside(p->shm, region_file(r, name));
        if (k >= 0)
                k = link_memory(p, region_file(r, name));
        /* Set the mode last: MODE_DONE says that the region is complete. */
        if (k >= 0 && (fchown(fd, (uid_t) -1, gid) < 0 || fchmod(fd, MODE_DONE) < 0))
                k = -errno;
        return k;
}

static int remove_file(const Place *p, const Region *r) {
        char name[REGION_FILE_MAX];

        if (unlinkat(p->memory, region_file(r, name), 0) < 0 && errno != ENOENT)
                return -errno;
        /* If another file or link has the name in dev/shm, link_memory() fails, and that file or link is kept. */
        if (p->memory != p->shm && link_memory(p, name) >= 0 && unlinkat(p->shm, name, 0) < 0)
                return -errno;
        return 0;
}

/* Several attempts, because a child of an earlier daemon may remove the file between create and open. */
#define OPEN_ATTEMPTS 3

static int create_or_open(int dir, const Region *r, bool *ret_made) {
        char name[REGION_FILE_MAX];
        int fd = -ENOENT, k = move_aside(dir, region_file(r, name));

        *ret_made = false;
        if (k >= 0)
                k = make_writable(dir);
        if (k < 0)
                return k;
        for (int i = 0; fd == -ENOENT && i < OPEN_ATTEMPTS; i++) {
                fd = openat(dir, region_file(r, name), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE_NEW);
                *ret_made = fd >= 0;
                if (fd < 0)
                        fd = errno == EEXIST ? open_intact(dir, r) : -errno;
        }
        return fd;
}

int region_make(const Sysfs *fs, const Region *r, const char *group) {
        _cleanup_(place_done) Place p;
        _cleanup_close_ int fd = -1;
        bool made;
        gid_t gid = 0;
        int k = place_find(fs, r, &p);

        if (k >= 0)
                k = group_find(group, &gid);
        if (k < 0)
                return k;
        fd = create_or_open(p.memory, r, &made);
        if (fd < 0)
                return fd;
        k = fill_region(&p, fd, r, gid);
        if (k < 0 && made)
                (void) remove_file(&p, r);
        return k < 0 ? k : made;
}

int region_remove(const Sysfs *fs, const Region *r) {
        _cleanup_(place_done) Place p;
        _cleanup_close_ int fd = -1;
        FileState found;
        int k = place_find(fs, r, &p);

        /* There is no tmpfs at dev/shm or no hugetlbfs with the page size, so there is no file either. */
        if (k == -ENOENT || k == -ENODEV || k == -ENOTSUP)
                return 0;
        if (k < 0)
                return k;
        fd = open_found(p.memory, r, &found);
        if (fd == -EEXIST)
                return 0;
        if (fd < 0 && fd != -ENOENT)
                return fd;
        /* Free the memory, too: a process may still have the file open, or another hard link to it may exist. */
        if (fd >= 0)
                k = region_clear(fd);
        return k < 0 ? k : remove_file(&p, r);
}

int region_verify(const Sysfs *fs, const Region *r) {
        _cleanup_(place_done) Place p;
        _cleanup_close_ int fd = -1;
        struct stat s;
        char name[REGION_FILE_MAX];
        FileState found = { 0 };
        int k = place_find(fs, r, &p);

        if (k < 0)
                return k == -ENOENT || k == -ENODEV || k == -ENOTSUP ? 0 : k;
        fd = open_found(p.memory, r, &found);
        if (fd < 0 && fd != -ENOENT)
                return fd;
        if (p.memory == p.shm)
                return found.complete || found.altered;
        /* The region is complete only if dev/shm has its link. Another file or link may have the name. */
        k = fstatat(p.shm, region_file(r, name), &s, AT_SYMLINK_NOFOLLOW);
        if (k < 0)
                return errno == ENOENT ? 0 : -errno;
        return link_memory(&p, name) < 0 ? -EEXIST : found.complete || found.altered;
}

static bool is_own_region(int dir, const char *name) {
        struct stat s;

        return strncmp(name, REGION_FILE_PREFIX, strlen(REGION_FILE_PREFIX)) == 0 &&
               fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW) >= 0 && is_of_root_or_own(&s);
}

int regions_list(const Sysfs *fs, char ***ret, size_t *ret_n) {
        const size_t prefix = strlen(REGION_FILE_PREFIX);
        _cleanup_close_ int fd = sysfs_open(fs, SHM_DIR, O_RDONLY | O_DIRECTORY);
        char **names = NULL;
        size_t n = 0, kept = 0;
        int r = fd == -ENOENT ? 0 : fd < 0 ? fd : list_dir_at(fd, ".", SHM_ENTRIES_MAX, &names, &n);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                if (is_own_region(fd, names[i])) {
                        memmove(names[i], names[i] + prefix, strlen(names[i] + prefix) + 1);
                        names[kept++] = names[i];
                } else
                        free(names[i]);
        if (n > 0)
                names[kept] = NULL;
        *ret = names;
        *ret_n = kept;
        return 0;
}
