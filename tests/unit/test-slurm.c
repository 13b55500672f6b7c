/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Requests of jobs, CPU numbers and GRES of Slurm. */

#include <errno.h>
#include <stdio.h>

#include "unit.h"

#include "model/cpuset.h"
#include "slurm/cores.h"
#include "slurm/gres.h"
#include "slurm/request.h"
#include "tmptree.h"
#include "util/strings.h"

static int parse(const char *text, JobRequest *ret) {
        _cleanup_free_ char *sentence = NULL;
        int r = job_request_parse(text, ret, &sentence);

        assert_int_equal(!!sentence, r == -EINVAL);
        return r;
}

TEST(test_request) {
        static const char *const wrong[] = { "",       "gpu=",           "gpu=0",     "gpu=-1", "gpu=x",  "=1",
                                             "gpu=1,", "gpu=4294967296", "\033[2J=1", "\377=1", "gpu=1\n" };
        _cleanup_job_request_ JobRequest q = { 0 };
        char text[1026];

        assert_int_equal(parse("gpu=1,ib-vf,disk=4294967295", &q), 0);
        assert_int_equal(q.n_pools, 3);
        assert_string_equal(q.pools[0].pool, "gpu");
        assert_int_equal(q.pools[0].count, 1);
        assert_string_equal(q.pools[1].pool, "ib-vf");
        assert_int_equal(q.pools[1].count, 1);
        assert_int_equal(q.pools[2].count, UINT32_MAX);
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                assert_int_equal(parse(wrong[i], &(JobRequest) { 0 }), -EINVAL);
        memset(text, 'a', sizeof(text));
        text[1025] = '\0';
        assert_int_equal(parse(text, &(JobRequest) { 0 }), -EINVAL);
}

static int check(const char *request, const char *detail) {
        _cleanup_job_request_ JobRequest q = { 0 };
        _cleanup_free_ char *sentence = NULL;

        assert_int_equal(parse(request, &q), 0);
        return job_request_check(&q, detail, &sentence);
}

TEST(test_check) {
        assert_int_equal(check("gpu=2", "vmgpu:h100(CNT:2)"), 0);
        assert_int_equal(check("gpu=1", "vmgpu(CNT:2)"), 0);
        assert_int_equal(check("gpu=3", "vmgpu:h100(CNT:2),vmgpu:a100(CNT:1)"), 0);
        assert_int_equal(check("gpu=1,ib-vf=2", "vmib-vf(CNT:2),vmgpu:h100(CNT:1)"), 0);
        assert_int_equal(check("gpu=3", "vmgpu:h100(CNT:2)"), -EPERM);
        assert_int_equal(check("gpu=2,gpu=1", "vmgpu:h100(CNT:2)"), -EPERM);
        assert_int_equal(check("gpu", NULL), -EPERM);
        assert_int_equal(check("gpu", "gpu(CNT:1),vmgpus(CNT:1),vmgp(CNT:1),vmgpu:8"), -EPERM);
}

/* Two sockets of two cores of two threads each. The sockets alternate, and the second threads have the last numbers. */
static void make_cpus(const char *t) {
        tree_file(t, "sys/devices/system/cpu/online", "0-7\n");
        for (unsigned cpu = 0; cpu < 8; cpu++) {
                char path[80], value[16];

                (void) snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/core_cpus_list", cpu);
                (void) snprintf(value, sizeof(value), "%u,%u\n", cpu % 4, cpu % 4 + 4);
                tree_file(t, path, value);
                (void) snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
                (void) snprintf(value, sizeof(value), "%u\n", cpu % 2);
                tree_file(t, path, value);
        }
}

static void assert_cpus(const char *root, const char *list, const char *want) {
        _cleanup_free_ char *found = NULL;
        int r = cpus_of_slurm_cores(root, list, &found);

        assert_int_equal(r, want ? 0 : -EINVAL);
        if (want)
                assert_string_equal(found, want);
}

TEST(test_cpus) {
        char *root = tree_new();
        char *found;

        assert_int_equal(cpus_of_slurm_cores(root, "0", &found), -ENOENT);
        make_cpus(root);
        assert_cpus(root, "0", "0,4");
        assert_cpus(root, "0-1", "0,2,4,6");
        assert_cpus(root, "2", "1,5");
        assert_cpus(root, "1-2", "1-2,5-6");
        assert_cpus(root, "0-3", "0-7");
        assert_cpus(root, "4", NULL);
        assert_cpus(root, "x", NULL);
        /* Without the last core, and without one thread. */
        tree_file(root, "sys/devices/system/cpu/online", "0-2,4-5\n");
        assert_cpus(root, "1-2", "1-2,5");
        assert_cpus(root, "3", NULL);
        tree_done(root);
}

#define GPU(model, state)                                                                                              \
        "{\"pool\":\"gpu\",\"kind\":\"gpu\",\"state\":\"" state "\",\"name\":\"NVIDIA Corporation " model "\"}"
