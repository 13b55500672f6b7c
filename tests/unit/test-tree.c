/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

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
        static const char kinds[] = "=+@>/!%";
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

/* What is made of the text; NULL and *ret_problem when it is refused. */
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

static void refuse_bytes(const char *text, size_t size, const char *sentence) {
        _cleanup_free_ char *problem = NULL, *seen = parse(text, size, &problem);

        assert_null(seen);
        assert_string_equal(problem, sentence);
}

static void refuse(const char *text, const char *sentence) {
        refuse_bytes(text, strlen(text), sentence);
}

static void test_lines(void **state _unused_) {
        expect("", "");
        expect("# text\n\n   \n", "");
        expect("a=b", "= a 0 b\\n\n");
        expect("a:=b\na+=c\n", "= a 0 b\n+ a 0 c\\n\n");
        expect("  a/b=c=d\n", "= a/b 0 c=d\\n\n");
        expect("a=\n", "= a 0 \\n\n");
        expect("a -> ../b\n", "> a 0 ../b\n");
        expect("a=x -> y\n", "= a 0 x -> y\\n\n");
        expect("a/\n", "/ a 0 \n");
        expect("a!EIO\n", "! a 0 EIO\n");
        expect("a!b=c\n", "= a!b 0 c\\n\n");
        expect("a=\\x00\\n\\t\\\\\n", "= a 0 \\x00\\n\\t\\\\\\n\n");
        expect("%driver vfio-pci  vfio\n%iommu off\n", "% %driver 0 vfio-pci  vfio\n% %iommu 0 off\n");
}

static void test_sections(void **state _unused_) {
        expect("[sys/a]\nb=1\n[]\nc=2\n", "/ sys/a 0 \n= sys/a/b 0 1\\n\n= c 0 2\\n\n");
        expect("[/sys//a/]\n/b//c=1\n", "/ sys/a 0 \n= sys/a/b/c 0 1\\n\n");
}

static void test_braces(void **state _unused_) {
        expect("a{0-2}={},{+1},{-1}\n", "= a0 0 0,1,18446744073709551615\\n\n"
                                        "= a1 0 1,2,0\\n\n= a2 0 2,3,1\\n\n");
        expect("a{08-10}={}\n", "= a08 0 08\\n\n= a09 0 09\\n\n= a10 0 10\\n\n");
        expect("a{0x0f-0x10}={}\n", "= a0f 0 0f\\n\n= a10 0 10\\n\n");
        expect("[p{1,2}]\nq{3}={1}{2}{}{2+1}\n", "/ p1 0 \n/ p2 0 \n= p1/q3 0 1334\\n\n= p2/q3 0 2334\\n\n");
        expect("a={}{1}\n", "= a 0 {}{1}\\n\n"); /* no braces in the path */
        expect("a{1}={2}{x\n", "= a1 0 {2}{x\\n\n");
        expect("a\\x7b1\\x3d=b\n", "= a{1= 0 b\\n\n");
        refuse("a{1=b\n", "a.tree:1: the braces make no sense.");
        refuse("a{}=b\n", "a.tree:1: the braces make no sense.");
        refuse("a{x}=b\n", "a.tree:1: the braces make no sense.");
        refuse("a{1;2}=b\n", "a.tree:1: the braces make no sense.");
        refuse("a{1,}=b\n", "a.tree:1: the braces make no sense.");
        refuse("a{2-1}=b\n", "a.tree:1: the braces make no sense.");
        refuse("a{0-70000}=b\n", "a.tree:1: the braces make no sense.");
        refuse("a{00000000000000001}=b\n", "a.tree:1: the braces make no sense.");
        refuse("{1}{2}{3}{4}{5}=b\n", "a.tree:1: the braces make no sense.");
}

static void test_config(void **state _unused_) {
        expect("d/config@0x10=0d 00ff\n", "@ d/config 16 \\x0d\\x00\\xff\n");
        expect("config@4095=01\n", "@ config 4095 \\x01\n");
        expect("config@0x100=\n", "@ config 256 \n");
        expect("{1-2}/config@0={}0\n", "@ 1/config 0 \\x10\n@ 2/config 0  \n");
        refuse("config@0x1000=00\n", "a.tree:1: config space ends at 0x1000.");
        refuse("config@4095=00 00\n", "a.tree:1: config space ends at 0x1000.");
        refuse("config@0=0\n", "a.tree:1: bytes are two hex digits each.");
        refuse("config@0=0x\n", "a.tree:1: bytes are two hex digits each.");
        refuse("config@0=-1\n", "a.tree:1: bytes are two hex digits each.");
        refuse("config@-1=00\n", "a.tree:1: the offset makes no sense.");
        refuse("config@0x99999=00\n", "a.tree:1: the offset makes no sense.");
        refuse("config@=00\n", "a.tree:1: the offset makes no sense.");
}

