/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Reads meminfo and the hugepages of a NUMA node. */

#include "numa-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "host/numa.h"
#include "util/fileio.h"
#include "util/strings.h"

#define HUGEPAGES_MAX 64U
#define PROC_FILE_MAX (64U * 1024U)
#define KIB           1024U

#define MEM_TOTAL "MemTotal:"
#define MEM_FREE  "MemFree:"
#define N_EXACT   2 /* the array begins with the two keys above; the others are of memory that the kernel can reclaim */

const char *const numa_meminfo_keys[] = {
        MEM_TOTAL, MEM_FREE, "Active(file):", "Inactive(file):", "SReclaimable:", NULL
};

/* Parses a number of KiB at the start of text. *ret is in bytes; *end is the text after the number. */
static int parse_kib(const char *text, uint64_t *ret, const char **end) {
        size_t n = strspn(text, "0123456789");
        char number[32];

        if (n == 0 || n >= sizeof(number))
                return -EINVAL;
        memcpy(number, text, n);
        number[n] = '\0';
        if (parse_unsigned(number, UINT64_MAX / KIB, ret) < 0)
                return -EINVAL;
        *ret *= KIB;
        *end = text + n;
        return 0;
}

/* Parses "Node 0 MemTotal:  65843180 kB" (of a node) or "MemTotal:  65843180 kB" (of the machine). *ret is in bytes. */
static int parse_amount(const char *text, const char *key, uint64_t *ret) {
        const char *at = strstr(text, key), *end;

        if (!at)
                return -EINVAL;
        at += strlen(key);
        return parse_kib(at + strspn(at, " "), ret, &end);
}

/* Sets `available` to what the kernel can allocate: free pages, and page cache and slabs that it can reclaim. Without
 * MemFree, as in some recordings, available_known is false and `available` is too small. */
static void parse_available(const char *text, NumaNode *node) {
        uint64_t amount;

        node->available_known = parse_amount(text, MEM_FREE, &node->available) >= 0;
        for (const char *const *key = numa_meminfo_keys + N_EXACT; *key; key++)
                if (parse_amount(text, *key, &amount) >= 0 &&
                    __builtin_add_overflow(node->available, amount, &node->available))
                        node->available = UINT64_MAX;
}

static int parse_memory(const char *text, NumaNode *node) {
        int r = parse_amount(text, MEM_TOTAL, &node->memory);

        if (r >= 0)
                parse_available(text, node);
        return r;
}

int numa_read_memory(const Sysfs *fs, Inventory *inv, const char *dir, NumaNode *node) {
        _cleanup_close_ int fd = sysfs_open(fs, dir, O_RDONLY | O_DIRECTORY);
        _cleanup_free_ char *text = NULL;
        int r = fd < 0 ? fd : read_file_at(fd, "meminfo", PROC_FILE_MAX, &text, NULL);

        if (r >= 0)
                r = parse_memory(text, node);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return inventory_add_note(inv, "%s/meminfo cannot be used (%s).", dir, strerror(-r));
        return 0;
}

static int read_count(const Sysfs *fs, int dir_fd, const char *pool, const char *attribute, uint64_t *ret) {
        char path[128], buf[SYSFS_ATTRIBUTE_MAX];
        int r;

        if ((size_t) snprintf(path, sizeof(path), "%s/%s", pool, attribute) >= sizeof(path))
                return -EINVAL;
        r = sysfs_read_at(fs, dir_fd, path, buf, sizeof(buf));
        return r < 0 ? r : parse_unsigned(buf, UINT64_MAX, ret);
}

/* Parses the page size in a directory's name, "hugepages-2048kB". */
static int parse_pool_size(const char *name, uint64_t *ret) {
        static const char prefix[] = "hugepages-";
        const char *end;

        if (strncmp(name, prefix, strlen(prefix)) != 0 || parse_kib(name + strlen(prefix), ret, &end) < 0)
                return -EINVAL;
        return streq(end, "kB") && *ret > 0 ? 0 : -EINVAL;
}

static int pool_compare(const void *a, const void *b) {
        const PagePool *x = a, *y = b;

        return (x->size > y->size) - (x->size < y->size);
}

int numa_read_pools(const Sysfs *fs, Inventory *inv, const char *dir, NumaNode *node) {
        _cleanup_close_ int fd = sysfs_open(fs, dir, O_RDONLY | O_DIRECTORY);
        _cleanup_names_ char **names = NULL;
        size_t n;
        int r;

        if (fd == -ENOENT)
                return 0; /* the node has no memory, or the kernel has no hugepages */
        r = fd < 0 ? fd : list_dir_at(fd, ".", HUGEPAGES_MAX, &names, &n);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return inventory_add_note(inv, "%s cannot be read (%s).", dir, strerror(-r));

        for (size_t i = 0; i < n && r >= 0; i++) {
                PagePool pool;

                if (parse_pool_size(names[i], &pool.size) < 0 || node->n_pages >= PAGE_SIZES_MAX)
                        continue;
                if (read_count(fs, fd, names[i], "nr_hugepages", &pool.total) < 0 ||
                    read_count(fs, fd, names[i], "free_hugepages", &pool.free) < 0)
                        r = inventory_add_note(inv, "The counts in %s/%s cannot be used.", dir, names[i]);
                else
                        node->pages[node->n_pages++] = pool;
        }
        qsort(node->pages, node->n_pages, sizeof(*node->pages), pool_compare);
        return MIN(r, 0);
}

void numa_refresh_memory(const Sysfs *fs, const NumaNode *before, NumaNode *node) {
        char path[64], buf[SYSFS_ATTRIBUTE_MAX];
        _cleanup_close_ int fd = -1;

        (void) snprintf(path, sizeof(path), NUMA_NODES_DIR "/node%d", node->id);
        fd = sysfs_open(fs, path, O_PATH | O_DIRECTORY);
        if (fd < 0 || sysfs_read_at(fs, fd, "meminfo", buf, sizeof(buf)) < 0 || parse_memory(buf, node) < 0)
                node->memory = 0;
        for (size_t i = 0; i < before->n_pages; i++) {
                PagePool *pool = &node->pages[node->n_pages++];

                *pool = (PagePool) { .size = before->pages[i].size };
                (void) snprintf(path, sizeof(path), "hugepages/hugepages-%" PRIu64 "kB", pool->size / KIB);
                if (fd < 0 || read_count(fs, fd, path, "nr_hugepages", &pool->total) < 0 ||
                    (pool->total > 0 && read_count(fs, fd, path, "free_hugepages", &pool->free) < 0))
                        pool->total = pool->free = 0;
        }
}
