/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bus/json.h"
#include "host/history.h"
#include "util/fileio.h"
#include "util/strings.h"

static char dir[] = "/tmp/test-history-XXXXXX";
static int dir_fd = -1;
static History *history;

static const PciAddress gpu = { .domain = 0, .bus = 0x82, .slot = 0, .function = 0 };
static const PciAddress nic = { .domain = 0, .bus = 0x83, .slot = 0, .function = 1 };

static int setup(void **state _unused_) {
        if (!mkdtemp(dir))
                return -1;
        dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dir_fd < 0 ? -1 : history_open(dir, &history);
}

static int clean(void **state _unused_) {
        (void) unlinkat(dir_fd, "history", 0);
        (void) unlinkat(dir_fd, "history", AT_REMOVEDIR);
        (void) unlinkat(dir_fd, "history.1", 0);
        return 0;
}

static int teardown(void **state _unused_) {
        history = history_close(history);
        cleanup_close(&dir_fd);
        return rmdir(dir);
}

static char *line_of(PciAddress device, const char *message) {
        char *line = history_format(&(HistoryEntry){
                .time = 1700000000123456, .event = HISTORY_STUCK, .device = device, .message = message });

        assert_non_null(line);
        return line;
}

static int append(PciAddress device, const char *message) {
        _cleanup_free_ char *line = line_of(device, message);

        return history_append(history, line, strlen(line));
}

/* Messages of the newest max entries, each with a comma after it. */
static void assert_messages(PciAddress device, size_t max, const char *expected) {
        _cleanup_history_list_ HistoryList l = { .max = max };
        _cleanup_free_ char *text = NULL, *found = NULL;
        _cleanup_json_ json_object *array = NULL;

        assert_int_equal(history_read(history, device, &l), 0);
        text = history_list_format(&l);
        assert_non_null(text);
        array = json_tokener_parse(text);
        assert_true(json_object_is_type(array, json_type_array));
        assert_int_equal(string_replace(&found, "%s", ""), 0);
        for (size_t i = 0; i < json_object_array_length(array); i++) {
                json_object *message;

                assert_true(json_object_object_get_ex(json_object_array_get_idx(array, i), "message", &message));
                assert_int_equal(string_replace(&found, "%s%s,", found, json_object_get_string(message)), 0);
        }
        assert_string_equal(found, expected);
}

static off_t size_of(const char *name) {
        struct stat st;

        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : st.st_size;
}

/* As somebody else, or a crash, leaves it. */
static void write_raw(const char *name, const char *data, size_t size) {
        _cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, data, size), size);
}

static void test_events(void **state _unused_) {
        for (HistoryEvent e = 0; e < _HISTORY_EVENT_MAX; e++) {
                assert_non_null(history_event_to_string(e));
                assert_int_equal(history_event_from_string(history_event_to_string(e)), e);
        }
        assert_int_equal(history_event_from_string("lost"), _HISTORY_EVENT_INVALID);
}

static void test_format(void **state _unused_) {
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new("guest");
        _cleanup_free_ char *line = NULL, *without = line_of(gpu, "It says \"no\".");

        assert_non_null(a);
        a->owner = UINT32_MAX;
        a->generation = UINT64_C(1) << 40;
        line = history_format(&(HistoryEntry){ 1700000000000007, HISTORY_RESERVED, nic, a, "Ours." });
        assert_string_equal(line, "{\"device\":\"0000:83:00.1\",\"time\":\"2023-11-14T22:13:20.000007Z\",\"event\":"
                                  "\"reserved\",\"allocation\":\"guest\",\"owner\":4294967295,\"generation\":"
                                  "1099511627776,\"message\":\"Ours.\"}\n");
        assert_string_equal(without, "{\"device\":\"0000:82:00.0\",\"time\":\"2023-11-14T22:13:20.123456Z\",\"event\":"
                                     "\"stuck\",\"allocation\":null,\"owner\":null,\"generation\":null,\"message\":"
                                     "\"It says \\\"no\\\".\"}\n");
}

