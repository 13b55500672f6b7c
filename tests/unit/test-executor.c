/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Lists of steps on plain files: undo, reports, and waits. */

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#include "host/executor.h"
#include "host/rootservice.h"
#include "treefixture.h"
#include "util/clock.h"

#define FIRST       "0000:01:00.0"
#define SECOND      "0000:02:00.0"
#define GONE        "0000:03:00.0"
#define GUIDS       "node-guid=00:11:22:33:44:55:66:77 port-guid=00:11:22:33:44:55:66:78"
/* Less time than a step waits for an interface of the PF. */
#define PROMPT_USEC 4500000U

#define REPORTS_MAX 32

/* Shared with the processes of a run. */
static Report *reports;
static _Atomic size_t *kept;
#define n_reports (*kept)

static int keep(const Report *r, void *userdata _unused_) {
        size_t i;

        if (!r)
                return 0;
        i = n_reports++;
        assert_true(i < REPORTS_MAX);
        reports[i] = *r;
        return 0;
}

static void *map_shared(size_t size) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        assert_ptr_not_equal(p, MAP_FAILED);
        return p;
}

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, "pci0000:00/0000:00:01.0/" FIRST, "0x15b3", "0x1003", "0x020700");
        tree_device(f->root, "pci0000:00/0000:00:02.0/" SECOND, "0x15b3", "0x1003", "0x030200");
        tree_attribute(f->root, FIRST, "driver_override", "driver-b");
        tree_attribute(f->root, SECOND, "driver_override", "driver-a");
        for (int i = 0; i < 2; i++)
                tree_attribute_link(f->root, i ? FIRST : SECOND, "virtfn1", "../0000:04:00.1");
        if (!reports) {
                reports = map_shared(REPORTS_MAX * sizeof(*reports));
                kept = map_shared(sizeof(*kept));
        }
        n_reports = 0;
        return 0;
}

static PciAddress address_of(const char *text) {
        PciAddress a;

        assert_int_equal(pci_address_parse(text, &a), 0);
        return a;
}

static void add(StepList *l, const char *device, Step s) {
        s.device = address_of(device);
        step_list_add(l, s);
        assert_int_equal(step_list_result(l), 0);
}

static void add_override(StepList *l, const char *device, const char *from, const char *to) {
        add(l, device, (Step) { .kind = STEP_OVERRIDE, .override = { .from = from, .to = to } });
}

static void add_attributes(StepList *l, StepKind kind, const char *device, unsigned vf, const char *text) {
        Step s = { .kind = kind, .vf = { .index = vf } };
        _cleanup_free_ char *problem = NULL;

        assert_int_equal(vf_attributes_parse(text, &s.vf.attributes, &problem), 0);
        add(l, device, s);
}

static void assert_override(const Fixture *f, const char *device, const char *expected) {
        char path[128], text[64];

        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/driver_override", device);
        assert_true(sysfs_read(f->fs, path, text, sizeof(text)) >= 0);
        assert_string_equal(text, expected);
}

/* Skips reports of the undo, which follow the report of a failure. */
static const Report *last_report(ReportKind kind) {
        while (n_reports > 1 && reports[n_reports - 1].kind == REPORT_UNDO)
                n_reports--;
        assert_true(n_reports > 0);
        assert_int_equal(reports[n_reports - 1].kind, kind);
        return &reports[n_reports - 1];
}

/* Every step is reported before it runs. A step that changes nothing is no failure. */
TEST_WITH(test_all_done, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        add_override(l, FIRST, "driver-a", "driver-b");
        add_override(l, SECOND, "driver-a", "driver-b");
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_DONE);
        assert_int_equal(n_reports, 2);
        for (size_t i = 0; i < n_reports; i++) {
                assert_int_equal(reports[i].kind, REPORT_STEP);
                assert_int_equal(reports[i].step, i);
        }
        assert_override(f, FIRST, "driver-b");
        assert_override(f, SECOND, "driver-b");
}

