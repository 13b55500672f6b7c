/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Children with a deadline: each is reported once, and none is left over. */

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "host/child.h"

typedef struct Fixture {
        sd_event *event;
        ChildWatch watch;
        unsigned n_exited, n_late;
        siginfo_t end;
} Fixture;

static void block_sigchld(int how) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        assert_int_equal(sigprocmask(how, &set, NULL), 0);
}

static int setup(void **state) {
        static Fixture f;

        f = (Fixture) { 0 };
        block_sigchld(SIG_BLOCK);
        *state = &f;
        return sd_event_new(&f.event);
}

static int teardown(void **state) {
        Fixture *f = *state;

        child_watch_done(&f->watch);
        sd_event_unref(f->event);
        return 0;
}

static int on_exit_of_child(sd_event_source *source, const siginfo_t *end, void *userdata) {
        Fixture *f = userdata;

        f->n_exited++;
        f->end = *end;
        return sd_event_exit(f->event, 0);
}

static int on_late(sd_event_source *source, uint64_t usec, void *userdata) {
        Fixture *f = userdata;

        f->n_late++;
        child_watch_kill(&f->watch);
        return 0;
}

/* Starts a child that exits at once with the status. Negative: the child waits to be killed. */
static pid_t start(int status) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid > 0)
                return pid;
        while (status < 0)
                (void) pause();
        _exit(status);
}

static void assert_no_child(void) {
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

TEST_WITH(test_exit, setup, teardown) {
        Fixture *f = *state;

        assert_int_equal(child_watch(&f->watch, f->event, start(7), 60000000, on_exit_of_child, on_late, f), 0);
        assert_true(sd_event_loop(f->event) >= 0);
        assert_int_equal(f->n_exited, 1);
        assert_int_equal(f->n_late, 0);
        assert_int_equal(f->end.si_status, 7);
        child_watch_done(&f->watch);
        assert_no_child();
}

TEST_WITH(test_deadline, setup, teardown) {
        Fixture *f = *state;

        assert_int_equal(child_watch(&f->watch, f->event, start(-1), 1000, on_exit_of_child, on_late, f), 0);
        assert_true(sd_event_loop(f->event) >= 0);
        assert_int_equal(f->n_late, 1);
        assert_int_equal(f->n_exited, 1);
        assert_int_equal(f->end.si_code, CLD_KILLED);
        child_watch_done(&f->watch);
        assert_no_child();
}

TEST_WITH(test_done, setup, teardown) {
        Fixture *f = *state;

        assert_int_equal(child_watch(&f->watch, f->event, start(-1), 0, on_exit_of_child, NULL, f), 0);
        child_watch_done(&f->watch);
        child_watch_kill(&f->watch);
        assert_no_child();
}

TEST_WITH(test_may_hang, setup, teardown) {
        Fixture *f = *state;
        pid_t pid = start(-1);

        f->watch.may_hang = true;
        assert_int_equal(child_watch(&f->watch, f->event, pid, 0, on_exit_of_child, NULL, f), 0);
        child_watch_done(&f->watch);
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* sd-event cannot watch children while SIGCHLD is not blocked. */
TEST_WITH(test_failure, setup, teardown) {
        Fixture *f = *state;

        block_sigchld(SIG_UNBLOCK);
        assert_true(child_watch(&f->watch, f->event, start(-1), 0, on_exit_of_child, NULL, f) < 0);
        assert_null(f->watch.exit);
        assert_no_child();
}
