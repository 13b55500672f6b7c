/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>

#include "unit.h"

#include "bus/names.h"
#include "replay/replay.h"
#include "scanfixture.h"

typedef struct Peer {
        Replay *replay;
        sd_bus *bus;
        sd_bus_error error;
        sd_bus_message *reply;
} Peer;

/* Opens a private connection to a replay of the fixture's machine. */
static void peer_open(Peer *p, const char *node) {
        _cleanup_free_ char *problem = NULL;
        int fd;

        *p = (Peer) { 0 };
        assert_int_equal(replay_new(node, NULL, &p->replay, &problem), 0);
        assert_null(problem);
        fd = replay_take_fd(p->replay);
        assert_int_equal(sd_bus_new(&p->bus), 0);
        assert_int_equal(sd_bus_set_fd(p->bus, fd, fd), 0);
        assert_true(sd_bus_start(p->bus) >= 0);
}

static void peer_forget(Peer *p) {
        sd_bus_error_free(&p->error);
        p->reply = sd_bus_message_unref(p->reply);
}

static void peer_done(Peer *p) {
        peer_forget(p);
        sd_bus_flush_close_unref(p->bus);
        replay_free(p->replay);
}

#define call(peer, member, ...)                                                                                        \
        (peer_forget(peer), sd_bus_call_method((peer)->bus, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, (member),       \
                                               &(peer)->error, &(peer)->reply, __VA_ARGS__))

/* Allocates one vCPU with memory, all that the machine has. Returns the result of the call. */
static int allocate(Peer *p, const char *name) {
        return call(p, "Allocate", "sa{sv}", name, 2, REQUEST_KEY_CPUS, "u", 1U, REQUEST_KEY_MEMORY, "t",
                    UINT64_C(1) << 30);
}

static void assert_error(const Peer *p, int r, const char *name, const char *part) {
        assert_true(r < 0);
        assert_string_equal(p->error.name, name);
        assert_non_null(strstr(p->error.message, part));
}

static void assert_problem(const char *node, const char *config, const char *part) {
        _cleanup_free_ char *problem = NULL;
        Replay *replay = NULL;

        assert_true(replay_new(node, config, &replay, &problem) < 0);
        assert_null(replay);
        assert_non_null(problem);
        if (!strstr(problem, part))
                fail_msg("'%s' is not in '%s'", part, problem);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* the process has ended */
        assert_int_equal(errno, ECHILD);
}

/* A machine like a recorded one, with proc/. */
static int setup_node(void **state) {
        int r = setup(state);
        const Fixture *f = *state;

        tree_dir(f->root, "proc");
        return r;
}

TEST_WITH(test_describes, setup_node, teardown) {
        const Fixture *f = *state;
        const char *json;
        Peer p;

        peer_open(&p, f->root);
        assert_true(call(&p, "Describe", NULL) >= 0);
        assert_true(sd_bus_message_read(p.reply, "v", "s", &json) > 0);
        assert_non_null(strstr(json, "\"0000:01:00.0\""));
        peer_done(&p);
}

/* An allocation is ready at once, belongs to the caller, and its job has ended. */
TEST_WITH(test_allocates, setup_node, teardown) {
        const Fixture *f = *state;
        const char *path, *job, *text;
        uint64_t generation;
        uint32_t owner;
        Peer p;

        peer_open(&p, f->root);
        assert_true(allocate(&p, "vm") >= 0);
        assert_true(sd_bus_message_read(p.reply, "oo", &path, &job) > 0);
        assert_string_equal(path, BUS_ALLOCATION_PREFIX "/vm");
        assert_true(sd_bus_get_property_string(p.bus, BUS_NAME, job, BUS_JOB_INTERFACE, "Verb", &p.error,
                                               (char **) &text) < 0);
        assert_true(call(&p, "ListAllocations", NULL) >= 0);
        assert_true(sd_bus_message_enter_container(p.reply, 'a', "(sstuo)") > 0);
        assert_true(sd_bus_message_read(p.reply, "(sstuo)", &text, &job, &generation, &owner, &path) > 0);
        assert_string_equal(text, "vm");
        assert_string_equal(job, "ready");
        assert_int_equal(generation, 1);
        assert_int_equal(owner, geteuid());
        assert_true(call(&p, "GetDomainXML", "sa{sv}", "vm", 0) >= 0);
        assert_true(sd_bus_message_read(p.reply, "v", "s", &text) > 0);
        assert_non_null(strstr(text, "<vcpupin vcpu=\"0\""));
        peer_done(&p);
}