#define NODE(devices)                                                                                                  \
        "{\"pools\":[{\"name\":\"gpu\"},{\"name\":\"ib-vf\"}],\"devices\":[" devices                                   \
        ",{\"pool\":\"ib-vf\",\"kind\":\"nic\",\"state\":\"allocated\",\"name\":\"MT27500 [ConnectX-3]\"},"            \
        "{\"pool\":null,\"kind\":\"bridge\",\"state\":\"host\",\"name\":null}]}"

static char *format_update(const char *description, const char *present) {
        json_object *o = json_tokener_parse(description);
        _cleanup_gres_list_ GresList list = { 0 };
        char *text;

        assert_non_null(o);
        assert_int_equal(gres_list_new(o, &list), 0);
        text = present ? gres_list_update(&list, present, "vmgpu,gpu,vmib-vf") : gres_list_format(&list);
        assert_non_null(text);
        json_object_put(o);
        return text;
}

static void assert_gres(const char *description, const char *present, const char *want) {
        _cleanup_free_ char *text = format_update(description, present);

        assert_string_equal(text, want);
}

TEST(test_gres_types) {
        assert_gres(NODE(GPU("GH100[H100 SXM5 80GB]", "available")), NULL, "vmgpu:h100:1,vmib-vf:1");
        assert_gres(NODE(GPU("GK110GL [Tesla K20m]", "quarantined")), NULL, "vmgpu:k20m:1,vmib-vf:1");
        assert_gres(NODE(GPU("GA102 [GeForce RTX 3090]", "available")), NULL, "vmgpu:rtx_3090:1,vmib-vf:1");
        assert_gres(NODE(GPU("GA102 [3090]", "available")), NULL, "vmgpu:1,vmib-vf:1");
        assert_gres(NODE(GPU("A B [X/1 Y]", "available")), NULL, "vmgpu:x_1:1,vmib-vf:1");
        assert_gres(NODE(GPU("Device 2bb5", "available")), NULL, "vmgpu:1,vmib-vf:1");
        assert_gres(NODE("{\"pool\":\"gpu\",\"kind\":\"gpu\",\"state\":\"available\",\"vendor\":\"10de\","
                         "\"device\":\"2335\","
                         "\"name\":\"NVIDIA Corporation 3D controller [10de:2335]\"}"),
                    NULL, "vmgpu:1,vmib-vf:1");
        assert_gres(NODE("{\"pool\":\"gpu\",\"kind\":\"accelerator\",\"state\":\"available\","
                         "\"name\":\"Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram [Instinct MI300X]\"}"),
                    NULL, "vmgpu:mi300x:1,vmib-vf:1");
        /* The JSON of a 0.3 daemon. */
        assert_gres(NODE("{\"pool\":\"gpu\",\"class\":\"030200\",\"state\":\"available\",\"name\":\"[H100]\"},"
                         "{\"pool\":\"ib-vf\",\"class\":\"020700\",\"state\":\"available\",\"name\":\"[ConnectX-3]\"}"),
                    NULL, "vmgpu:h100:1,vmib-vf:2");
        assert_gres(NODE(GPU("[H100]", "available") "," GPU("[H100]", "stuck")), NULL, "vmgpu:h100:2,vmib-vf:1");
        assert_gres(NODE(GPU("[H100]", "available") "," GPU("[A100]", "available")), NULL, "vmgpu:2,vmib-vf:1");
        assert_gres("{}", NULL, "");
}

TEST(test_gres_update) {
        assert_gres(NODE(GPU("[H100]", "available")), "vmgpu:h100:8,vmib-vf:64", "vmgpu:h100:1,vmib-vf:1");
        assert_gres(NODE(GPU("[H100]", "reserved")), "gpu:a100:2(S:0),vmib-vf:64,vmgpu:8",
                    "gpu:a100:2(S:0),vmib-vf:1,vmgpu:1");
        assert_gres(NODE(GPU("[H100]", "available")), "vmgpu:h100:8(S:0-1),vmib-vf", "vmgpu:h100:1,vmib-vf:1");
        assert_gres(NODE(GPU("[H100]", "quarantined")), "vmgpu:h100:8,vmib-vf:1", "vmib-vf:1");
        assert_gres(NODE(GPU("[H100]", "quarantined")), "vmib-vf:1", "vmib-vf:1");
        assert_gres(NODE(GPU("[H100]", "available")), "vmib-vf:1", "vmib-vf:1,vmgpu:h100:1");
        assert_gres(NODE(GPU("[H100]", "available")), "", "vmgpu:h100:1,vmib-vf:1");
        assert_gres("{\"pools\":[{\"name\":\"disk\"}]}", "vmgpu:8", "vmgpu:8");
        assert_gres("{\"pools\":[{\"name\":\"disk\"}],\"devices\":[{\"pool\":\"disk\",\"state\":\"available\"}]}", "",
                    "");
}