/* A step without a change is not undone. */
TEST_WITH(test_undo_of_changes_only, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        add_override(l, FIRST, "driver-a", "driver-b");
        add_override(l, SECOND, "driver-a", "driver-b");
        add_override(l, GONE, "driver-a", "driver-b");
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_FAILED);
        /* The undo is reported too, because it may hang. */
        assert_int_equal(reports[n_reports - 1].kind, REPORT_UNDO);
        assert_int_equal(reports[n_reports - 1].step, 1);
        assert_int_equal(last_report(REPORT_FAILED)->step, 2);
        assert_int_equal(last_report(REPORT_FAILED)->error, -ENOENT);
        assert_override(f, FIRST, "driver-b");
        assert_override(f, SECOND, "driver-a");
}

static void assert_attribute(const Fixture *f, const char *device, const char *name, const char *expected) {
        char path[128], text[64];

        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/%s", device, name);
        assert_true(sysfs_read(f->fs, path, text, sizeof(text)) >= 0);
        assert_string_equal(text, expected);
}

/* A kernel without power management has no such files. */
TEST_WITH(test_power, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        tree_attribute(f->root, SECOND, "d3cold_allowed", "1");
        for (int i = 0; i < 2; i++) {
                add(l, i ? SECOND : FIRST, (Step) { .kind = STEP_D3COLD, .on = false });
                add(l, i ? SECOND : FIRST, (Step) { .kind = STEP_RUNTIME_PM, .on = true });
        }
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_DONE);
        assert_attribute(f, SECOND, "d3cold_allowed", "0");
        tree_attribute(f->root, SECOND, "d3cold_allowed", "1");
        add_override(l, GONE, "driver-a", "driver-b");
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_FAILED);
        assert_attribute(f, SECOND, "d3cold_allowed", "1");
}

/* With one method, and without any. */
TEST_WITH(test_reset, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *by_bus = step_list_new(), *any = step_list_new();

        assert_non_null(by_bus);
        assert_non_null(any);
        tree_attribute(f->root, SECOND, "reset", "");
        tree_attribute(f->root, SECOND, "reset_method", "flr");
        add(by_bus, SECOND, (Step) { .kind = STEP_RESET, .reset = { .method = RESET_METHOD_BUS, .before = "flr" } });
        assert_int_equal(executor_run(f->fs, by_bus, -1, keep, NULL), RUN_DONE);
        (void) last_report(REPORT_STEP);
        assert_attribute(f, SECOND, "reset", "1");
        assert_attribute(f, SECOND, "reset_method", "flr");
        tree_unlink(f->root, "sys/bus/pci/devices/" SECOND "/reset_method");
        assert_int_equal(executor_run(f->fs, by_bus, -1, keep, NULL), RUN_DONE);
        assert_int_equal(last_report(REPORT_DEVICE_FAILED)->error, -EINVAL);

        add(any, FIRST, (Step) { .kind = STEP_RESET });
        assert_int_equal(executor_run(f->fs, any, -1, keep, NULL), RUN_DONE);
        assert_int_equal(last_report(REPORT_DEVICE_FAILED)->error, -ENOENT);
        any->steps[0].reset.may_lack_method = true;
        assert_int_equal(executor_run(f->fs, any, -1, keep, NULL), RUN_DONE);
        (void) last_report(REPORT_STEP);
}

/* Without Fabric Manager, a run may succeed without the partition. */
TEST_WITH(test_partition_may_lack, setup, teardown) {
        Fixture *f = *state;

        root_service_use_socket("/nonexistent/passthroughd-root");
        for (int may_lack = 0; may_lack <= 1; may_lack++) {
                _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

                assert_non_null(l);
                add_override(l, SECOND, "driver-a", "driver-b");
                step_list_add(l, (Step) { .kind = STEP_ACTIVATE });
                l->steps[1].may_lack = may_lack;
                assert_int_equal(executor_run(f->fs, l, -1, keep, NULL) == 0, may_lack);
                assert_int_equal(last_report(may_lack ? REPORT_LACKING : REPORT_UNDO_FAILED)->step, 1);
                assert_override(f, SECOND, may_lack ? "driver-b" : "driver-a");
                n_reports = 0;
        }
}

