/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Which configuration files are read, in which order, which hide others, and which cannot be read. */

#include <errno.h>

#include "unit.h"

#include "host/configfiles.h"
#include "sentences.h"
#include "tmptree.h"
#include "util/strings.h"

#define _cleanup_config_ _cleanup_(cleanup_config_free)

#define CONF "passthroughd/passthroughd.conf"

static int make(void **state) {
        (void) umask(022);
        *state = tree_new();
        return 0;
}

static int unmake(void **state) {
        tree_done(*state);
        return 0;
}

static Config *load(const char *root) {
        Config *c = NULL;

        assert_int_equal(config_files_load(root, NULL, false, &c), 0);
        return c;
}

/* Adds a file with a pool of its own, which shows that the file was read. */
static void add(const char *root, const char *path, const char *pool) {
        _cleanup_free_ char *text = NULL;

        assert_int_equal(string_replace(&text, "[Pool %s]\nMatch=vendor=1", pool), 0);
        tree_file(root, path, text);
}

static void assert_pools(const Config *c, const char *expected) {
        _cleanup_free_ char *found = strdup("");

        for (size_t i = 0; i < c->n_pools; i++)
                assert_int_equal(string_replace(&found, "%s%s%s", found, i > 0 ? " " : "", c->pools[i].name), 0);
        assert_string_equal(found, expected);
}

static void assert_unreadable(const Config *c, const char *file) {
        assert_non_null(c->unreadable);
        assert_memory_equal(c->unreadable, file, strlen(file));
        assert_memory_equal(c->block_reason, c->unreadable, strlen(c->unreadable));
        record(file, c->block_reason);
        assert_int_equal(c->n_problems, 1);
        assert_int_equal(c->problems[0].line, 0);
}

TEST_WITH(test_nothing, make, unmake) {
        _cleanup_config_ Config *c = load(*state);

        assert_int_equal(c->n_files, 0);
        assert_int_equal(c->n_pools, 0);
        assert_int_equal(c->n_problems, 0);
        assert_null(c->unreadable);
        assert_null(c->block_reason);
        assert_int_equal(config_files_load("/nonexistent", NULL, false, &c), -ENOENT);
}

TEST_WITH(test_first_main_file, make, unmake) {
        static const char *const directories[] = { "usr/lib/", "usr/local/lib/", "run/", "etc/" };
        static const char *const pools[] = { "lib", "local", "run", "etc" };

        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                _cleanup_free_ char *path = NULL, *place = NULL;

                assert_int_equal(string_replace(&path, "%s" CONF, directories[i]), 0);
                assert_int_equal(string_replace(&place, "/%s", path), 0);
                add(*state, path, pools[i]);
                _cleanup_config_ Config *c = load(*state);
                assert_pools(c, pools[i]);
                assert_int_equal(c->n_files, 1);
                assert_string_equal(c->files[0], place);
                assert_string_equal(c->pools[0].matches[0].place.file, place);
        }
}

/* Drop-ins are sorted by name over all directories. They replace values of the main file. */
TEST_WITH(test_order, make, unmake) {
        tree_file(*state, "etc/" CONF, "[Daemon]\nJobTimeoutSec=1\n[Pool main]\nMatch=vendor=1");
        add(*state, "usr/lib/" CONF ".d/50-lib.conf", "b50");
        add(*state, "etc/" CONF ".d/90-etc.conf", "d90");
        add(*state, "run/" CONF ".d/10-run.conf", "a10");
        tree_file(*state, "usr/local/lib/" CONF ".d/60-local.conf",
                  "[Daemon]\nJobTimeoutSec=6\n[Pool c60]\nMatch=vendor=1");
        _cleanup_config_ Config *c = load(*state);

        assert_pools(c, "main a10 b50 c60 d90");
        assert_int_equal(c->job_timeout, 6);
        assert_string_equal(c->files[4], "/etc/" CONF ".d/90-etc.conf");
        assert_int_equal(c->n_problems, 0);
}

TEST_WITH(test_dropins_alone, make, unmake) {
        add(*state, "usr/lib/" CONF ".d/vendor.conf", "vendor");
        _cleanup_config_ Config *c = load(*state);

        assert_pools(c, "vendor");
        assert_int_equal(c->n_files, 1);
}

TEST_WITH(test_same_name_hides, make, unmake) {
        static const char *const directories[] = { "usr/lib/", "usr/local/lib/", "run/", "etc/" };
        static const char *const pools[] = { "lib", "local", "run", "etc" };

        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                _cleanup_free_ char *path = NULL;

                assert_int_equal(string_replace(&path, "%s" CONF ".d/x.conf", directories[i]), 0);
                add(*state, path, pools[i]);
                _cleanup_config_ Config *c = load(*state);
                assert_pools(c, pools[i]);
                assert_int_equal(c->n_files, 1);
        }
        /* Settings of removed files are gone. */
        tree_unlink(*state, "etc/" CONF ".d/x.conf");
        _cleanup_config_ Config *c = load(*state);
        assert_pools(c, "run");
}