TEST(test_gres_of_slots) {
        static const char node[] = "{\"pools\":[{\"name\":\"ib-vf\",\"total\":4,\"endpoints\":null},{\"name\":"
                                   "\"remote\",\"total\":6,\"endpoints\":[{\"endpoint\":\"a:1\"}]}]}";

        assert_gres(node, NULL, "vmib-vf:0,vmremote:6");
        assert_gres(node, "vmremote:8", "vmremote:6");
}

TEST(test_gres_of_others) {
        static const char theirs[] =
                "{\"pools\":[{\"name\":\"gpu\",\"scheduler\":\"nova\"},{\"name\":\"vf\",\"scheduler\":"
                "\"none\"}],\"devices\":[{\"pool\":\"gpu\",\"state\":\"available\"},{\"pool\":\"vf\","
                "\"state\":\"available\"}]}";

        assert_gres(theirs, NULL, "vmgpu:0,vmvf:1");
        assert_gres(theirs, "vmgpu:8,vmvf:1", "vmvf:1");
}

#define CORE(index, status)        "{\"index\":" #index ",\"status\":[\"" status "\"]}"
#define SOCKET(index, cores)       "{\"index\":" #index ",\"cores\":[" cores "]}"
#define SHARE(name, cpus, sockets) "{\"name\":\"" name "\",\"cpus\":{\"count\":" #cpus "},\"sockets\":[" sockets "]}"
#define SHARES(nodes)              "{\"nodes\":{\"allocation\":[" nodes "]}}"
#define JOB(id, resources)         "{\"job_id\":" #id ",\"job_resources\":" resources "}"
#define JOBS(jobs)                 "{\"jobs\":[" jobs "]}"
#define FIRST_CORE                 SOCKET(0, CORE(0, "ALLOCATED") "," CORE(1, "UNALLOCATED"))

/* Checks the cores of job 7 on node n1. */
static void assert_cores(const char *json, int want, const char *cores, unsigned cpus) {
        _cleanup_free_ char *got = NULL;
        unsigned got_cpus = 0;

        assert_int_equal(cores_parse(json, strlen(json), 7, "n1", &got, &got_cpus), want);
        assert_true(streq_ptr(got, cores));
        assert_int_equal(got_cpus, cpus);
}

TEST(test_cores) {
        static const char *const wrong[] = {
                "",
                "{}",
                JOBS(""),
                JOBS(JOB(8, "null")),
                JOBS("{\"job_id\":7}"),
                JOBS(JOB(7, "{}")),
                JOBS(JOB(7, SHARES(SHARE("n2", 2, FIRST_CORE)))),
                JOBS(JOB(7, SHARES(SHARE("n1", 65536, FIRST_CORE)))),
                JOBS(JOB(7, SHARES(SHARE("n1", -1, FIRST_CORE)))),
                JOBS(JOB(7, SHARES(SHARE("n1", 1, "")))),
                JOBS(JOB(7, SHARES(SHARE("n1", 1, SOCKET(0, ""))))),
                JOBS(JOB(7, SHARES(SHARE("n1", 1, SOCKET(1, CORE(0, "ALLOCATED")))))),
                JOBS(JOB(7, SHARES(SHARE("n1", 1, SOCKET(0, CORE(1, "ALLOCATED")))))),
                JOBS(JOB(7, SHARES(SHARE("n1", 1, SOCKET(0, CORE(0, "?")))))),
        };

        assert_cores(JOBS(JOB(7, SHARES(SHARE("n1", 2, FIRST_CORE)))), 0, "0", 2);
        assert_cores(
                JOBS(JOB(6, "null") "," JOB(
                        7, SHARES(SHARE("n2", 2, FIRST_CORE) "," SHARE(
                                   "n1", 4, FIRST_CORE "," SOCKET(1, CORE(0, "ALLOCATED") "," CORE(1, "ALLOCATED")))))),
                0, "0,2-3", 4);
        assert_cores(JOBS(JOB(7, "null")), 0, NULL, 0);
        assert_cores(JOBS(JOB(7, SHARES(SHARE("n1", 0, SOCKET(0, CORE(0, "UNALLOCATED")))))), 0, NULL, 0);
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                assert_cores(wrong[i], -EBADMSG, NULL, 0);
}

/* More cores than a set holds. */
TEST(test_many_cores) {
        _cleanup_free_ char *cores = NULL, *json = NULL;
        size_t n;

        for (n = 0; n <= CPUSET_MAX; n++)
                assert_int_equal(string_append(&cores, ",", "{\"index\":%zu,\"status\":[\"ALLOCATED\"]}", n), 0);
        json = string_format(JOBS(JOB(7, SHARES(SHARE("n1", 1, SOCKET(0, "%s"))))), cores);
        assert_non_null(json);
        assert_cores(json, -EBADMSG, NULL, 0);
}
