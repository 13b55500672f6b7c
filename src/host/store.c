/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes the ledger's files. */

#include "host/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "ledger/ledger-file.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

struct Store {
        char *path;
        int state_fd;
        int allocations_fd;  /* -errno: cannot be opened, so the ledger is read-only */
        int quarantine_fd;   /* as allocations_fd, for the directory of quarantined devices */
        int spare_fd;        /* file that store_add() will use; negative: none */
        uint64_t generation; /* the highest generation that may have been assigned */
        uint64_t reserved;   /* number in STATE/generation */
        char *released;      /* a newline, then the text of STATE/released; NULL: none */
        Ledger *ledger;      /* the ledger of store_load(), not owned */
};

#define RELEASED_FILE "released"

/* The next block must not exceed INT64_MAX, the highest generation that a file may have. */
#define GENERATION_MAX ((uint64_t) INT64_MAX - GENERATION_BLOCK)

/* If r is an error other than -ENOMEM, notes in the ledger that a file could not be changed. Returns r. */
static int note_failure(const Store *s, int r) {
        if (r < 0 && r != -ENOMEM)
                (void) string_replace(&s->ledger->unwritable, "The ledger cannot be written: %s.", strerror(-r));
        return r;
}

/* As note_failure(), but a success clears the noted failure. */
static int note_write(const Store *s, int r) {
        if (r >= 0)
                (void) string_copy(&s->ledger->unwritable, NULL);
        return note_failure(s, r);
}

static int open_dir(int parent_fd, const char *name, int flags) {
        int fd;

        if (mkdirat(parent_fd, name, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
        return fd < 0 ? -errno : fd;
}

/* Wait for the lock: a child of the last daemon keeps it until it sees that its parent has exited. */
#define LOCK_TRIES 100
#define LOCK_PAUSE (20L * 1000L * 1000L) /* nsec */

/* Locks the state directory until the store is closed: two daemons with one ledger would allocate each device twice. */
static int lock(const Store *s, const char *path) {
        int r = flock(s->state_fd, LOCK_EX | LOCK_NB);

        for (int i = 0; r < 0 && errno == EWOULDBLOCK && i < LOCK_TRIES; i++) {
                (void) nanosleep(&(struct timespec) { .tv_nsec = LOCK_PAUSE }, NULL);
                r = flock(s->state_fd, LOCK_EX | LOCK_NB);
        }
        if (r >= 0)
                return 0;
        if (errno == EWOULDBLOCK)
                return log_error_errno(-EBUSY, "Another passthroughd process uses the state directory %s.", path);
        return log_error_errno(-errno, "Failed to lock the state directory %s: %m", path);
}

/* Reads STATE/generation. A missing file counts as 0. A damaged file is an error: no number may be used twice. */
static int read_generation(Store *s) {
        _cleanup_free_ char *text = NULL;
        int r = read_file_at(s->state_fd, "generation", 64, &text, NULL);
        char *end;

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        /* Without its newline the number may be cut off, and smaller than numbers in use. */
        end = strchr(text, '\n');
        if (!end)
                return -EINVAL;
        *end = '\0';
        r = parse_unsigned(text, INT64_MAX, &s->reserved);
        s->generation = s->reserved;
        return r;
}

/* Removes temporary files. A crash leaves one behind, and so does a failed write that could not remove its file. */
static void remove_temporaries(const Store *s) {
        const int fds[] = { s->state_fd, s->allocations_fd, s->quarantine_fd };

        for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
                int r = fds[i] < 0 ? 0 : remove_temporaries_at(fds[i]);

                if (r < 0)
                        log_warning_errno(r, "Failed to remove temporary files below %s, ignoring: %m", s->path);
        }
}

int store_open(const char *path, Store **ret) {
        _cleanup_(cleanup_store_close) Store *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->state_fd = s->allocations_fd = s->quarantine_fd = s->spare_fd = -1;
        if (string_copy(&s->path, path) < 0)
                return -ENOMEM;
        s->state_fd = open_dir(AT_FDCWD, path, 0);
        if (s->state_fd < 0)
                return log_error_errno(s->state_fd, "Failed to open the state directory %s: %m", path);
        r = lock(s, path);
        if (r < 0)
                return r;
        s->allocations_fd = open_dir(s->state_fd, "allocations", O_NOFOLLOW);
        s->quarantine_fd = open_dir(s->state_fd, "quarantine", O_NOFOLLOW);
        remove_temporaries(s);
        *ret = TAKE_PTR(s);
        return 0;
}

Store *store_close(Store *s) {
        if (!s)
                return NULL;
        cleanup_close(&s->state_fd);
        cleanup_close(&s->allocations_fd);
        cleanup_close(&s->quarantine_fd);
        cleanup_close(&s->spare_fd);
        free(s->path);
        free(s->released);
        free(s);
        return NULL;
}

#define UNTIL "Nothing can be allocated or released until it is repaired "

static int set_read_only(Ledger *l, const char *file, const char *why) {
        if (l->read_only)
                return 0;
        return string_replace(&l->read_only,
                              "The ledger file %s cannot be used: %s. " UNTIL "or moved away and the daemon restarted.",
                              file, why);
}

static const char *why_unreadable(int error) {
        switch (error) {
        case -E2BIG:
                return "it is too large";
        case -EINVAL:
                return "it is not a regular file";
        case -ENOTDIR:
                return "it is not a directory";
        default:
                return strerror(-error);
        }
}

/* Makes the ledger read-only if another user owns the directory or can write to it, and so could add or remove
 * allocations. */
static int check_directory(const Store *s, int fd, const char *name, Ledger *l) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (l->read_only || (st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0))
                return 0;
        return string_replace(
                &l->read_only,
                "The ledger cannot be trusted: the directory %s%s%s belongs to uid %u and has mode %04o, so "
                "that other users can write to it. " UNTIL "with chown and chmod 0700 and the daemon restarted.",
                s->path, *name ? "/" : "", name, st.st_uid, st.st_mode & 07777U);
}