/* The result of a check concerns one device: it gets no further steps, and the run continues with the others. */
TEST_WITH(test_failed_device_is_skipped, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        tree_attribute(f->root, SECOND, "config", "\x03\x10");
        tree_attribute(f->root, SECOND, "vendor", "0x1003");
        add(l, FIRST, (Step) { .kind = STEP_CHECK });
        add(l, SECOND, (Step) { .kind = STEP_CHECK });
        add_override(l, FIRST, "driver-b", "driver-a");
        add_override(l, SECOND, "driver-a", "driver-b");
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_DONE);
        assert_int_equal(n_reports, 5);
        assert_int_equal(reports[1].kind, REPORT_DEVICE_FAILED);
        assert_int_equal(reports[1].step, 0);
        assert_int_equal(reports[1].error, -ENOENT);
        assert_int_equal(last_report(REPORT_STEP)->step, 3);
        assert_override(f, FIRST, "driver-b");
        assert_override(f, SECOND, "driver-b");
}

/* Only a step for a device that is gone may be skipped. */
TEST_WITH(test_gone_is_done, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        l->skips_missing_devices = true;
        add_override(l, GONE, "driver-a", "driver-b");
        add_override(l, SECOND, "driver-a", "driver-b");
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_DONE);
        assert_override(f, SECOND, "driver-b");
        tree_unlink(f->root, "sys/bus/pci/devices/" SECOND "/driver_override");
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_DIRTY);
        assert_int_equal(last_report(REPORT_UNDO_FAILED)->step, 1);
}

/* A VF that was removed needs no attributes. A failure for an existing VF, or for one with an unknown index, counts. */
TEST_WITH(test_gone_vf_is_done, setup, teardown) {
        static const struct {
                unsigned vf;
                int expected;
        } cases[] = { { 1, 1 }, { 7, 0 }, { STEP_VF_UNKNOWN, 1 } };
        Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

                assert_non_null(l);
                l->skips_missing_devices = true;
                add_attributes(l, STEP_ATTRIBUTES, SECOND, cases[i].vf, "mac=02:00:00:00:00:01");
                assert_int_equal(executor_run(f->fs, l, -1, keep, NULL) != 0, cases[i].expected);
                n_reports = 0;
        }
}

/* A representor is the remedy only where the PF does not support the attributes. The PF is no network device, so the
 * step does not wait for an interface. */
TEST_WITH(test_representor, setup, teardown) {
        static const struct {
                unsigned vf; /* 0: STEP_OVERRIDE */
                int error;
                const char *representor;
        } cases[] = { { 1, -EOPNOTSUPP, "eth7" }, { 7, -ENODEV, "" }, { 0, -EISDIR, "" } };
        uint64_t begin = clock_usec(CLOCK_MONOTONIC);
        Fixture *f = *state;

        tree_attribute(f->root, SECOND, "net/eth7/phys_port_name", "pf0vf1");
        tree_unlink(f->root, "sys/bus/pci/devices/" SECOND "/driver_override");
        tree_dir(f->root, "sys/bus/pci/devices/" SECOND "/driver_override");
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

                assert_non_null(l);
                if (cases[i].vf > 0)
                        add_attributes(l, STEP_ATTRIBUTES, SECOND, cases[i].vf, "mac=02:00:00:00:00:01");
                else
                        add_override(l, SECOND, NULL, "driver-b");
                (void) executor_run(f->fs, l, -1, keep, NULL);
                for (size_t j = n_reports; j-- > 0;)
                        if (reports[j].kind == REPORT_FAILED) {
                                assert_int_equal(reports[j].error, cases[i].error);
                                assert_string_equal(reports[j].representor, cases[i].representor);
                                assert_int_equal(reports[j].switchdev, cases[i].representor[0] != 0);
                                break;
                        } else
                                assert_int_not_equal(j, 0);
                n_reports = 0;
        }
        assert_true(clock_usec(CLOCK_MONOTONIC) - begin < PROMPT_USEC);
}

