/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

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
        refuse("a{1=b\n", 1);
        refuse("a{}=b\n", 1);
        refuse("a{x}=b\n", 1);
        refuse("a{1;2}=b\n", 1);
        refuse("a{1,}=b\n", 1);
        refuse("a{2-1}=b\n", 1);
        refuse("a{0-70000}=b\n", 1);
        refuse("a{00000000000000001}=b\n", 1);
        refuse("{1}{2}{3}{4}{5}=b\n", 1);
}

static void test_config(void **state _unused_) {
        expect("d/config@0x10=0d 00ff\n", "@ d/config 16 \\x0d\\x00\\xff\n");
        expect("config@4095=01\n", "@ config 4095 \\x01\n");
        expect("config@0x100=\n", "@ config 256 \n");
        expect("{1-2}/config@0={}0\n", "@ 1/config 0 \\x10\n@ 2/config 0  \n");
        refuse("config@0x1000=00\n", 1);
        refuse("config@4095=00 00\n", 1);
        refuse("config@0=0\n", 1);
        refuse("config@0=0x\n", 1);
        refuse("config@0=-1\n", 1);
        refuse("config@-1=00\n", 1);
        refuse("config@0x99999=00\n", 1);
        refuse("config@=00\n", 1);
}

static void test_malformed(void **state _unused_) {
        refuse("a=1\nnonsense\n", 2);
        refuse("\n=b\n", 2);
        refuse("\n!EIO\n", 2);
        refuse("\n/\n", 2);
        refuse("+=b\n", 1);
        refuse("[a]\n:=b\n", 2);
        refuse("[a]\n//=b\n", 2);
        refuse("[a\n", 1);
        refuse("[\n", 1);
        refuse("a!NONSENSE\n", 1);
        refuse("a -> \n", 1);
        refuse("a -> b\\x00c\n", 1);
        refuse("a=\\q\n", 1);
        refuse("a=\\\n", 1);
        refuse("a=\\x0\n", 1);
        refuse_bytes("a=b\0c\n", 6, 1);
        refuse("%include\n", 1);
}

static void test_hostile_paths(void **state _unused_) {
        char text[2 * TREE_PATH_MAX];
        size_t n = 0;

        refuse("../a=b\n", 1);
        refuse("a/../../b=c\n", 1);
        refuse("a/./b=c\n", 1);
        refuse("a/.. -> /\n", 1);
        refuse("[a/..]\n", 1);
        refuse("[..]\n", 1);
        refuse("a/\\x2e\\x2e/b=c\n", 1);
        refuse("a/..\\x2fb=c\n", 1);
        refuse("a\\x00b=c\n", 1);
        expect("...=1\n", "= ... 0 1\\n\n");
        expect("\xef\xbb\xbf...=1\n", "= ... 0 1\\n\n"); /* byte order mark */
        expect("a=1\n\xef\xbb\xbf"
               "b=1\n",
               "= a 0 1\\n\n= \xef\xbb\xbf"
               "b 0 1\\n\n"); /* not at the beginning */

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

/* Many items of a short line, and the end of them. */
static void test_limits(void **state _unused_) {
        static const char bomb[] = "{0-65535}{0-65535}=x\n", line[] = "{0-65535}=x\n";
        _cleanup_free_ char *problem = NULL, *big = NULL, *sentence = NULL, *many = NULL;
        char lines[17 * sizeof(line)] = "";
        Seen seen = { 0 };
        size_t size = TREE_VALUES_MAX / 1024;

        assert_int_equal(tree_parse("a.tree", bomb, strlen(bomb), see, &seen, &problem), -E2BIG);
        assert_place(problem, 1);
        record(bomb, problem);
        assert_int_equal(seen.n, TREE_BRACES_MAX);

        for (unsigned i = 0; i < 17; i++)
                strcat(lines, line);
        seen.n = 0;
        assert_int_equal(tree_parse("a.tree", lines, strlen(lines), see, &seen, &many), -E2BIG);
        assert_place(many, 17);
        record("17 lines of 65536 paths", many);
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
        assert_place(problem, 2);
        record("ENOTDIR of line 2", problem);
        assert_int_equal(seen.n, 1);
        assert_int_equal(tree_parse(NULL, "%include b\n", 11, see, &seen, &nameless), -EINVAL);
        record("%include without a file", nameless);
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
        assert_non_null(strstr(loop, "/loop.tree: "));

        (void) snprintf(path, sizeof(path), "%s/bad.tree", dir);
        assert_int_equal(tree_read(path, see, &seen, &problem), -EINVAL);
        assert_true(asprintf(&expected, "%s/nonsense.tree:2: ", dir) > 0);
        assert_memory_equal(problem, expected, strlen(expected));

        (void) snprintf(path, sizeof(path), "%s/absent.tree", dir);
        assert_int_equal(tree_read(path, see, &seen, &absent), -ENOENT);
        assert_non_null(strstr(absent, "/absent.tree: "));

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

static void test_sentences(void **state _unused_) {
        assert_sentences("tree-lines.txt");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),  cmocka_unit_test(test_sections),  cmocka_unit_test(test_braces),
                cmocka_unit_test(test_config), cmocka_unit_test(test_malformed), cmocka_unit_test(test_hostile_paths),
                cmocka_unit_test(test_limits), cmocka_unit_test(test_result),    cmocka_unit_test(test_include),
                cmocka_unit_test(test_write),  cmocka_unit_test(test_sentences),
        };

        return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