TEST_WITH(test_masks, make, unmake) {
        add(*state, "usr/lib/" CONF ".d/a.conf", "a");
        add(*state, "usr/lib/" CONF ".d/b.conf", "b");
        add(*state, "run/" CONF ".d/b.conf", "b");
        add(*state, "usr/lib/" CONF ".d/c.conf", "c");
        tree_link(*state, "etc/" CONF ".d/a.conf", "/dev/null");
        tree_bytes(*state, "etc/" CONF ".d/b.conf", "", 0);
        _cleanup_config_ Config *c = load(*state);

        assert_pools(c, "c");
        assert_null(c->unreadable);
        assert_int_equal(c->n_problems, 0);

        /* A masked main file counts as an empty one. */
        add(*state, "usr/lib/" CONF, "main");
        tree_link(*state, "etc/" CONF, "/dev/null");
        _cleanup_config_ Config *masked = load(*state);
        assert_pools(masked, "c");
        tree_unlink(*state, "etc/" CONF);
        _cleanup_config_ Config *unmasked = load(*state);
        assert_pools(unmasked, "main c");
}

TEST_WITH(test_other_names, make, unmake) {
        static const char *const names[] = { "a", "a.conf~", "a.conf.dpkg-old", ".a.conf", ".conf", "README" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_free_ char *path = NULL;

                assert_int_equal(string_replace(&path, "etc/" CONF ".d/%s", names[i]), 0);
                add(*state, path, "no");
        }
        _cleanup_config_ Config *c = load(*state);
        assert_pools(c, "");
        assert_int_equal(c->n_files, 0);
}

/* Links of a recorded machine cannot lead out of it. */
TEST_WITH(test_links_stay_inside, make, unmake) {
        add(*state, "opt/pools", "inside");
        tree_link(*state, "etc/" CONF ".d/a.conf", "/opt/pools");
        tree_link(*state, "etc/" CONF ".d/b.conf", "../../../../../../../../../../../../opt/pools");
        _cleanup_config_ Config *c = load(*state);

        assert_pools(c, "inside");
        assert_int_equal(c->n_files, 2);
        tree_link(*state, "etc/" CONF ".d/c.conf", "/proc/self/status");
        _cleanup_config_ Config *out = load(*state);
        assert_unreadable(out, "/etc/" CONF ".d/c.conf");
}

TEST_WITH(test_unreadable, make, unmake) {
        _cleanup_free_ char *fifo = tree_path(*state, "etc/" CONF ".d/fifo.conf");

        add(*state, "etc/" CONF, "main");
        tree_require(mkfifo(fifo, 0600) == 0, "mkfifo");
        _cleanup_config_ Config *c = load(*state);
        assert_unreadable(c, "/etc/" CONF ".d/fifo.conf");
        assert_pools(c, "main");

        tree_unlink(*state, "etc/" CONF ".d/fifo.conf");
        tree_dir(*state, "etc/" CONF ".d/dir.conf");
        _cleanup_config_ Config *directory = load(*state);
        assert_unreadable(directory, "/etc/" CONF ".d/dir.conf");

        /* Hidden by another file, it does not matter. */
        tree_unlink(*state, "etc/" CONF ".d/dir.conf");
        tree_dir(*state, "run/" CONF ".d/dir.conf");
        add(*state, "etc/" CONF ".d/dir.conf", "file");
        _cleanup_config_ Config *hidden = load(*state);
        assert_pools(hidden, "main file");
        assert_null(hidden->unreadable);

        tree_file(*state, "usr/lib/" CONF ".d", "a file");
        _cleanup_config_ Config *file = load(*state);
        assert_unreadable(file, "/usr/lib/" CONF ".d");
}

/* The first existing main file is used, even if it is unreadable. */
TEST_WITH(test_unreadable_main_file, make, unmake) {
        add(*state, "usr/lib/" CONF, "lib");
        tree_dir(*state, "etc/" CONF);
        _cleanup_config_ Config *c = load(*state);

        assert_unreadable(c, "/etc/" CONF);
        assert_pools(c, "");
        assert_int_equal(c->n_files, 0);
        tree_unlink(*state, "etc/" CONF);
        tree_link(*state, "etc/" CONF, "nowhere");
        _cleanup_config_ Config *dangling = load(*state);
        assert_unreadable(dangling, "/etc/" CONF);
}

/* The file name appears in sentences on the bus. */
TEST_WITH(test_unclean_name, make, unmake) {
        add(*state, "etc/" CONF ".d/\xff.conf", "a");
        _cleanup_config_ Config *c = load(*state);

        assert_unreadable(c, "/etc/" CONF ".d");
        assert_pools(c, "");
}