/* Cuts off the full stop of a sentence that goes into a longer one. NULL for NULL. */
static const char *without_stop(char *sentence) {
        size_t n = sentence ? strlen(sentence) : 0;

        if (n > 0 && sentence[n - 1] == '.')
                sentence[n - 1] = '\0';
        return sentence;
}

/* Reads an allocation or quarantine file. If the file is unusable, *ret is NULL and the ledger becomes read-only. */
static int read_allocation(int dir_fd, const char *dir, const char *file, Ledger *l, Allocation **ret) {
        _cleanup_free_ char *text = NULL, *message = NULL, *path = NULL;
        size_t size;
        int r = string_replace(&path, "%s/%s", dir, file);

        *ret = NULL;
        if (r < 0)
                return r;
        r = read_file_at(dir_fd, file, LEDGER_FILE_MAX, &text, &size);
        if (r < 0)
                return set_read_only(l, path, why_unreadable(r));
        if (ledger_file_parse(text, size, ret, &message) != LEDGER_FILE_OK)
                return set_read_only(l, path, message ?: "out of memory");
        return 0;
}

static int refuse_file(Ledger *l, const char *dir, const char *file, const char *why) {
        _cleanup_free_ char *path = NULL;
        int r = string_replace(&path, "%s/%s", dir, file);

        return r < 0 ? r : set_read_only(l, path, why);
}

static int load_file(Store *s, Ledger *l, const char *file) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        _cleanup_free_ char *expected = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };
        int r = read_allocation(s->allocations_fd, "allocations", file, l, &a);

        if (r < 0 || !a)
                return r;
        r = string_replace(&expected, "%s.json", a->name);
        if (r < 0)
                return r;
        if (!streq(expected, file))
                return refuse_file(l, "allocations", file, "it holds an allocation of another name");
        if (ledger_adopt(l, a, &refusal) != VERDICT_NONE)
                return refuse_file(l, "allocations", file,
                                   without_stop(refusal.message) ?: "it contradicts another file");
        s->generation = MAX(s->generation, a->generation);
        TAKE_PTR(a);
        return 0;
}

#define QUARANTINE_FILE_MAX (PCI_ADDRESS_STRING_MAX + sizeof(".json"))

static const char *quarantine_file(PciAddress device, char buf[static QUARANTINE_FILE_MAX]) {
        (void) snprintf(buf, QUARANTINE_FILE_MAX, "%s.json", PCI_ADDRESS_STR(device));
        return buf;
}

static int load_quarantined(Store *s, Ledger *l, const char *file) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        char expected[QUARANTINE_FILE_MAX];
        int r = read_allocation(s->quarantine_fd, "quarantine", file, l, &a);

        if (r < 0 || !a)
                return r;
        if (a->n_devices != 1 || !a->reason || !streq(quarantine_file(a->devices[0].address, expected), file))
                return refuse_file(l, "quarantine", file, "it does not hold the device that it is named after");
        r = ledger_quarantine(l, a);
        if (r == 0)
                TAKE_PTR(a);
        return r;
}