#define OLD_GUID "00:11:22:33:44:55:66:01"

static void offer(const char *root, const char *directory, const char *node_guid) {
        const char *const files[][2] = { { "node", node_guid },
                                         { "port", "00:11:22:33:44:55:66:78" },
                                         { "policy", "Follow" } };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                char name[64];

                (void) snprintf(name, sizeof(name), "%s/%s", directory, files[i][0]);
                tree_attribute(root, FIRST, name, files[i][1]);
        }
}

static void run_with_guids(const Fixture *f, int expected) {
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        l->reports_found_state = true;
        add_attributes(l, STEP_ATTRIBUTES, FIRST, 1, GUIDS);
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), expected);
        assert_true(n_reports >= 4);
        assert_int_equal(reports[0].kind, REPORT_READING);
        assert_int_equal(reports[1].kind, REPORT_FOUND);
        assert_true(vf_attributes_have(&reports[1].found, VF_NODE_GUID));
        assert_int_equal(reports[2].kind, REPORT_ALL_FOUND);
        assert_int_equal(reports[3].kind, REPORT_STEP);
}

static int refuse_all_found(const Report *r, void *userdata) {
        (void) keep(r, userdata);
        return r && r->kind == REPORT_ALL_FOUND ? -ECANCELED : 0;
}

/* A run whose reports could not be saved ends before its first step. */
TEST_WITH(test_not_saved, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        l->reports_found_state = true;
        offer(f->root, "sriov/1", "00:11:22:33:44:55:66:77");
        add_attributes(l, STEP_ATTRIBUTES, FIRST, 1, GUIDS);
        assert_int_equal(executor_run(f->fs, l, -1, refuse_all_found, NULL), RUN_FAILED);
        (void) last_report(REPORT_ALL_FOUND);
}

static int count_ends(const Report *r, void *userdata) {
        _Atomic size_t *n = userdata;

        *n += !r;
        return 0;
}

/* Each process tells its end, so that a report that waits for the next one is not lost. */
TEST_WITH(test_tells_end, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        add_override(l, SECOND, "driver-a", "driver-b");
        assert_int_equal(executor_run(f->fs, l, -1, count_ends, kept), RUN_DONE);
        assert_int_equal(*kept, 1);
}

/* A PF that offers nothing: nothing has to be saved before the first write. */
TEST_WITH(test_nothing_to_save, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        l->reports_found_state = true;
        add_attributes(l, STEP_SUPPORTED_ATTRIBUTES, FIRST, 1, GUIDS);
        add_override(l, SECOND, "driver-a", "driver-b");
        assert_int_equal(executor_run(f->fs, l, -1, refuse_all_found, NULL), RUN_DONE);
        assert_int_equal(reports[1].kind, REPORT_FOUND);
        assert_override(f, SECOND, "driver-b");
}

/* Without an answer from systemd it is unknown whether the service is active. The run ends before its first step. */
TEST_WITH(test_without_systemd, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", 1), 0);
        l->reports_found_state = true;
        l->timeout_sec = 4;
        add(l, FIRST, (Step) { .kind = STEP_STOP_SERVICE, .service = "x.service" });
        add_override(l, SECOND, "driver-a", "driver-b");
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_FAILED);
        assert_int_equal(n_reports, 1);
        assert_int_equal(last_report(REPORT_FAILED)->step, 0);
        assert_override(f, SECOND, "driver-a");
}

