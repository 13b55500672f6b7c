/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "unit.h"

#include "sentences.h"
#include "util/strings.h"
#include "util/tree.h"

/* Items as text, "kind path offset value\n". */
typedef struct Seen {
        FILE *f;
        char *text;
        size_t size, n;
        int result; /* of each call */
} Seen;

static int see(const TreeLine *line, void *userdata) {
        static const char kinds[] = "=@>/!";
        Seen *seen = userdata;

        assert_int_equal(line->value[line->size], '\0');
        seen->n++;
        if (seen->f) {
                fprintf(seen->f, "%c %s %u ", kinds[line->item], line->path, line->offset);
                tree_escape(seen->f, line->value, line->size);
                fputc('\n', seen->f);
        }
        return seen->result;
}

/* Returns the parsed items as text, or NULL with *ret_problem when the text is refused. */
static char *parse(const char *text, size_t size, char **ret_problem) {
        Seen seen = { 0 };
        int r;

        *ret_problem = NULL;
        seen.f = open_memstream(&seen.text, &seen.size);
        r = tree_parse("a.tree", text, size, see, &seen, ret_problem);
        fclose(seen.f);
        if (r >= 0) {
                assert_null(*ret_problem);
                return seen.text;
        }
        assert_non_null(*ret_problem);
        free(seen.text);
        return NULL;
}

static void expect(const char *text, const char *items) {
        _cleanup_free_ char *problem = NULL, *seen = parse(text, strlen(text), &problem);

        assert_null(problem);
        assert_string_equal(seen, items);
}

static void assert_place(const char *problem, unsigned line) {
        char place[32];

        (void) snprintf(place, sizeof(place), "a.tree:%u: ", line);
        assert_memory_equal(problem, place, strlen(place));
}

static void refuse_bytes(const char *text, size_t size, unsigned line) {
        _cleanup_free_ char *problem = NULL, *seen = parse(text, size, &problem);

        assert_null(seen);
        assert_place(problem, line);
        record(text, problem);
}

static void refuse(const char *text, unsigned line) {
        refuse_bytes(text, strlen(text), line);
}

TEST(test_lines) {
        expect("", "");
        expect("# text\n\n   \n", "");
        expect("a=b", "= a 0 b\\n\n");
        expect("a:=b\na+=c\n", "= a 0 b\n= a+ 0 c\\n\n");
        expect("  a/b=c=d\n", "= a/b 0 c=d\\n\n");
        expect("a=\n", "= a 0 \\n\n");
        expect("a -> ../b\n", "> a 0 ../b\n");
        expect("a=x -> y\n", "= a 0 x -> y\\n\n");
        expect("a/\n", "/ a 0 \n");
        expect("a!EIO\n", "! a 0 EIO\n");
        expect("a!b=c\n", "= a!b 0 c\\n\n");
        expect("a=\\x00\\n\\t\\\\\n", "= a 0 \\x00\\n\\t\\\\\\n\n");
}

TEST(test_config) {
        expect("d/config@0x10=0d 00ff\n", "@ d/config 16 \\x0d\\x00\\xff\n");
        expect("config@4095=01\n", "@ config 4095 \\x01\n");
        expect("config@0x100=\n", "@ config 256 \n");
        refuse("config@0x1000=00\n", 1);
        refuse("config@4095=00 00\n", 1);
        refuse("config@0=0\n", 1);
        refuse("config@0=0x\n", 1);
        refuse("config@0=-1\n", 1);
        refuse("config@-1=00\n", 1);
        refuse("config@0x99999=00\n", 1);
        refuse("config@=00\n", 1);
}

TEST(test_malformed) {
        refuse("a=1\nnonsense\n", 2);
        refuse("\n=b\n", 2);
        refuse("\n!EIO\n", 2);
        refuse("\n/\n", 2);
        refuse(":=b\n", 1);
        refuse("//=b\n", 1);
        refuse("[a]\n", 1); /* only hand-written trees of the simulator have sections */
        refuse("[a]=b\n", 1);
        refuse("%driver x ids=1\n", 1);
        refuse("a!NONSENSE\n", 1);
        refuse("a -> \n", 1);
        refuse("a -> b\\x00c\n", 1);
        refuse("a=\\q\n", 1);
        refuse("a=\\\n", 1);
        refuse("a=\\x0\n", 1);
        refuse_bytes("a=b\0c\n", 6, 1);
}