static int load_directory(Store *s, Ledger *l, const char *name, int dir_fd,
                          int (*load)(Store *s, Ledger *l, const char *file)) {
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = dir_fd < 0 ? dir_fd : check_directory(s, dir_fd, name, l);

        if (r >= 0)
                r = list_dir_at(dir_fd, ".", LEDGER_ALLOCATIONS_MAX * 2, &names, &n);
        if (r < 0)
                return r == -ENOMEM ? r
                                    : set_read_only(l, name, r == -E2BIG ? "it has too many files" : why_unreadable(r));
        for (size_t i = 0; r >= 0 && i < n; i++)
                /* Skip temporary files of interrupted writes. */
                if (names[i][0] != '.')
                        r = load(s, l, names[i]);
        return r;
}

#define SERVICES_FILE     "stopped-services"
#define SERVICES_FILE_MAX (1024U * 1024U)

static int load_services(const Store *s, Ledger *l, char **ret) {
        int r = read_file_at(s->state_fd, SERVICES_FILE, SERVICES_FILE_MAX, ret, NULL);

        if (r >= 0 || r == -ENOENT)
                return 0;
        return r == -ENOMEM ? r : set_read_only(l, SERVICES_FILE, why_unreadable(r));
}

/* Loads STATE/released. Without it, a repeated release of an allocation that is gone is refused, which does no harm. */
static void load_released(Store *s) {
        _cleanup_free_ char *text = NULL;
        int r = read_file_at(s->state_fd, RELEASED_FILE, RELEASED_MAX * (ALLOCATION_NAME_MAX + 24U), &text, NULL);

        if (r >= 0)
                s->released = string_format("\n%s", text);
        else if (r != -ENOENT)
                log_warning_errno(r, "Failed to read %s/" RELEASED_FILE ", ignoring: %m", s->path);
}

static int load_files(Store *s, Ledger *l, char **ret_services) {
        bool trusted;
        int r = check_directory(s, s->state_fd, "", l);

        if (r < 0)
                return r;
        trusted = !l->read_only;
        r = read_generation(s) < 0 ? set_read_only(l, "generation", "it does not hold a number") : 0;
        if (r < 0)
                return r;
        r = load_directory(s, l, "allocations", s->allocations_fd, load_file);
        if (r < 0)
                return r;
        r = load_directory(s, l, "quarantine", s->quarantine_fd, load_quarantined);
        if (r < 0)
                return r;
        /* These services are started as root: other users must not be able to name them. */
        return trusted ? load_services(s, l, ret_services) : 0;
}

int store_load(Store *s, Ledger *l, char **ret_services) {
        _cleanup_free_ char *services = NULL;
        int r;

        s->ledger = l;
        r = load_files(s, l, &services);
        if (r < 0)
                return log_error_errno(r, "Failed to load the ledger: %m");
        load_released(s);
        if (MAX(s->generation, s->reserved) > GENERATION_MAX)
                (void) set_read_only(l, "generation", "no generation above those of it and of the allocations is left");
        if (l->read_only)
                log_full(LOG_ERR, 0, (&(LogFields) { .id = MESSAGE_READ_ONLY }), "%s", l->read_only);
        /* Reports a read-only file system at startup rather than at the first write. */
        if (s->allocations_fd >= 0 &&
            note_failure(s, faccessat(s->allocations_fd, ".", W_OK, AT_EACCESS) < 0 ? -errno : 0) < 0)
                log_full(LOG_ERR, 0, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE }), "%s", l->unwritable);
        *ret_services = TAKE_PTR(services);
        return 0;
}

void store_prepare(Store *s) {
        if (s->spare_fd < 0 && s->allocations_fd >= 0)
                s->spare_fd = spare_file_at(s->allocations_fd);
}

/* Writes a file. spare: from spare_file_at(), used if no file has the name yet, and owned by this function; negative:
 * none. */
static int save(const Store *s, int dir_fd, int spare, const char *file, const Allocation *a) {
        _cleanup_free_ char *text = ledger_file_format(a);
        _cleanup_close_ int fd = spare;

        if (!text)
                return -ENOMEM;
        if (strlen(text) > LEDGER_FILE_MAX)
                return -E2BIG;
        if (fd >= 0 && write_spare_file_at(dir_fd, file, TAKE_FD(fd), text, strlen(text)) >= 0)
                return note_write(s, 0);
        return note_write(s, write_file_atomic_at(dir_fd, file, text, strlen(text)));
}