static void test_malformed(void **state _unused_) {
        static const char what[] = "expected NAME=VALUE, NAME -> TARGET, NAME/, NAME!ERRNO, [SECTION] or a directive.";
        _cleanup_free_ char *line = NULL;

        assert_true(asprintf(&line, "a.tree:2: %s", what) > 0);
        refuse("a=1\nnonsense\n", line);
        refuse("\n=b\n", line);
        refuse("\n!EIO\n", line);
        refuse("\n/\n", line);
        refuse("+=b\n", "a.tree:1: there is no name.");
        refuse("[a]\n:=b\n", "a.tree:2: there is no name.");
        refuse("[a]\n//=b\n", "a.tree:2: there is no name.");
        refuse("[a\n", "a.tree:1: the section does not end with ].");
        refuse("[\n", "a.tree:1: the section does not end with ].");
        refuse("a!NONSENSE\n", "a.tree:1: there is no such errno.");
        refuse("a -> \n", "a.tree:1: a link cannot point to that.");
        refuse("a -> b\\x00c\n", "a.tree:1: a link cannot point to that.");
        refuse("a=\\q\n", "a.tree:1: only \\n, \\t, \\\\ and \\xHH can follow a backslash.");
        refuse("a=\\\n", "a.tree:1: only \\n, \\t, \\\\ and \\xHH can follow a backslash.");
        refuse("a=\\x0\n", "a.tree:1: only \\n, \\t, \\\\ and \\xHH can follow a backslash.");
        refuse_bytes("a=b\0c\n", 6, "a.tree:1: a NUL byte is in the line.");
        refuse("%include\n", "a.tree:1: %include needs the name of a file.");
}

static void test_hostile_paths(void **state _unused_) {
        static const char dots[] = "a.tree:1: a path cannot have '.' or '..' in it.";
        static const char length[] = "a.tree:1: the path is too long.";
        char text[2 * TREE_PATH_MAX];
        size_t n = 0;

        refuse("../a=b\n", dots);
        refuse("a/../../b=c\n", dots);
        refuse("a/./b=c\n", dots);
        refuse("a/.. -> /\n", dots);
        refuse("[a/..]\n", dots);
        refuse("[..]\n", dots);
        refuse("a/\\x2e\\x2e/b=c\n", dots);
        refuse("a/..\\x2fb=c\n", dots);
        refuse("a\\x00b=c\n", "a.tree:1: the path has a backslash that makes no sense.");
        expect("...=1\n", "= ... 0 1\\n\n");
        expect("\xef\xbb\xbf...=1\n", "= ... 0 1\\n\n"); /* byte order mark */
        expect("a=1\n\xef\xbb\xbf"
               "b=1\n",
               "= a 0 1\\n\n= \xef\xbb\xbf"
               "b 0 1\\n\n"); /* not at the beginning */

        memset(text, 'x', sizeof(text));
        strcpy(text + TREE_NAME_MAX + 1, "=1");
        refuse(text, length);
        for (unsigned i = 0; i <= TREE_DEPTH_MAX; i++)
                n += (size_t) sprintf(text + n, "d/");
        refuse(text, length);
        for (n = 0; n <= TREE_PATH_MAX; n++)
                text[n] = n % 100 == 99 ? '/' : 'x';
        strcpy(text + n, "=1");
        refuse(text, length);
}