TEST(test_hostile_paths) {
        char text[2 * TREE_PATH_MAX];
        size_t n = 0;

        refuse("../a=b\n", 1);
        refuse("a/../../b=c\n", 1);
        refuse("a/./b=c\n", 1);
        refuse("a/.. -> /\n", 1);
        refuse("a/\\x2e\\x2e/b=c\n", 1);
        refuse("a/..\\x2fb=c\n", 1);
        refuse("a\\x00b=c\n", 1);
        expect("...=1\n", "= ... 0 1\\n\n");
        expect("\xef\xbb\xbf...=1\n", "= ... 0 1\\n\n"); /* byte order mark */
        expect("a=1\n\xef\xbb\xbf"
               "b=1\n",
               "= a 0 1\\n\n= \xef\xbb\xbf"
               "b 0 1\\n\n"); /* a byte order mark elsewhere is kept */

        memset(text, 'x', sizeof(text));
        strcpy(text + TREE_NAME_MAX + 1, "=1");
        refuse(text, 1);
        for (unsigned i = 0; i <= TREE_DEPTH_MAX; i++)
                n += (size_t) sprintf(text + n, "d/");
        refuse(text, 1);
        for (n = 0; n <= TREE_PATH_MAX; n++)
                text[n] = n % 100 == 99 ? '/' : 'x';
        strcpy(text + n, "=1");
        refuse(text, 1);
}

TEST(test_limits) {
        static const char line[] = "a=x\n";
        size_t size = (TREE_ITEMS_MAX + 1) * strlen(line);
        _cleanup_free_ char *problem = NULL, *text = malloc(size + 1);
        Seen seen = { 0 };
        char *end = text;

        assert_non_null(text);
        for (size_t i = 0; i <= TREE_ITEMS_MAX; i++)
                end = stpcpy(end, line);
        assert_int_equal(tree_parse("a.tree", text, size, see, &seen, &problem), -E2BIG);
        assert_place(problem, TREE_ITEMS_MAX + 1);
        record("too many lines", problem);
        assert_int_equal(seen.n, TREE_ITEMS_MAX);
}

TEST(test_result) {
        _cleanup_free_ char *problem = NULL;
        Seen seen = { .result = -ENOTDIR };

        assert_int_equal(tree_parse("a.tree", "# x\na=b\nc=d\n", 12, see, &seen, &problem), -ENOTDIR);
        assert_place(problem, 2);
        record("ENOTDIR of line 2", problem);
        assert_int_equal(seen.n, 1);
}

TEST(test_read) {
        char path[] = "/tmp/passthrough-test-XXXXXX";
        _cleanup_free_ char *problem = NULL, *absent = NULL;
        Seen seen = { 0 };
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, "b=1\n", 4), 4);
        seen.f = open_memstream(&seen.text, &seen.size);
        assert_int_equal(tree_read(path, see, &seen, &problem), 0);
        fclose(seen.f);
        assert_string_equal(seen.text, "= b 0 1\\n\n");
        free(seen.text);
        assert_int_equal(close(fd), 0);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(tree_read(path, see, &seen, &absent), -ENOENT);
        assert_memory_equal(absent, path, strlen(path));
}

/* Written items are read back unchanged. */
TEST(test_write) {
        static const char odd[] = "a b=c!d{1-2}[#%@\\e->/x\ny\xff";
        _cleanup_free_ char *text = NULL, *items = NULL, *problem = NULL;
        char config[TREE_CONFIG_MAX] = { [0] = 0x15, [0x34] = 0x40 };
        size_t size;
        FILE *f = open_memstream(&text, &size);

        tree_write_file(f, odd, "x\0\n\t\\\xff\n", 7);
        tree_write_file(f, "a", "", 0);
        tree_write_file(f, "b", " {1} ", 5);
        tree_write_file(f, "c+", "1", 1);
        tree_write_file(f, "d:", "1\n", 2);
        tree_write_link(f, odd, "b\n c");
        tree_write_directory(f, odd);
        tree_write_error(f, odd, -EACCES);
        tree_write_file(f, "p/config", config, 64);
        tree_write_file(f, "q/config", config, 256);
        tree_write_file(f, "r/config", config, 4096);
        memset(config, 0, sizeof(config));
        tree_write_file(f, "s/config", config, 256);
        fclose(f);

        items = parse(text, size, &problem);
        assert_null(problem);
        assert_non_null(strstr(items, "= a b=c!d{1-2}[#%@\\e->/x\ny\xff 0 x\\x00\\n\\t\\\\\\xff\\n\n= a 0 \n= b 0  {1} "
                                      "\n= c+ 0 1\n= d: 0 1\\n\n"
                                      "> a b=c!d{1-2}[#%@\\e->/x\ny\xff 0 b\\n c\n"
                                      "/ a b=c!d{1-2}[#%@\\e->/x\ny\xff 0 \n"
                                      "! a b=c!d{1-2}[#%@\\e->/x\ny\xff 0 EACCES\n= p/config 0 \\x15"));
        assert_non_null(strstr(text, "\nq/config@0x0=15 00"));
        assert_non_null(strstr(text, "\nq/config@0x30=00 00 00 00 40"));
        assert_null(strstr(text, "q/config@0x100"));
        assert_non_null(strstr(text, "\nr/config@0x100=00\n"));
        assert_non_null(strstr(text, "\ns/config@0x0=00\n"));
}

TEST(test_sentences) {
        assert_sentences("tree-lines.txt");
}
