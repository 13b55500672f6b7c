/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Several files make one configuration: settings that add up, replace or clear others, and the files named in
 * problems. */

#include <errno.h>

#include "unit.h"

#include "config/config.h"
#include "sentences.h"
#include "util/strings.h"

#define _cleanup_config_ _cleanup_(cleanup_config_free)

/* Files a.conf, b.conf, ... with these texts, up to the first NULL. */
static Config *merge(const char *const *texts) {
        Config *c = config_new();
        char name[] = "a.conf";

        assert_non_null(c);
        for (; *texts; texts++, name[0]++)
                assert_int_equal(config_read_text(c, name, *texts, strlen(*texts)), 0);
        assert_int_equal(config_finish(c), 0);
        return c;
}
#define MERGE(...) merge((const char *const[]) { __VA_ARGS__, NULL })

static void assert_place(const ConfigPlace *place, const char *file, unsigned line) {
        assert_string_equal(place->file, file);
        assert_int_equal(place->line, line);
}

TEST(test_scalars_last_wins) {
        _cleanup_config_ Config *c = MERGE("[Daemon]\nJobTimeoutSec=5\nVfioDriver=one\nReserveMemory=2G\n",
                                           "[Daemon]\nJobTimeoutSec=7\nHousekeepingCpus=3\n", "# nothing\n",
                                           "[Daemon]\nJobTimeoutSec=x\nVfioDriver=two\nAfterRelease=keep\n");

        assert_int_equal(c->job_timeout, 7);
        assert_string_equal(c->vfio_driver, "two");
        assert_true(c->reserve_memory == UINT64_C(2) << 30);
        assert_true(cpuset_has(&c->housekeeping, 3));
        assert_int_equal(c->after_release, AFTER_RELEASE_KEEP);
        assert_int_equal(c->n_files, 4);
        assert_int_equal(c->n_problems, 1);
        assert_string_equal(c->problems[0].file, "d.conf");
        assert_int_equal(c->problems[0].line, 2);
}

TEST(test_pools_add_up) {
        _cleanup_config_ Config *c = MERGE("[Pool b]\nMatch=vendor=1\nBind=start\n[Pool a]\nMatch=vendor=2\n",
                                           "\n[Pool c]\nMatch=vendor=4\n[Pool b]\nMatch=vendor=3\nVirtualFunctions=2\n",
                                           "[Pool b]\nBind=allocate\n");

        /* In the order of their first mention. */
        assert_int_equal(c->n_pools, 3);
        assert_string_equal(c->pools[0].name, "b");
        assert_string_equal(c->pools[1].name, "a");
        assert_string_equal(c->pools[2].name, "c");
        assert_int_equal(c->pools[0].n_matches, 2);
        assert_int_equal(c->pools[0].virtual_functions, 2);
        assert_int_equal(c->pools[0].bind, POOL_BIND_ALLOCATE);
        assert_place(&c->pools[0].place, "a.conf", 1);
        assert_place(&c->pools[0].matches[0].place, "a.conf", 2);
        assert_place(&c->pools[0].matches[1].place, "b.conf", 5);
        assert_place(&c->pools[0].virtual_functions_place, "b.conf", 6);
        assert_int_equal(c->n_problems, 0);
}

/* A repeated header in one file is a copy without a new name. */
TEST(test_pool_twice_in_a_file) {
        _cleanup_config_ Config *c =
                MERGE("[Pool a]\nMatch=vendor=1\n", "[Pool a]\nMatch=vendor=2\n[Pool a]\nMatch=vendor=3\n");

        assert_int_equal(c->pools[0].n_matches, 2);
        assert_int_equal(c->n_problems, 1);
        assert_string_equal(c->problems[0].file, "b.conf");
        assert_int_equal(c->problems[0].line, 3);
        assert_non_null(strstr(c->problems[0].message, "line 1"));
        record("[Pool a] twice", c->problems[0].message);
}

/* Each file begins outside of sections. */
TEST(test_sections_end_with_the_file) {
        _cleanup_config_ Config *c = MERGE("[Pool a]\nMatch=vendor=1", "Match=vendor=2\n");

        assert_int_equal(c->pools[0].n_matches, 1);
        assert_int_equal(c->n_problems, 1);
        assert_string_equal(c->problems[0].file, "b.conf");
}

TEST(test_match_is_emptied) {
        _cleanup_config_ Config *c = MERGE("[Pool a]\nMatch=vendor=1\nMatch=vendor=2\n[Exclude]\nMatch=vendor=3\n",
                                           "[Pool a]\nMatch=\nMatch=vendor=4\n[Exclude]\n  Match= \nMatch=vendor=5\n");

        assert_int_equal(c->n_problems, 0);
        assert_int_equal(c->pools[0].n_matches, 1);
        assert_int_equal(c->pools[0].matches[0].vendor, 4);
        assert_int_equal(c->n_excludes, 1);
        assert_int_equal(c->excludes[0].vendor, 5);
        assert_place(&c->excludes[0].place, "b.conf", 6);
        assert_null(c->block_reason);

        _cleanup_config_ Config *none = MERGE("[Pool a]\nMatch=vendor=1\n", "[Pool a]\nMatch=\n");
        assert_int_equal(none->pools[0].n_matches, 0);
        assert_int_equal(none->n_problems, 1);
        assert_non_null(strstr(none->problems[0].message, "[Pool a]"));
        record("Match= emptied", none->problems[0].message);
}