TEST_WITH(test_does_not_wait_for_what_is_offered, setup, teardown) {
        Fixture *f = *state;
        uint64_t begin = clock_usec(CLOCK_MONOTONIC);

        offer(f->root, "sriov/1", "00:11:22:33:44:55:66:77");
        run_with_guids(f, 0);
        assert_true(clock_usec(CLOCK_MONOTONIC) - begin < PROMPT_USEC);
}

/* Waits for the interface of an Ethernet or InfiniBand PF, which appears after the driver was bound. */
TEST_WITH(test_waits_for_what_may_be_offered, setup, teardown) {
        static const char *const classes[] = { "0x020000", "0x0c0600" };
        Fixture *f = *state;
        _cleanup_free_ char *before = tree_path(f->root, "sys/bus/pci/devices/" FIRST "/later");
        _cleanup_free_ char *after = tree_path(f->root, "sys/bus/pci/devices/" FIRST "/sriov");

        offer(f->root, "later/1", "00:11:22:33:44:55:66:77");
        for (size_t i = 0; i < ELEMENTSOF(classes); i++) {
                int status;
                pid_t pid;

                tree_attribute(f->root, FIRST, "class", classes[i]);
                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0) {
                        (void) usleep(200000);
                        _exit(rename(before, after) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
                }
                run_with_guids(f, 0);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_int_equal(status, 0);
                assert_int_equal(rename(after, before), 0);
                n_reports = 0;
        }
}

static void assert_guid(const Fixture *f, const char *vf, const char *expected) {
        char path[128], text[64];

        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/" FIRST "/sriov/%s/node", vf);
        assert_true(sysfs_read(f->fs, path, text, sizeof(text)) >= 0);
        assert_string_equal(text, expected);
}

static StepList *new_vfs(const Fixture *f) {
        StepList *l = step_list_new();

        assert_non_null(l);
        tree_attribute_link(f->root, FIRST, "virtfn2", "../0000:04:00.2");
        offer(f->root, "sriov/1", OLD_GUID);
        offer(f->root, "sriov/2", OLD_GUID);
        add_attributes(l, STEP_TRY_ATTRIBUTES, FIRST, 1, "node-guid=00:11:22:33:44:55:66:77");
        add_attributes(l, STEP_TRY_ATTRIBUTES, FIRST, 2, "node-guid=00:11:22:33:44:55:66:99");
        return l;
}

/* The VFs of a PF are written together, each with its own reports. An undo restores them. */
TEST_WITH(test_vfs_of_a_pf, setup, teardown) {
        static const Report expected[] = { { REPORT_STEP, 0 },    { REPORT_READING, 0 }, { REPORT_READING, 1 },
                                           { REPORT_STEP, 0 },    { REPORT_STEP, 1 },    { REPORT_READING, 0 },
                                           { REPORT_READING, 1 }, { REPORT_STEP, 2 } };
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = new_vfs(f);

        add_override(l, FIRST, "driver-b", "driver-a");
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_DONE);
        assert_int_equal(n_reports, ELEMENTSOF(expected));
        for (size_t i = 0; i < n_reports; i++) {
                assert_int_equal(reports[i].kind, expected[i].kind);
                assert_int_equal(reports[i].step, expected[i].step);
        }
        assert_guid(f, "1", "00:11:22:33:44:55:66:77");
        assert_guid(f, "2", "00:11:22:33:44:55:66:99");
        assert_override(f, FIRST, "driver-a");

        offer(f->root, "sriov/1", OLD_GUID);
        offer(f->root, "sriov/2", OLD_GUID);
        add_override(l, GONE, "driver-a", "driver-b");
        n_reports = 0;
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_FAILED);
        assert_guid(f, "1", OLD_GUID);
        assert_guid(f, "2", OLD_GUID);
}

