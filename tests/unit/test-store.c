/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The ledger on disk: saved files are loaded, removed files are not, an unreadable file makes it read-only. */

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include "unit.h"

#include "host/store.h"
#include "ledger/ledger-file.h"
#include "nodefixture.h"
#include "sentences.h"
#include "tmptree.h"

typedef struct Disk {
        char *path;
        Store *store;
        Ledger *ledger;
        char *services;
} Disk;

/* Loads the files as a new daemon does. */
static void load(Disk *d) {
        ledger_free(d->ledger);
        store_close(d->store);
        free(d->services);
        d->services = NULL;
        d->ledger = ledger_new();
        assert_non_null(d->ledger);
        assert_int_equal(store_open(d->path, &d->store), 0);
        assert_int_equal(store_load(d->store, d->ledger, &d->services), 0);
}

static int setup(void **state) {
        Disk *d = calloc(1, sizeof(*d));

        assert_non_null(d);
        d->path = tree_new();
        load(d);
        *state = d;
        return 0;
}

static int teardown(void **state) {
        Disk *d = *state;

        ledger_free(d->ledger);
        store_close(d->store);
        free(d->services);
        tree_done(d->path);
        free(d);
        return 0;
}

static Allocation *make(const char *name, const char *device, uint64_t generation) {
        Allocation *a = allocation_new(name);
        AllocationDevice *d;

        assert_non_null(a);
        d = allocation_add_device(a, address_of(device), DEVICE_ROLE_ASSIGNED);
        assert_non_null(d);
        memcpy(a->id, "01234567-89ab-cdef-0123-456789abcdef", sizeof(a->id));
        assert_int_equal(string_copy(&a->vfio_driver, "vfio-pci"), 0);
        assert_int_equal(string_copy(&d->slot, "gpu0"), 0);
        assert_int_equal(string_copy(&d->path, device), 0);
        a->generation = generation;
        a->state = ALLOCATION_READY;
        return a;
}

static void save(const Disk *d, const char *name, const char *device, uint64_t generation) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make(name, device, generation);

        assert_int_equal(store_save(d->store, a), 0);
}

static void quarantine(const Disk *d, const char *device, const char *reason) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make("gone", device, 1);

        assert_int_equal(string_copy(&a->reason, reason), 0);
        assert_int_equal(store_save_quarantined(d->store, a), 0);
}

static void write_file(const Disk *d, const char *name, const char *text) {
        tree_bytes(d->path, name, text, strlen(text));
}

static bool exists(const Disk *d, const char *name) {
        _cleanup_free_ char *path = tree_path(d->path, name);

        return access(path, F_OK) == 0;
}

static void assert_read_only(Disk *d, const char *file) {
        load(d);
        assert_non_null(d->ledger->read_only);
        if (!strstr(d->ledger->read_only, file))
                fail_msg("no '%s' in '%s'", file, d->ledger->read_only);
}

static void assert_usable(Disk *d) {
        load(d);
        if (d->ledger->read_only)
                fail_msg("%s", d->ledger->read_only);
}

TEST_WITH(test_saved_is_loaded, setup, teardown) {
        Disk *d = *state;

        assert_usable(d);
        assert_int_equal(d->ledger->n_allocations, 0);
        save(d, "a", "0000:01:00.0", 7);
        save(d, "b", "0000:02:00.0", 8);
        save(d, "b", "0000:02:00.0", 9);
        quarantine(d, "0000:03:00.0", "Not reset.");
        assert_usable(d);
        assert_int_equal(d->ledger->n_allocations, 2);
        assert_int_equal(ledger_find(d->ledger, "a")->generation, 7);
        assert_int_equal(ledger_find(d->ledger, "b")->generation, 9);
        assert_int_equal(d->ledger->n_quarantined, 1);
        assert_string_equal(d->ledger->quarantined[0]->reason, "Not reset.");
        assert_int_equal(store_remove(d->store, "a"), 0);
        assert_int_equal(store_remove(d->store, "a"), 0);
        assert_int_equal(store_remove_quarantined(d->store, address_of("0000:03:00.0")), 0);
        assert_usable(d);
        assert_int_equal(d->ledger->n_allocations, 1);
        assert_null(ledger_find(d->ledger, "a"));
        assert_int_equal(d->ledger->n_quarantined, 0);
}