/* A line that only looks empty must not clear the excludes: the devices are held back. */
TEST(test_exclude_is_not_emptied_by_chance) {
        static const char *const lines[] = {
                "Match= ; vendor=1", "Match =", "Match:", "Match= \x01", "Match", "match="
        };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                _cleanup_free_ char *text = NULL;

                assert_int_equal(string_replace(&text, "[Exclude]\n%s\n", lines[i]), 0);
                _cleanup_config_ Config *c = MERGE("[Exclude]\nMatch=vendor=3\n", text);
                if (c->n_excludes != 1 || !c->block_reason || !strstr(c->block_reason, "(b.conf:2)"))
                        fail_msg("'%s' empties [Exclude]", lines[i]);
        }
}

/* An unreadable line is remembered, even if a later line clears the list. */
TEST(test_held_back_survives) {
        _cleanup_config_ Config *c = MERGE("[Exclude]\nMatch=oops\n", "[Exclude]\nMatch=\nMatch=vendor=5\n");

        assert_non_null(c->block_reason);
        assert_non_null(strstr(c->block_reason, "(a.conf:2)"));
}

TEST(test_empty_is_the_default) {
        _cleanup_config_ Config *defaults = config_new();
        _cleanup_config_ Config *c =
                MERGE("[Daemon]\nJobTimeoutSec=5\nVfioDriver=one\nReserveMemory=2G\nHousekeepingCpus=3\n"
                      "SparePorts=7\nAfterRelease=keep\n[Pool a]\nMatch=vendor=1\nVirtualFunctions=3\nBind=start\n",
                      "[Daemon]\nJobTimeoutSec=\nVfioDriver= \nReserveMemory=\nHousekeepingCpus=\n"
                      "SparePorts=\nAfterRelease=\n[Pool a]\nVirtualFunctions=\nBind=\n");

        assert_int_equal(c->n_problems, 0);
        assert_int_equal(c->job_timeout, defaults->job_timeout);
        assert_string_equal(c->vfio_driver, defaults->vfio_driver);
        assert_true(c->variants);
        assert_true(c->reserve_memory == defaults->reserve_memory);
        assert_int_equal(c->spare_ports, defaults->spare_ports);
        assert_true(cpuset_is_empty(&c->housekeeping));
        assert_int_equal(c->after_release, defaults->after_release);
        assert_int_equal(c->pools[0].virtual_functions, 0);
        assert_int_equal(c->pools[0].bind, POOL_BIND_ALLOCATE);
}

/* A problem that appears only after all files are read names both files. */
TEST(test_virtual_functions_by_address) {
        _cleanup_config_ Config *c = MERGE("[Pool a]\nMatch=type=vf pf=0000:05:00.0\nVirtualFunctions=4\n",
                                           "[Pool a]\nMatch=address=0000:05:10.*\n");

        assert_int_equal(c->n_problems, 1);
        assert_string_equal(c->problems[0].file, "a.conf");
        assert_int_equal(c->problems[0].line, 3);
        assert_non_null(strstr(c->problems[0].message, "b.conf:2"));
        assert_int_equal(c->pools[0].virtual_functions, 0);
}

TEST(test_limits_are_of_all_files) {
        _cleanup_config_ Config *c = config_new();
        _cleanup_free_ char *half = malloc(CONFIG_TEXT_MAX / 2), *matches = NULL;

        assert_non_null(half);
        memset(half, '\n', CONFIG_TEXT_MAX / 2);
        assert_int_equal(config_read_text(c, "a.conf", half, CONFIG_TEXT_MAX / 2), 0);
        assert_int_equal(config_read_text(c, "b.conf", half, CONFIG_TEXT_MAX / 2), 0);
        assert_null(c->unreadable);
        assert_int_equal(config_read_text(c, "c.conf", "#", 1), 0);
        assert_memory_equal(c->unreadable, "c.conf ", 7);
        record("too large", c->unreadable);

        assert_int_equal(string_copy(&matches, "[Pool a]\n"), 0);
        for (unsigned i = 0; i < CONFIG_MATCHES_MAX; i++)
                assert_int_equal(string_replace(&matches, "%sMatch=vendor=1\n", matches), 0);
        _cleanup_config_ Config *many = MERGE(matches, "[Pool a]\nMatch=vendor=2\n");
        assert_int_equal(many->pools[0].n_matches, CONFIG_MATCHES_MAX);
        assert_int_equal(many->n_problems, 1);
        assert_string_equal(many->problems[0].file, "b.conf");
}

TEST(test_unreadable) {
        _cleanup_config_ Config *c = config_new();

        assert_int_equal(config_read_failed(c, "a.conf", "Permission denied", "First."), 0);
        assert_int_equal(config_read_failed(c, "b.conf", "Input/output error", "Second."), 0);
        assert_int_equal(c->n_files, 0);
        assert_int_equal(c->n_problems, 2);
        assert_string_equal(c->problems[1].file, "b.conf");
        assert_int_equal(c->problems[1].line, 0);
        assert_non_null(strstr(c->problems[1].message, "Input/output error"));
        record("b.conf", c->problems[1].message);
        assert_memory_equal(c->unreadable, "a.conf ", 7);
        assert_string_equal(c->unreadable_remedy, "First.");
        assert_non_null(strstr(c->block_reason, "Permission denied"));
        record("a.conf", c->block_reason);
}

TEST(test_sentences) {
        assert_sentences("config-merged.txt");
}