/* A VF whose attributes cannot be set is reported. The other VFs get theirs, and the PF gets its further steps. */
TEST_WITH(test_failed_vf, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = new_vfs(f);
        size_t failed = 0;

        tree_unlink(f->root, "sys/bus/pci/devices/" FIRST "/virtfn1");
        add_override(l, FIRST, "driver-b", "driver-a");
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_DONE);
        for (size_t i = 0; i < n_reports; i++)
                if (reports[i].kind == REPORT_DEVICE_FAILED) {
                        assert_int_equal(reports[i].step, 0);
                        assert_int_equal(reports[i].error, -ENODEV);
                        failed++;
                }
        assert_int_equal(failed, 1);
        assert_guid(f, "1", OLD_GUID);
        assert_guid(f, "2", "00:11:22:33:44:55:66:99");
        assert_override(f, FIRST, "driver-a");
}

/* While the users of a GPU are unknown, its partition is not activated, and the other steps stay done. */
TEST_WITH(test_users_may_be_unknown, setup, teardown) {
        Fixture *f = *state;

        for (int may_lack = 0; may_lack <= 1; may_lack++) {
                _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

                assert_non_null(l);
                tree_attribute_link(f->root, SECOND, "iommu_group", "../../../../kernel/iommu_groups/7");
                add_override(l, SECOND, "driver-a", "driver-b");
                add(l, SECOND, (Step) { .kind = STEP_CHECK_UNUSED, .unused = { .is_vf = true } });
                step_list_add(l, (Step) { .kind = STEP_ACTIVATE });
                l->steps[1].may_lack = l->steps[2].may_lack = may_lack;
                assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), !may_lack);
                assert_int_equal(last_report(may_lack ? REPORT_LACKING : REPORT_FAILED)->step, 1);
                assert_override(f, SECOND, may_lack ? "driver-b" : "driver-a");
                n_reports = 0;
        }
}

/* A VF without others beside it, and one that does not exist. */
TEST_WITH(test_one_vf, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();

        assert_non_null(l);
        offer(f->root, "sriov/1", OLD_GUID);
        add_attributes(l, STEP_TRY_ATTRIBUTES, FIRST, 1, "node-guid=00:11:22:33:44:55:66:77");
        add_attributes(l, STEP_TRY_ATTRIBUTES, SECOND, 7, "mac=02:00:00:00:00:01");
        assert_int_equal(executor_run(f->fs, l, -1, keep, NULL), RUN_DONE);
        assert_guid(f, "1", "00:11:22:33:44:55:66:77");
        assert_int_equal(last_report(REPORT_DEVICE_FAILED)->step, 1);
        assert_int_equal(last_report(REPORT_DEVICE_FAILED)->error, -ENODEV);
}

/* Blocks a process of the run at the beginning of step *userdata. */
static int hang_at(const Report *r, void *userdata) {
        (void) keep(r, NULL);
        while (r && r->kind == REPORT_STEP && r->step == *(const uint32_t *) userdata)
                (void) pause();
        return 0;
}

static StepList *new_chains(unsigned parallel) {
        StepList *l = step_list_new();

        assert_non_null(l);
        l->parallel = parallel;
        l->n_chains = 2;
        l->timeout_sec = 1;
        l->question_sec = 1;
        return l;
}

static void add_to_chain(StepList *l, unsigned chain, StepKind kind, const char *device) {
        if (kind == STEP_OVERRIDE)
                add_override(l, device, "driver-a", "driver-b");
        else
                add(l, device, (Step) { .kind = kind, .plug = { .domain = "domain", .hostdev = "" } });
        l->steps[l->n - 1].chain = chain;
}

static bool was_begun(uint32_t step) {
        for (size_t i = 0; i < n_reports; i++)
                if (reports[i].kind == REPORT_STEP && reports[i].step == step)
                        return true;
        return false;
}