/* Generations increase, also over restarts, whether the file or an allocation has the last one. */
TEST_WITH(test_generations, setup, teardown) {
        Disk *d = *state;
        uint64_t last = 0, next;

        for (unsigned i = 0; i < 3 * GENERATION_BLOCK; i++) {
                assert_int_equal(store_next_generation(d->store, &next), 0);
                assert_true(next > last);
                last = next;
        }
        load(d);
        assert_int_equal(store_next_generation(d->store, &next), 0);
        assert_true(next > last && next <= last + GENERATION_BLOCK + 1);
        save(d, "a", "0000:01:00.0", next + 10 * GENERATION_BLOCK);
        load(d);
        last = next;
        assert_int_equal(store_next_generation(d->store, &next), 0);
        assert_int_equal(next, last + 10 * GENERATION_BLOCK + 1);
        load(d);
        last = next;
        assert_int_equal(store_next_generation(d->store, &next), 0);
        assert_true(next > last);
}

static void add(const Disk *d, const char *name, const char *device, uint64_t generation) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make(name, device, generation);

        assert_int_equal(store_add(d->store, a), 0);
}

/* A new allocation is written to the prepared file, not to a temporary one. An existing file of its name is
 * replaced. */
TEST_WITH(test_prepared_file, setup, teardown) {
        Disk *d = *state;

        store_prepare(d->store);
        add(d, "a", "0000:01:00.0", 7);
        add(d, "b", "0000:02:00.0", 8);
        store_prepare(d->store);
        add(d, "b", "0000:02:00.0", 9);
        load(d);
        assert_int_equal(d->ledger->n_allocations, 2);
        assert_int_equal(ledger_find(d->ledger, "a")->generation, 7);
        assert_int_equal(ledger_find(d->ledger, "b")->generation, 9);
}

static int save_result(const Disk *d, const char *name) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make(name, "0000:01:00.0", 1);

        return store_save(d->store, a);
}

/* The ledger notes a failure until a write succeeds. The removal of a missing file writes nothing. */
TEST_WITH(test_failures_are_noted, setup, teardown) {
        Disk *d = *state;

        tree_dir(d->path, "allocations/a.json");
        assert_int_equal(save_result(d, "a"), -EISDIR);
        assert_non_null(d->ledger->unwritable);
        assert_int_equal(store_remove(d->store, "b"), 0);
        assert_non_null(d->ledger->unwritable);
        assert_int_equal(save_result(d, "b"), 0);
        assert_null(d->ledger->unwritable);
        assert_int_equal(store_remove(d->store, "a"), -EISDIR);
        assert_non_null(d->ledger->unwritable);
        assert_int_equal(store_save_services(d->store, "a.service\n"), 0);
        assert_null(d->ledger->unwritable);
}

TEST_WITH(test_services, setup, teardown) {
        Disk *d = *state;

        load(d);
        assert_null(d->services);
        assert_int_equal(store_save_services(d->store, "a.service\nb.service\n"), 0);
        load(d);
        assert_string_equal(d->services, "a.service\nb.service\n");
        assert_int_equal(store_save_services(d->store, NULL), 0);
        load(d);
        assert_null(d->services);
        assert_false(exists(d, "stopped-services"));
}

TEST_WITH(test_one_daemon, setup, teardown) {
        Disk *d = *state;
        Store *second = NULL;

        assert_int_equal(store_open(d->path, &second), -EBUSY);
        assert_null(second);
        d->store = store_close(d->store);
        assert_int_equal(store_open(d->path, &d->store), 0);
}