/* Many items of a short line, and the end of them. */
static void test_limits(void **state _unused_) {
        static const char bomb[] = "{0-65535}{0-65535}=x\n", line[] = "{0-65535}=x\n";
        _cleanup_free_ char *problem = NULL, *big = NULL, *sentence = NULL, *many = NULL;
        char lines[17 * sizeof(line)] = "";
        Seen seen = { 0 };
        size_t size = TREE_VALUES_MAX / 1024;

        assert_int_equal(tree_parse("a.tree", bomb, strlen(bomb), see, &seen, &problem), -E2BIG);
        assert_string_equal(problem, "a.tree:1: the braces stand for too many paths.");
        assert_int_equal(seen.n, TREE_BRACES_MAX);

        for (unsigned i = 0; i < 17; i++)
                strcat(lines, line);
        seen.n = 0;
        assert_int_equal(tree_parse("a.tree", lines, strlen(lines), see, &seen, &many), -E2BIG);
        assert_string_equal(many, "a.tree:17: the tree is too large from here on.");
        assert_int_equal(seen.n, TREE_ITEMS_MAX);

        big = malloc(size + 32);
        assert_non_null(big);
        memset(big, 'x', size);
        memcpy(big, "a{0-65535}=", 11);
        seen.n = 0;
        assert_int_equal(tree_parse("a.tree", big, size, see, &seen, &sentence), -E2BIG);
        assert_in_range(seen.n, 1, 1024);
}

static void test_result(void **state _unused_) {
        _cleanup_free_ char *problem = NULL, *nameless = NULL;
        Seen seen = { .result = -ENOTDIR };

        assert_int_equal(tree_parse("a.tree", "# x\na=b\nc=d\n", 12, see, &seen, &problem), -ENOTDIR);
        assert_string_equal(problem, "a.tree:2: Not a directory.");
        assert_int_equal(seen.n, 1);
        assert_int_equal(tree_parse(NULL, "%include b\n", 11, see, &seen, &nameless), -EINVAL);
        assert_string_equal(nameless, "tree:1: %include has no place here.");
}

static void write_text(const char *dir, const char *name, const char *text) {
        char path[128];
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s/%s", dir, name);
        f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
}

static void test_include(void **state _unused_) {
        char dir[] = "/tmp/passthrough-test-XXXXXX", path[64];
        _cleanup_free_ char *problem = NULL, *loop = NULL, *absent = NULL, *expected = NULL;
        Seen seen = { 0 };

        assert_non_null(mkdtemp(dir));
        write_text(dir, "a.tree", "[x]\n%include b.tree\nc=1\n");
        write_text(dir, "b.tree", "b=1\n");
        write_text(dir, "loop.tree", "%include loop.tree\n");
        write_text(dir, "bad.tree", "\n%include nonsense.tree\n");
        write_text(dir, "nonsense.tree", "b=1\nc\n");

        (void) snprintf(path, sizeof(path), "%s/a.tree", dir);
        seen.f = open_memstream(&seen.text, &seen.size);
        assert_int_equal(tree_read(path, see, &seen, &problem), 0);
        fclose(seen.f);
        assert_string_equal(seen.text, "/ x 0 \n= b 0 1\\n\n= x/c 0 1\\n\n"); /* sections end with their file */
        free(seen.text);

        seen = (Seen){ 0 };
        (void) snprintf(path, sizeof(path), "%s/loop.tree", dir);
        assert_int_equal(tree_read(path, see, &seen, &loop), -E2BIG);
        assert_non_null(strstr(loop, "loop.tree: there are too many %include"));

        (void) snprintf(path, sizeof(path), "%s/bad.tree", dir);
        assert_int_equal(tree_read(path, see, &seen, &problem), -EINVAL);
        assert_true(asprintf(&expected, "%s/nonsense.tree:2: expected NAME=VALUE", dir) > 0);
        assert_memory_equal(problem, expected, strlen(expected));

        (void) snprintf(path, sizeof(path), "%s/absent.tree", dir);
        assert_int_equal(tree_read(path, see, &seen, &absent), -ENOENT);
        assert_non_null(strstr(absent, "absent.tree: No such file or directory."));

        for (size_t i = 0; i < 5; i++) {
                static const char *const names[] = { "a.tree", "b.tree", "loop.tree", "bad.tree", "nonsense.tree" };

                (void) snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
                assert_int_equal(remove(path), 0);
        }
        assert_int_equal(rmdir(dir), 0);
}

/* What is written reads as what it was. */
static void test_write(void **state _unused_) {
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),  cmocka_unit_test(test_sections),  cmocka_unit_test(test_braces),
                cmocka_unit_test(test_config), cmocka_unit_test(test_malformed), cmocka_unit_test(test_hostile_paths),
                cmocka_unit_test(test_limits), cmocka_unit_test(test_result),    cmocka_unit_test(test_include),
                cmocka_unit_test(test_write),
        };

        return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