/* Allocated resources are unavailable in this replay only. */
TEST_WITH(test_is_a_ledger, setup_node, teardown) {
        const Fixture *f = *state;
        Peer p, other;

        peer_open(&p, f->root);
        peer_open(&other, f->root);
        assert_true(allocate(&p, "vm") >= 0);
        assert_error(&p, allocate(&p, "vm2"), BUS_ERROR_INSUFFICIENT, ".");
        assert_true(allocate(&other, "vm2") >= 0);
        assert_error(&p, allocate(&p, "../vm"), BUS_ERROR_INVALID_REQUEST, "'../vm'");
        peer_done(&other);
        peer_done(&p);
}

TEST_WITH(test_refuses_changes, setup_node, teardown) {
        const Fixture *f = *state;
        Peer p;

        peer_open(&p, f->root);
        assert_error(&p, call(&p, "Release", "st", "vm", UINT64_C(1)), BUS_ERROR_NOT_SUPPORTED, "recorded node");
        assert_error(&p, call(&p, "SetVirtualFunctions", "su", "0000:01:00.0", 1U), BUS_ERROR_NOT_SUPPORTED,
                     "recorded node");
        assert_error(&p, call(&p, "Rescan", NULL), BUS_ERROR_NOT_SUPPORTED, "recorded node");
        assert_error(&p, call(&p, "Reload", NULL), BUS_ERROR_NOT_SUPPORTED, "recorded node");
        peer_done(&p);
}

/* The process ends when its peer closes the connection. */
TEST_WITH(test_ends_with_its_peer, setup_node, teardown) {
        const Fixture *f = *state;
        siginfo_t si = { 0 };
        Peer p;

        peer_open(&p, f->root);
        assert_true(call(&p, "Describe", NULL) >= 0);
        p.bus = sd_bus_flush_close_unref(p.bus);
        assert_int_equal(waitid(P_ALL, 0, &si, WEXITED | WNOWAIT), 0);
        assert_int_equal(si.si_code, CLD_EXITED);
        peer_done(&p);
}

TEST_WITH(test_free_ends_it, setup_node, teardown) {
        const Fixture *f = *state;
        _cleanup_free_ char *problem = NULL;
        Replay *replay;

        assert_int_equal(replay_new(f->root, NULL, &replay, &problem), 0);
        assert_null(replay_free(replay));
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        assert_null(replay_free(NULL));
}

TEST_WITH(test_problems, setup_node, teardown) {
        const Fixture *f = *state;
        _cleanup_free_ char *below = tree_path(f->root, "sys/devices"), *conf = tree_path(f->root, "twice.conf");

        assert_problem("/nonexistent/node", NULL, "/nonexistent/node");
        assert_problem(below, NULL, " sys/ ");
        assert_problem("/dev/null", NULL, "/dev/null");
        assert_problem("/proc", NULL, "sys/devices");
        assert_problem(f->root, "/nonexistent.conf", "/nonexistent.conf");
        /* A PF and its own VF. */
        tree_attribute(f->root, "0000:01:00.0", "sriov_totalvfs", "2");
        tree_file(f->root, "twice.conf", "[Pool nic]\nMatch=type=pf\nVirtualFunctions=2\n[Pool vf]\nMatch=type=vf\n");
        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:10.0", "0x8086", "0x10ca", "0x020000");
        tree_attribute_link(f->root, "0000:01:10.0", "physfn", "../0000:01:00.0");
        tree_attribute_link(f->root, "0000:01:00.0", "virtfn0", "../0000:01:10.0");
        assert_problem(f->root, conf, "0000:01:10.0");
}

/* With the recorded configuration, or another one. */
TEST_WITH(test_configuration, setup_node, teardown) {
        const Fixture *f = *state;
        _cleanup_free_ char *conf = tree_path(f->root, "other.conf"), *problem = NULL;
        Peer p;

        tree_file(f->root, "etc/passthroughd/passthroughd.conf", "[Daemon]\nHousekeepingCpus=0-1");
        tree_file(f->root, "other.conf", "[Daemon]");
        peer_open(&p, f->root);
        assert_error(&p, allocate(&p, "vm"), BUS_ERROR_INSUFFICIENT, "CPU");
        peer_done(&p);
        assert_int_equal(replay_new(f->root, conf, &p.replay, &problem), 0);
        replay_free(p.replay);
}