TEST_WITH(test_limits, make, unmake) {
        for (unsigned i = 0; i <= CONFIG_DROPINS_MAX; i++) {
                char path[128];

                (void) snprintf(path, sizeof(path), "etc/" CONF ".d/%u.conf", i);
                tree_bytes(*state, path, "", 0);
        }
        _cleanup_config_ Config *many = load(*state);
        assert_unreadable(many, "/etc/" CONF ".d");
        tree_unlink(*state, "etc/" CONF ".d/0.conf");
        for (unsigned i = 0; i < 300; i++) {
                char path[128];

                (void) snprintf(path, sizeof(path), "etc/" CONF ".d/%u.conf.bak", i); /* does not count */
                tree_bytes(*state, path, "", 0);
        }
        _cleanup_config_ Config *most = load(*state);
        assert_null(most->unreadable);

        _cleanup_free_ char *text = malloc(CONFIG_TEXT_MAX + 1);
        assert_non_null(text);
        memset(text, '#', CONFIG_TEXT_MAX + 1);
        tree_bytes(*state, "etc/" CONF, text, CONFIG_TEXT_MAX + 1);
        _cleanup_config_ Config *large = load(*state);
        assert_unreadable(large, "/etc/" CONF);
}

/* A named file belongs to this machine, and has its own drop-ins only. */
TEST_WITH(test_named, make, unmake) {
        _cleanup_free_ char *file = tree_path(*state, "my.conf");
        Config *c = NULL;

        add(*state, "etc/" CONF, "no");
        add(*state, "etc/" CONF ".d/a.conf", "no");
        assert_int_equal(config_files_load(*state, file, false, &c), 0);
        assert_int_equal(c->n_files, 0);
        c = config_free(c);

        add(*state, "my.conf", "my");
        add(*state, "my.conf.d/b.conf", "b");
        add(*state, "my.conf.d/a.conf", "a");
        tree_link(*state, "my.conf.d/null.conf", "/dev/null");
        tree_link(*state, "nothing", "/dev/null");
        tree_link(*state, "my.conf.d/nothing.conf", "../nothing");
        assert_int_equal(config_files_load("/nonexistent", file, false, &c), 0);
        assert_pools(c, "my a b");
        assert_null(c->unreadable);
        assert_string_equal(c->files[0], file);
        assert_string_equal(c->pools[0].place.file, file);
        c = config_free(c);

        /* Relative to the working directory. */
        assert_int_equal(chdir(*state), 0);
        assert_int_equal(config_files_load("", "my.conf", false, &c), 0);
        assert_int_equal(chdir("/"), 0);
        assert_pools(c, "my a b");
        assert_string_equal(c->pools[1].place.file, "my.conf.d/a.conf");
        c = config_free(c);
}

static bool is_refused(const char *file) {
        _cleanup_config_ Config *c = NULL;

        assert_int_equal(config_files_load("/", file, true, &c), 0);
        assert_int_equal(!c->unreadable, c->n_problems == 0);
        if (c->unreadable)
                assert_null(strstr(c->unreadable_remedy, "readable"));
        return c->unreadable;
}

/* Other users can change the file, a directory above it, a directory on the way of a link, or drop-ins. */
TEST_WITH(test_owned, make, unmake) {
        static const struct {
                const char *path;
                mode_t mode;
                bool refused;
        } cases[] = {
                { "my.conf", 0664, true },    { "my.conf", 0646, true },          { "my.conf.d", 0777, true },
                { "my.conf.d", 01777, true }, { "my.conf.d/a.conf", 0666, true }, { "", 0770, true },
                { "way", 0777, true },        { "way/far.conf", 0660, true },     { "way", 01777, false },
                { "my.conf", 0600, false },   { "my.conf.d", 0755, false },
        };
        _cleanup_free_ char *file = tree_path(*state, "my.conf");

        add(*state, "my.conf", "my");
        add(*state, "my.conf.d/a.conf", "a");
        add(*state, "way/far.conf", "far");
        tree_link(*state, "my.conf.d/b.conf", "../way/../way/far.conf");
        assert_int_equal(chmod(*state, 0755), 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *path = tree_path(*state, cases[i].path);
                struct stat st;

                assert_false(is_refused(file));
                assert_int_equal(stat(path, &st), 0);
                assert_int_equal(chmod(path, cases[i].mode), 0);
                assert_int_equal(is_refused(file), cases[i].refused);
                assert_int_equal(chmod(path, st.st_mode & 07777), 0);
        }
        _cleanup_free_ char *way = tree_path(*state, "way"), *absent = tree_path(*state, "way/other.conf");

        /* A missing file is no problem. */
        assert_int_equal(chmod(way, 0777), 0);
        assert_false(is_refused(absent));
        assert_int_equal(chmod(way, 0755), 0);

        _cleanup_free_ char *link = tree_path(*state, "my.conf.d/b.conf");

        /* Only root can change the owner. */
        if (lchown(link, 1000, (gid_t) -1) >= 0)
                assert_true(is_refused(file));
}

TEST(test_sentences) {
        assert_sentences("config-files.txt");
}