/* An ending process may keep the lock for a moment. */
TEST_WITH(test_lock_is_waited_for, setup, teardown) {
        const struct timespec moment = { .tv_nsec = 200 * 1000 * 1000 };
        Disk *d = *state;
        int ready[2];
        pid_t child;
        char byte;

        d->store = store_close(d->store);
        assert_int_equal(pipe(ready), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                int fd = open(d->path, O_RDONLY | O_DIRECTORY);

                if (flock(fd, LOCK_EX) < 0 || write(ready[1], "", 1) != 1)
                        _exit(1);
                (void) nanosleep(&moment, NULL);
                _exit(0);
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        assert_int_equal(store_open(d->path, &d->store), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        (void) close(ready[0]);
        (void) close(ready[1]);
}

TEST_WITH(test_too_many_files, setup, teardown) {
        Disk *d = *state;
        _cleanup_free_ char *path = tree_path(d->path, "allocations");
        int fd = open(path, O_RDONLY | O_DIRECTORY);
        char name[16];

        for (unsigned i = 0; i <= 2 * LEDGER_ALLOCATIONS_MAX; i++) {
                (void) snprintf(name, sizeof(name), "%u.json", i);
                assert_int_equal(mknodat(fd, name, S_IFREG | 0600, 0), 0);
        }
        (void) close(fd);
        assert_read_only(d, "file allocations ");
}

/* A damaged file makes the ledger read-only, until it is repaired. */
TEST_WITH(test_read_only, setup, teardown) {
        static const struct {
                const char *file, *text;
        } cases[] = {
                { "allocations/a.json", "{" },
                { "allocations/a.json", "" },
                { "allocations/b.json", NULL },
                { "quarantine/0000:03:00.0.json", "{" },
                { "quarantine/0000:04:00.0.json", NULL },
                { "generation", "" },
                { "generation", "12" },
                { "generation", "many\n" },
                { "generation", "-1\n" },
                { "generation", "9223372036854774784\n" }, /* 2^63 - 1024: no block can be added */
                { "generation", "9223372036854775807\n" },
        };
        Disk *d = *state;
        _cleanup_(cleanup_allocation_free) Allocation *a = make("a", "0000:01:00.0", 1);
        _cleanup_free_ char *good = ledger_file_format(a);

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *path = tree_path(d->path, cases[i].file);

                write_file(d, cases[i].file, cases[i].text ?: good);
                assert_read_only(d, cases[i].file);
                record(cases[i].file, d->ledger->read_only);
                assert_int_equal(remove(path), 0);
                assert_usable(d);
        }
        /* Two allocations with one device. */
        save(d, "a", "0000:01:00.0", 1);
        save(d, "b", "0000:01:00.0", 2);
        assert_read_only(d, "allocations/b.json");
        assert_int_equal(store_remove(d->store, "b"), 0);
        assert_usable(d);
}

TEST_WITH(test_quarantine_is_of_one_device, setup, teardown) {
        Disk *d = *state;

        quarantine(d, "0000:03:00.0", NULL);
        assert_read_only(d, "quarantine/0000:03:00.0.json");
        quarantine(d, "0000:03:00.0", "Not reset.");
        assert_usable(d);
}

TEST_WITH(test_not_a_file, setup, teardown) {
        static const char *const files[] = { "stopped-services", "generation", "allocations/a.json" };
        Disk *d = *state;

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                _cleanup_free_ char *path = tree_path(d->path, files[i]);

                assert_int_equal(mkfifo(path, 0600), 0);
                assert_read_only(d, files[i]);
                assert_int_equal(unlink(path), 0);
                assert_usable(d);
        }
}

TEST_WITH(test_others_can_write, setup, teardown) {
        static const char *const directories[] = { ".", "allocations", "quarantine" };
        static const mode_t modes[] = { 0720, 0702, 01777 };
        char mode[16];
        Disk *d = *state;

        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                _cleanup_free_ char *path = tree_path(d->path, directories[i]);

                for (size_t k = 0; k < ELEMENTSOF(modes); k++) {
                        assert_int_equal(chmod(path, modes[k]), 0);
                        (void) snprintf(mode, sizeof(mode), "mode %04o", modes[k]);
                        assert_read_only(d, mode);
                        assert_int_equal(chmod(path, 0755), 0);
                        assert_usable(d);
                }
        }
}

/* The daemon would start these services as root. */
TEST_WITH(test_services_of_others, setup, teardown) {
        Disk *d = *state;

        write_file(d, "stopped-services", "evil.service\n");
        assert_int_equal(chmod(d->path, 0777), 0);
        assert_read_only(d, "mode 0777");
        assert_null(d->services);
        assert_int_equal(chmod(d->path, 0755), 0);
        assert_usable(d);
        assert_string_equal(d->services, "evil.service\n");
}

TEST_WITH(test_temporaries_go, setup, teardown) {
        static const char *const temporaries[] = { ".generation.tmp", "allocations/.a.json.tmp",
                                                   "quarantine/.0000:03:00.0.json.tmp" };
        static const char *const others[] = { "tmp", ".tmp", "allocations/.tmpa", "quarantine/.a.tmp2" };
        Disk *d = *state;

        save(d, "a", "0000:01:00.0", 1);
        for (size_t i = 0; i < ELEMENTSOF(temporaries); i++)
                write_file(d, temporaries[i], "{");
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                write_file(d, others[i], "{");
        assert_usable(d);
        for (size_t i = 0; i < ELEMENTSOF(temporaries); i++)
                assert_false(exists(d, temporaries[i]));
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_true(exists(d, others[i]));
        assert_int_equal(d->ledger->n_allocations, 1);
}

TEST(test_sentences) {
        assert_sentences("ledger-files.txt");
}
