/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocates the memory of a shared memory region on its NUMA node, checks the node of each page, and frees the
 * memory. */

#include "region-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>

#define CHUNK         (64ULL << 20)
#define PAGES_AT_ONCE 1024U
#define LOOKS_MAX     1000U /* the most tries to find the node of pages that do not stay mapped */
#define OOM_SCORE     "/proc/self/oom_score_adj"
#define OOM_SCORE_MAX 16U

typedef struct Mapping {
        char *at;
        size_t size;
} Mapping;

static void unmap_region(Mapping *m) {
        if (m->at)
                (void) munmap(m->at, m->size);
}

static int map_region(int fd, const Region *r, Mapping *ret) {
        void *at = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (at == MAP_FAILED)
                return -errno;
        *ret = (Mapping) { .at = at, .size = r->size };
        return 0;
}

/* Sets the memory policy for pages that are allocated later. The policy belongs to the file, or in a hugetlbfs to the
 * mapping. */
static int bind_to_node(const Mapping *m, int node) {
        struct bitmask *nodes;
        long r;

        /* Without NUMA the only node is 0. */
        if (numa_available() < 0)
                return node == 0 ? 0 : -EINVAL;
        nodes = numa_allocate_nodemask();
        if (!nodes)
                return -ENOMEM;
        if ((unsigned long) node >= nodes->size) {
                numa_bitmask_free(nodes);
                return -EINVAL;
        }
        (void) numa_bitmask_setbit(nodes, (unsigned) node);
        r = mbind(m->at, m->size, MPOL_BIND, nodes->maskp, nodes->size + 1, 0);
        r = r < 0 ? -errno : 0;
        numa_bitmask_free(nodes);
        return (int) r;
}

/*
 * Checks that the *n pages, `stride` bytes apart, are on `node`. move_pages() reports only mapped pages. madvise() maps
 * them, because a read would raise SIGBUS beyond the end of the file, and a member of the group may shorten the file at
 * any moment. On success `pages` and *n hold the pages whose node is still unknown. -EEXIST: the file was shortened.
 * -ENOSYS: the kernel has no MADV_POPULATE_READ. -EXDEV: a page is on another node.
 */
static int look_at_pages(void **pages, size_t *n, size_t stride, int node) {
        int where[PAGES_AT_ONCE];
        size_t span = (size_t) ((char *) pages[*n - 1] - (char *) pages[0]) + stride, left = 0;

        if (madvise(pages[0], span, MADV_POPULATE_READ) < 0)
                return errno == EFAULT ? -EEXIST : errno == EINVAL ? -ENOSYS : -errno;
        if (move_pages(0, *n, pages, NULL, where, 0) < 0)
                return -errno;
        for (size_t i = 0; i < *n; i++)
                if (where[i] == -ENOENT)
                        pages[left++] = pages[i];
                else if (where[i] != node)
                        return where[i] < 0 ? where[i] : -EXDEV;
        *n = left;
        return 0;
}

/* Checks that n pages, `stride` bytes apart, are on `node`. The kernel may migrate or merge a page after it was mapped.
 * Such a page is mapped and checked again. */
static int check_pages(char *at, size_t stride, size_t n, int node) {
        void *pages[PAGES_AT_ONCE];
        int k = 0;

        for (size_t i = 0; i < n; i++)
                pages[i] = at + i * stride;
        for (unsigned look = 0; k == 0 && n > 0 && look < LOOKS_MAX; look++)
                k = look_at_pages(pages, &n, stride, node);
        return k == 0 && n > 0 ? -EBUSY : k;
}

static int check_nodes(const Mapping *m, const Region *r) {
        size_t stride = r->page_size ?: (size_t) sysconf(_SC_PAGESIZE), left = m->size / stride;
        char *at = m->at;
        int k = 0;

        if (numa_available() < 0)
                return 0;
        while (k == 0 && left > 0) {
                size_t n = MIN(left, (size_t) PAGES_AT_ONCE);

                k = check_pages(at, stride, n, r->node);
                at += n * stride;
                left -= n;
        }
        return k;
}

static void set_oom_score(const char *score) {
        _cleanup_close_ int fd = open(OOM_SCORE, O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
                (void) !write(fd, score, strlen(score));
}

/*
 * Makes the OOM killer prefer this process over guests while the region's memory is allocated. The caller restores the
 * score from ret_before afterwards, because the job must not be killed while it changes devices. ret_before is "" if
 * the score could not be read; the score is then unchanged.
 */
static void raise_oom_score(char ret_before[static OOM_SCORE_MAX]) {
        _cleanup_close_ int fd = open(OOM_SCORE, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, ret_before, OOM_SCORE_MAX - 1) : -1;

        ret_before[MAX(n, 0)] = '\0';
        if (n > 0)
                set_oom_score("1000");
}

/*
 * Allocates `size` bytes of pages from offset `at`. Does not write to them, because a write raises SIGBUS when memory
 * is short. Allocates hugepages through the mapping, because in a hugetlbfs the memory policy belongs to the mapping.
 */
static int allocate_pages(const Mapping *m, int fd, const Region *r, uint64_t at, uint64_t size) {
        if (r->page_size == 0)
                return fallocate(fd, 0, (off_t) at, (off_t) size) < 0 ? -errno : 0;
        if (madvise(m->at + at, size, MADV_POPULATE_WRITE) >= 0)
                return 0;
        return errno == EFAULT ? -ENOSPC : errno == EINVAL ? -ENOSYS : -errno;
}

int region_populate(int fd, const Region *r) {
        _cleanup_(unmap_region) Mapping m = { 0 };
        uint64_t chunk = MAX(CHUNK, r->page_size);
        char before[OOM_SCORE_MAX];
        int k = map_region(fd, r, &m);

        raise_oom_score(before);
        if (k == 0)
                k = bind_to_node(&m, r->node);
        for (uint64_t at = 0; k == 0 && at < r->size; at += chunk)
                k = allocate_pages(&m, fd, r, at, MIN(r->size - at, chunk));
        if (k == 0)
                k = check_nodes(&m, r);
        if (*before)
                set_oom_score(before);
        return k;
}

int region_clear(int fd) {
        /* Use a fixed end: a member of the group may enlarge the file at any moment. */
        return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, INT64_MAX) < 0 ? -errno : 0;
}
