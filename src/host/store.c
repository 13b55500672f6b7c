/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ledger on disk. */

#include "host/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "core/json.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

struct Store {
        int state_fd;
        int allocations_fd;
        uint64_t generation; /* the last one handed out */
        uint64_t reserved;   /* the number in the file */
};

static int open_dir(int parent_fd, const char *name) {
        int fd;

        if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Two daemons on one ledger would promise everything twice. The lock goes with the process, however that ends. */
static int lock(const Store *s, const char *path) {
        if (flock(s->state_fd, LOCK_EX | LOCK_NB) >= 0)
                return 0;
        if (errno == EWOULDBLOCK)
                return log_error_errno(-EBUSY, "Another passthroughd uses the state directory %s.", path);
        return log_error_errno(-errno, "Failed to lock the state directory %s: %m", path);
}

/* A missing file is the beginning of time; a broken one must not restart it. */
static int read_generation(Store *s) {
        _cleanup_free_ char *text = NULL;
        int r = read_file_at(s->state_fd, "generation", 64, &text, NULL);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        text[strcspn(text, "\n")] = '\0';
        r = parse_unsigned(text, INT64_MAX, &s->reserved);
        s->generation = s->reserved;
        return r;
}

int store_open(const char *path, Store **ret) {
        _cleanup_(cleanup_store_close) Store *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->allocations_fd = -1;
        s->state_fd = open_dir(AT_FDCWD, path);
        if (s->state_fd < 0)
                return log_error_errno(s->state_fd, "Failed to open the state directory %s: %m", path);
        r = lock(s, path);
        if (r < 0)
                return r;
        s->allocations_fd = open_dir(s->state_fd, "allocations");
        if (s->allocations_fd < 0)
                return log_error_errno(s->allocations_fd, "Failed to open %s/allocations: %m", path);
        *ret = TAKE_PTR(s);
        return 0;
}

Store *store_close(Store *s) {
        if (!s)
                return NULL;
        cleanup_close(&s->state_fd);
        cleanup_close(&s->allocations_fd);
        free(s);
        return NULL;
}

static int set_read_only(Ledger *l, const char *file, const char *why) {
        if (l->read_only)
                return 0;
        return string_replace(&l->read_only,
                              "The ledger file %s cannot be used: %s. Nothing can be allocated or released until it is "
                              "repaired or moved away "
                              "and the daemon restarted.",
                              file, why);
}

/* "it is held by 'b'." as part of a longer sentence. */
static const char *without_stop(char *sentence) {
        size_t n = sentence ? strlen(sentence) : 0;

        if (n > 0 && sentence[n - 1] == '.')
                sentence[n - 1] = '\0';
        return sentence;
}

static int load_file(Store *s, Ledger *l, const char *file) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        _cleanup_free_ char *text = NULL, *message = NULL, *expected = NULL, *path = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };
        size_t size;
        int r = string_replace(&path, "allocations/%s", file);

        if (r < 0)
                return r;
        r = read_file_at(s->allocations_fd, file, LEDGER_FILE_MAX, &text, &size);
        if (r < 0)
                return set_read_only(l, path,
                                     r == -E2BIG    ? "it is too large"
                                     : r == -EINVAL ? "it is not a regular file"
                                                    : strerror(-r));
        if (ledger_file_parse(text, size, &a, &message) != LEDGER_FILE_OK)
                return set_read_only(l, path, message ?: "out of memory");
        r = string_replace(&expected, "%s.json", a->name);
        if (r < 0)
                return r;
        if (!streq(expected, file))
                return set_read_only(l, path, "it is about an allocation of another name");
        if (ledger_adopt(l, a, &refusal) != VERDICT_NONE)
                return set_read_only(l, path, without_stop(refusal.message) ?: "it contradicts another file");
        s->generation = MAX(s->generation, a->generation);
        TAKE_PTR(a);
        return 0;
}

int store_load(Store *s, Ledger *l) {
        char **names = NULL;
        size_t n = 0;
        int r = list_dir_at(s->allocations_fd, ".", LEDGER_ALLOCATIONS_MAX * 2, &names, &n);

        if (r < 0)
                return log_error_errno(r, "Failed to list the ledger: %m");
        if (read_generation(s) < 0)
                r = set_read_only(l, "generation", "it does not hold a number");
        for (size_t i = 0; r == 0 && i < n; i++)
                /* Dot files are temporaries of a write that never became true. */
                if (names[i][0] != '.')
                        r = load_file(s, l, names[i]);
        (void) free_names(names, n);
        if (l->read_only)
                log_full(LOG_ERR, 0, (&(LogFields){ .id = MESSAGE_READ_ONLY }), "%s", l->read_only);
        return r;
}

int store_save(Store *s, const Allocation *a) {
        _cleanup_free_ char *name = NULL, *message = NULL, *text = ledger_file_format(a);
        _cleanup_(cleanup_allocation_free) Allocation *again = NULL;

        if (!text || string_replace(&name, "%s.json", a->name) < 0)
                return -ENOMEM;
        if (strlen(text) > LEDGER_FILE_MAX)
                return -E2BIG;
        /* Want of memory may have left out a member. What could not be read back would make the ledger read-only. */
        if (ledger_file_parse(text, strlen(text), &again, &message) != LEDGER_FILE_OK)
                return -ENOMEM;
        return write_file_atomic_at(s->allocations_fd, name, text, strlen(text));
}

int store_remove(Store *s, const char *name) {
        _cleanup_free_ char *file = NULL;

        if (string_replace(&file, "%s.json", name) < 0)
                return -ENOMEM;
        return remove_file_at(s->allocations_fd, file);
}

int store_next_generation(Store *s, uint64_t *ret) {
        if (s->generation >= s->reserved) {
                uint64_t reserved = s->generation + GENERATION_BLOCK;
                char text[32];
                int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", reserved), r;

                r = write_file_atomic_at(s->state_fd, "generation", text, (size_t) n);
                if (r < 0)
                        return r;
                s->reserved = reserved;
        }
        *ret = ++s->generation;
        return 0;
}