/* The longest there can be are lines that are read again, cut between characters. */
static void test_long_message(void **state _unused_) {
        static const char *const characters[] = { "\xe2\x82\xac", "\"" };

        for (size_t c = 0; c < ELEMENTSOF(characters); c++) {
                _cleanup_history_list_ HistoryList l = { .max = 9 };
                char message[HISTORY_MESSAGE_MAX * 2] = "";
                _cleanup_free_ char *line = NULL;

                while (strlen(message) + 4 < sizeof(message))
                        strcat(message, characters[c]);
                line = line_of(gpu, message);
                assert_true(strlen(line) <= HISTORY_LINE_MAX);
                assert_non_null(strstr(line, "...\"}\n"));
                assert_int_equal(history_list_add(&l, line, strlen(line), gpu), 0);
                assert_int_equal(l.n, 1);
        }
}

static void test_nothing(void **state _unused_) {
        assert_messages(gpu, 10, "");
        assert_int_equal(size_of("history"), -ENOENT);
}

static void test_newest_last(void **state _unused_) {
        assert_int_equal(append(gpu, "a"), 0);
        assert_int_equal(append(nic, "x"), 0);
        assert_int_equal(append(gpu, "b"), 0);
        assert_int_equal(append(gpu, "c"), 0);
        assert_messages(gpu, 10, "a,b,c,");
        assert_messages(gpu, 2, "b,c,");
        assert_messages(gpu, 0, "");
        assert_messages(nic, 10, "x,");
}

/* Cut anywhere, a last line is passed over or whole, and what comes after it is whole in any case. */
static void test_torn(void **state) {
        _cleanup_free_ char *line = line_of(gpu, "torn");

        for (size_t n = 0; n <= strlen(line); n++) {
                bool whole = n + 1 >= strlen(line);

                (void) clean(state);
                assert_int_equal(append(gpu, "before"), 0);
                write_raw("history", line, n);
                assert_messages(gpu, 10, whole ? "before,torn," : "before,");
                assert_int_equal(append(gpu, "after"), 0);
                assert_messages(gpu, 10, whole ? "before,torn,after," : "before,after,");
        }
}

/* What a power failure may leave of a file that nobody synced, and what others may write into it. */
static void test_broken(void **state _unused_) {
        static const char zeros[5000] = "";
        _cleanup_free_ char *longer = NULL;
        static const char *const lines[] = {
                "\n\n",
                "{\"device\":\"0000:82:00.0\",\"message\":\"no time\"}\n",
                "{\"device\":\"0000:82:00.0\",\"time\":1,\"event\":\"stuck\",\"allocation\":null,\"owner\":null,"
                "\"generation\":null,\"message\":\"a number\"}\n",
                "{\"device\":\"0000:82:00.0\",\"time\":\"t\",\"event\":\"stuck\",\"allocation\":null,\"owner\":null,"
                "\"generation\":null,\"message\":\"\xff\"}\n",
                "{\"device\":\"0000:82:00.0\",\"time\":\"t\",\"event\":\"stuck\",\"allocation\":null,\"owner\":null,"
                "\"generation\":null,\"message\":null}\n",
                "{\"device\":\"0000:82:00.0\",[[[[[[\n",
                "[\"0000:82:00.0\"]\n",
        };

        assert_int_equal(append(gpu, "a"), 0);
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                write_raw("history", lines[i], strlen(lines[i]));
        assert_int_equal(append(gpu, "b"), 0);
        assert_int_equal(
                string_replace(&longer,
                               "{\"device\":\"0000:82:00.0\",\"time\":\"t\",\"event\":\"stuck\","
                               "\"allocation\":null,\"owner\":null,\"generation\":null,\"message\":\"%0*d\"}\n",
                               (int) HISTORY_LINE_MAX, 0),
                0);
        write_raw("history", longer, strlen(longer));
        write_raw("history", "{\"device\":\"0000:82:00.0\",", 25);
        write_raw("history", zeros, sizeof(zeros));
        assert_int_equal(append(gpu, "c"), 0);
        assert_messages(gpu, 10, "a,b,c,");
}