static int save_allocation(const Store *s, int spare, const Allocation *a) {
        _cleanup_free_ char *file = NULL;
        _cleanup_close_ int fd = spare;

        if (string_replace(&file, "%s.json", a->name) < 0)
                return -ENOMEM;
        return save(s, s->allocations_fd, TAKE_FD(fd), file, a);
}

int store_add(Store *s, const Allocation *a) {
        return save_allocation(s, TAKE_FD(s->spare_fd), a);
}

int store_save(Store *s, const Allocation *a) {
        return save_allocation(s, -1, a);
}

bool store_may_have(const Store *s, const Allocation *a) {
        _cleanup_free_ char *file = string_format("%s.json", a->name), *wanted = ledger_file_format(a), *text = NULL;
        int r = file && wanted ? read_file_at(s->allocations_fd, file, LEDGER_FILE_MAX, &text, NULL) : -ENOMEM;

        if (r >= 0)
                return streq(text, wanted);
        /* The file cannot be read. Unless the error means that the daemon did not write it, it may have the content. */
        return r != -ENOENT && r != -EISDIR && r != -EINVAL && r != -E2BIG;
}

int store_save_quarantined(Store *s, const Allocation *a) {
        char file[QUARANTINE_FILE_MAX];

        return save(s, s->quarantine_fd, -1, quarantine_file(a->devices[0].address, file), a);
}

int store_remove_quarantined(Store *s, PciAddress device) {
        char file[QUARANTINE_FILE_MAX];

        return note_failure(s, remove_file_at(s->quarantine_fd, quarantine_file(device, file)));
}

int store_remove(Store *s, const char *name) {
        _cleanup_free_ char *file = NULL;

        if (string_replace(&file, "%s.json", name) < 0)
                return -ENOMEM;
        return note_failure(s, remove_file_at(s->allocations_fd, file));
}

int store_save_services(Store *s, const char *text) {
        return text ? note_write(s, write_file_atomic_at(s->state_fd, SERVICES_FILE, text, strlen(text)))
                    : note_failure(s, remove_file_at(s->state_fd, SERVICES_FILE));
}

#define MODULES_FILE     "nvlink-modules"
#define MODULES_FILE_MAX 4096U

/* Without this file the daemon asks NVIDIA's driver again. */
char *store_load_modules(const Store *s) {
        char *text = NULL;
        int r = read_file_at(s->state_fd, MODULES_FILE, MODULES_FILE_MAX, &text, NULL);

        if (r < 0 && r != -ENOENT)
                log_warning_errno(r, "Failed to read %s/" MODULES_FILE ", ignoring: %m", s->path);
        return r < 0 ? NULL : text;
}

int store_save_modules(Store *s, const char *text) {
        return note_write(s, write_file_atomic_at(s->state_fd, MODULES_FILE, text, strlen(text)));
}

int store_note_released(Store *s, const Allocation *a) {
        const char *text = s->released ?: "\n";
        size_t n = 0;
        char *more;

        for (const char *p = text; *p; p++)
                n += *p == '\n';
        for (; n > RELEASED_MAX; n--)
                text = strchr(text + 1, '\n');
        more = string_format("%s%s %" PRIu64 "\n", text, a->name, a->generation);
        if (!more)
                return -ENOMEM;
        free(s->released);
        s->released = more;
        return note_write(s, write_file_atomic_at(s->state_fd, RELEASED_FILE, more + 1, strlen(more + 1)));
}

bool store_was_released(const Store *s, const char *name, uint64_t generation) {
        _cleanup_free_ char *line = string_format("\n%s %" PRIu64 "\n", name, generation);

        return s->released && line && allocation_name_is_valid(name) && strstr(s->released, line);
}

int store_next_generation(Store *s, uint64_t *ret) {
        if (s->generation >= s->reserved) {
                uint64_t reserved = s->generation + GENERATION_BLOCK;
                char text[32];
                int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", reserved), r;

                if (s->generation > GENERATION_MAX)
                        return -EOVERFLOW;
                r = note_write(s, write_file_atomic_at(s->state_fd, "generation", text, (size_t) n));
                if (r < 0)
                        return r;
                s->reserved = reserved;
        }
        *ret = ++s->generation;
        return 0;
}