/* A release continues without a hanging chain, and reports nothing more about that chain's device. */
TEST_WITH(test_chain_hangs, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = new_chains(2);
        uint32_t first = 0;

        l->outlives_stuck = true;
        add_to_chain(l, 1, STEP_OVERRIDE, FIRST);
        add_to_chain(l, 2, STEP_OVERRIDE, SECOND);
        add_to_chain(l, 0, STEP_CHECK_GPU, FIRST);
        add_to_chain(l, 0, STEP_CHECK_GPU, SECOND);
        assert_int_equal(executor_run(f->fs, l, -1, hang_at, &first), RUN_TIMED_OUT);
        assert_override(f, SECOND, "driver-b");
        assert_false(was_begun(2));
        assert_true(was_begun(3));
}

/* Lets the first step end while the run waits for its limit, and blocks the process at the second. */
static int hang_at_second(const Report *r, void *userdata) {
        if (r && r->kind == REPORT_STEP && r->step == 0)
                (void) usleep(100000);
        return hang_at(r, userdata);
}

/* A step that follows one with a longer limit has its own limit. */
TEST_WITH(test_shorter_limit_follows, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = new_chains(2);
        uint64_t start = clock_usec(CLOCK_MONOTONIC), slow;
        uint32_t second = 1;

        l->timeout_sec = 4;
        add_to_chain(l, 1, STEP_RESET, FIRST);
        add_to_chain(l, 1, STEP_OVERRIDE, FIRST);
        slow = step_timeout_sec(l, &l->steps[0]) * UINT64_C(1000000);
        assert_true(slow >= 2 * l->timeout_sec * UINT64_C(1000000));
        assert_int_equal(executor_run(f->fs, l, -1, hang_at_second, &second), RUN_TIMED_OUT);
        assert_true(clock_usec(CLOCK_MONOTONIC) - start < slow);
}

/* When a check hangs, each device of the chain that has steps left fails once, whatever kind its next step has. */
TEST_WITH(test_chain_fails_devices, setup, teardown) {
        Fixture *f = *state;
        _cleanup_(cleanup_step_list_free) StepList *l = new_chains(2);
        uint32_t first = 0;
        size_t failed = 0;

        l->outlives_stuck = true;
        add(l, FIRST, (Step) { .kind = STEP_CHECK, .chain = 1 });
        add_to_chain(l, 1, STEP_OVERRIDE, SECOND);
        add_to_chain(l, 1, STEP_OVERRIDE, SECOND);
        assert_int_equal(executor_run(f->fs, l, -1, hang_at, &first), RUN_DONE);
        for (size_t i = 0; i < n_reports; i++)
                failed += reports[i].kind == REPORT_DEVICE_FAILED;
        assert_int_equal(failed, 2);
}

/* A release also stops at a hanging step that runs alone, such as the release of a device by its guest. */
TEST_WITH(test_lone_step_hangs, setup, teardown) {
        Fixture *f = *state;
        uint32_t first = 0;

        for (unsigned parallel = 1; parallel <= 2; parallel++) {
                _cleanup_(cleanup_step_list_free) StepList *l = new_chains(parallel);

                l->outlives_stuck = true;
                add_to_chain(l, 0, STEP_UNPLUG, FIRST);
                add_to_chain(l, 1, STEP_OVERRIDE, SECOND);
                assert_int_equal(executor_run(f->fs, l, -1, hang_at, &first), RUN_TIMED_OUT);
                assert_false(was_begun(1));
                assert_override(f, SECOND, "driver-a");
        }
}

/* The guest may have the device, so it stays on its VFIO driver. */
TEST_WITH(test_plug_hangs, setup, teardown) {
        Fixture *f = *state;
        uint32_t plug = 1;

        for (unsigned parallel = 1; parallel <= 2; parallel++) {
                _cleanup_(cleanup_step_list_free) StepList *l = new_chains(parallel);

                add_to_chain(l, 1, STEP_OVERRIDE, SECOND);
                add_to_chain(l, 0, STEP_PLUG, FIRST);
                assert_int_equal(executor_run(f->fs, l, -1, hang_at, &plug), RUN_TIMED_OUT);
                assert_override(f, SECOND, "driver-b");
                tree_attribute(f->root, SECOND, "driver_override", "driver-a");
        }
}