static void test_rotation(void **state _unused_) {
        char number[32], expected[64];
        unsigned n = 0, rotations = 0;
        off_t before = 0;

        while (rotations < 3) {
                off_t now;

                (void) snprintf(number, sizeof(number), "%u", ++n);
                assert_int_equal(append(n % 1000 == 0 ? nic : gpu, number), 0);
                now = size_of("history");
                assert_true(now <= HISTORY_FILE_MAX);
                assert_true(size_of("history.1") <= (off_t) HISTORY_FILE_MAX);
                rotations += now < before;
                before = now;
        }
        /* Just turned over: the newest is alone in its file, those before it in the other. */
        (void) snprintf(expected, sizeof(expected), "%u,%u,%u,", n - 2, n - 1, n);
        assert_true(n % 1000 > 3);
        assert_messages(gpu, 3, expected);
        (void) snprintf(expected, sizeof(expected), "%u,", n / 1000 * 1000);
        assert_messages(nic, 1, expected);
        assert_true(size_of("history.1") > (off_t) HISTORY_FILE_MAX - (off_t) HISTORY_LINE_MAX);
        assert_int_equal(size_of("history.2"), -ENOENT);
}

/* Somebody else made it larger than it can be: the end is read, and it is turned over. */
static void test_too_large(void **state _unused_) {
        assert_int_equal(append(gpu, "first"), 0);
        for (int i = 0; i < 9; i++) {
                static char filler[1 << 20];

                memset(filler, 'x', sizeof(filler));
                write_raw("history", filler, sizeof(filler));
        }
        write_raw("history", "\n", 1);
        assert_int_equal(append(gpu, "second"), 0);
        assert_true(size_of("history") < HISTORY_LINE_MAX);
        assert_messages(gpu, 10, "second,");
}

static void test_not_a_file(void **state) {
        _cleanup_history_list_ HistoryList l = { .max = 9 };

        assert_int_equal(mkdirat(dir_fd, "history", 0700), 0);
        assert_int_equal(append(gpu, "a"), -EISDIR);
        assert_int_equal(history_read(history, gpu, &l), -EINVAL);
        (void) clean(state);
        assert_int_equal(mkfifoat(dir_fd, "history", 0600), 0);
        assert_int_equal(append(gpu, "a"), -EINVAL);
        assert_int_equal(history_read(history, gpu, &l), -EINVAL);
        (void) clean(state);
        assert_int_equal(symlinkat("history.1", dir_fd, "history"), 0);
        assert_int_equal(append(gpu, "a"), -ELOOP);
        assert_int_equal(size_of("history.1"), -ENOENT);
        (void) clean(state);
        assert_int_equal(append(gpu, "a"), 0);
        assert_messages(gpu, 9, "a,");
}

static void test_too_much(void **state _unused_) {
        static char lines[HISTORY_FILE_MAX];

        assert_int_equal(history_append(history, lines, sizeof(lines)), -E2BIG);
        assert_int_equal(size_of("history"), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_events),
                cmocka_unit_test(test_format),
                cmocka_unit_test(test_long_message),
                cmocka_unit_test_teardown(test_nothing, clean),
                cmocka_unit_test_teardown(test_newest_last, clean),
                cmocka_unit_test_teardown(test_torn, clean),
                cmocka_unit_test_teardown(test_broken, clean),
                cmocka_unit_test_teardown(test_rotation, clean),
                cmocka_unit_test_teardown(test_too_large, clean),
                cmocka_unit_test_teardown(test_not_a_file, clean),
                cmocka_unit_test_teardown(test_too_much, clean),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
