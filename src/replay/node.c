/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads a recorded machine and serves the D-Bus methods for it, except those that change hardware. */

#include "node.h"

#include <errno.h>
#include <stdio.h>
#include <systemd/sd-id128.h>

#include "host/configfiles.h"
#include "host/critical.h"
#include "host/hoststate.h"
#include "host/nvidia.h"
#include "host/scan.h"
#include "plan/vfidentity.h"
#include "root.h"
#include "util/log.h"
#include "util/strings.h"

struct ReplayNode {
        HostState node;
        uint64_t generation; /* generation of the newest allocation */
        bool measured;       /* the D-Bus server was told the capacity, and no allocation was made since */
        uint32_t job;        /* id of the last job; a job is finished as soon as it is created */
};

static _printf_(3, 4) int fail(int error, char **ret_problem, const char *format, ...) {
        *ret_problem = FORMAT_ARGUMENTS(format);
        return error;
}

static int read_config(HostState *n, const char *root, bool of_daemon, const char *file, char **ret_problem) {
        int r = config_files_load(of_daemon ? "/" : root, file, false, &n->config);

        if (r < 0)
                return fail(r, ret_problem, "The configuration could not be read: %s.", strerror(-r));
        /* The daemon does without a missing configuration. A file that the user named must exist. */
        if (of_daemon || !file)
                return 0;
        if (n->config->unreadable)
                return fail(-EIO, ret_problem, "%s", n->config->unreadable);
        if (n->config->n_files == 0)
                return fail(-ENOENT, ret_problem, "There is no configuration %s.", file);
        return 0;
}

/* Reads the devices, marks those that the host needs, and adds the VFs that the daemon would create. 0 or a negative
 * errno. */
static int read_inventory(const HostState *n, const Sysfs *fs, Inventory **ret) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = NULL;
        int r = scan_inventory(fs, &inv);

        if (r < 0)
                return r;
        /* Only on a recorded machine: on the running one NVIDIA's driver may take long to answer. */
        if (sysfs_root(fs)[0])
                nvidia_read_memories(fs, inv);
        r = critical_mark(fs, n->config, inv);
        if (r < 0)
                return r;
        r = policy_expect_vfs(n->config, inv);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(inv);
        return r;
}

static int read_facts(HostState *n, const char *root) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        Inventory *inv, *old;
        int r = sysfs_new_recorded(root, &fs);

        if (r < 0)
                return r;
        r = host_state_read_machine_id(n, fs);
        if (r < 0)
                return r;
        r = read_inventory(n, fs, &inv);
        return r < 0 ? r : host_state_take_inventory(n, fs, inv, &old);
}

int replay_read_facts(HostState *n, const char *node, const char *root, char **ret_problem) {
        int r = read_facts(n, root);

        return r < 0 ? fail(r, ret_problem, "The recorded node %s could not be read: %s.", node, strerror(-r)) : 0;
}

int replay_read(HostState *n, const char *node, const char *root, bool of_daemon, const char *config,
                char **ret_problem) {
        int r = read_config(n, root, of_daemon, config, ret_problem);

        return r < 0 ? r : replay_read_facts(n, node, root, ret_problem);
}

/* Sets the names of GPUs. replay_read() does not do this, because it also reads the running machine, on which NVIDIA's
 * driver may take long to answer. */
static int name_gpus(HostState *n, const char *root) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        int r = sysfs_new_recorded(root, &fs);

        return r < 0 ? r : nvidia_read_names(fs, n->inventory);
}

static int check_config(const HostState *n, char **ret_problem) {
        const Refusal *conflict = &n->policy->conflict;

        if (conflict->verdict != VERDICT_NONE)
                return fail(-EINVAL, ret_problem, "%s %s", conflict->message, conflict->remedy);
        return 0;
}

/* Warns if the configuration wants VFs on PFs, but the recording has none there and policy_expect_vfs() could not add
 * them. */
static void warn_of_missing_vfs(const Policy *policy) {
        const Inventory *inv = policy->inventory;
        _cleanup_refusal_ Refusal why = { 0 };
        const PciDevice *first = NULL;
        unsigned n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (inv->devices[i].n_vfs == 0 && policy_vf_pool(policy, &inv->devices[i])) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (n == 0)
                return;
        (void) policy_check_vf_number(policy, first, policy_vf_pool(policy, first), &why);
        log_warning("The configuration (VirtualFunctions=) wants VFs on %s%s. The recorded node has none there, "
                    "so plans do not use any: %s",
                    PCI_ADDRESS_STR(first->address), AND_MORE(n - 1),
                    why.message ?: "it lacks the facts to tell their addresses.");
}

void replay_node_warn(const ReplayNode *n, const char *node) {
        const Config *config = n->node.config;

        config_log_problems(config);
        if (config->n_files == 0 && !config->unreadable)
                log_notice("There is no passthroughd.conf in %s: no device is in a pool. Name one with --config FILE.",
                           node);
        for (size_t i = 0; i < n->node.policy->n_problems; i++)
                log_warning("%s", n->node.policy->problems[i]);
        warn_of_missing_vfs(n->node.policy);
}

int replay_node_load(const char *node, const char *config, ReplayNode **ret, char **ret_problem) {
        _cleanup_(cleanup_replay_node_free) ReplayNode *n = calloc(1, sizeof(*n));
        _cleanup_root_ Root root = { 0 };
        int r;

        if (!n)
                return -ENOMEM;
        n->node.ledger = ledger_new();
        if (!n->node.ledger)
                return -ENOMEM;
        r = root_open(&root, node, ret_problem);
        if (r < 0)
                return r;
        r = replay_read(&n->node, node, root.dir, false, config, ret_problem);
        if (r < 0)
                return r;
        r = check_config(&n->node, ret_problem);
        if (r < 0)
                return r;
        r = name_gpus(&n->node, root.dir);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(n);
        return 0;
}

ReplayNode *replay_node_free(ReplayNode *n) {
        if (!n)
                return NULL;
        host_state_done(&n->node);
        free(n);
        return NULL;
}

static HostView on_view(void *userdata) {
        const ReplayNode *n = userdata;

        return host_state_view(&n->node);
}

/* Serves Allocate: plans and claims. There is no hardware to prepare, so the allocation is ready at once. */
static Verdict on_allocate(void *userdata, const char *name, const Request *request, uint32_t owner, uint32_t *ret_job,
                           Refusal *ret) {
        ReplayNode *n = userdata;
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        HostView view = on_view(n);
        sd_id128_t id;
        Verdict v = allocation_name_check(name, ret);

        if (v == VERDICT_NONE)
                v = plan_make(&view, request, &plan, ret);
        if (v != VERDICT_NONE)
                return v;
        if (string_copy(&plan->allocation->name, name) < 0 || sd_id128_randomize(&id) < 0)
                return refuse_no_memory(ret);
        (void) sd_id128_to_uuid_string(id, plan->allocation->id);
        plan->allocation->owner = owner;
        plan->allocation->generation = n->generation + 1;
        plan->allocation->state = ALLOCATION_READY;
        v = host_state_assign_identities(&n->node, plan->allocation, ret);
        if (v == VERDICT_NONE)
                v = ledger_claim(n->node.ledger, n->node.inventory, n->node.config, plan->allocation, ret);
        if (v != VERDICT_NONE)
                return v;
        plan->allocation = NULL; /* the ledger owns it */
        n->measured = false;
        n->generation++;
        *ret_job = ++n->job;
        return VERDICT_NONE;
}

static Verdict refuse_change(Refusal *ret) {
        return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Ask the daemon on the node itself.",
                      "This is a recorded node, which cannot be changed.");
}

static Verdict on_release(void *userdata, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        return refuse_change(ret);
}

/* Always allows a guest to run: the devices of a recording keep their recorded drivers, so bindings prove nothing. */
static Verdict on_check_runnable(void *userdata, const char *name, Refusal *ret) {
        return VERDICT_NONE;
}

static Verdict on_set_virtual_functions(void *userdata, PciAddress pf, unsigned count, uint32_t *ret_job,
                                        Refusal *ret) {
        return refuse_change(ret);
}

static Verdict on_rescan(void *userdata, Refusal *ret) {
        return refuse_change(ret);
}

static Verdict on_reload(void *userdata, Refusal *ret) {
        return refuse_change(ret);
}

static Verdict on_clear_quarantine(void *userdata, PciAddress device, uint32_t *ret_job, Refusal *ret) {
        return refuse_change(ret);
}

static Capacity *on_measure(void *userdata) {
        ReplayNode *n = userdata;
        HostView view = on_view(n);

        if (n->measured)
                return NULL;
        n->measured = true;
        return capacity_new(&view, NULL);
}

static bool on_find_job(void *userdata, uint32_t id, JobView *ret) {
        return false;
}

static size_t on_list_jobs(void *userdata, uint32_t *ret_ids, size_t max) {
        return 0;
}

static const JobTime *on_list_job_times(void *userdata, size_t *ret_n) {
        *ret_n = 0;
        return NULL;
}

const ServerCallbacks replay_node_callbacks = {
        .view = on_view,
        .allocate = on_allocate,
        .release = on_release,
        .check_runnable = on_check_runnable,
        .prepare = on_release,
        .accept = on_release,
        .set_virtual_functions = on_set_virtual_functions,
        .clear_quarantine = on_clear_quarantine,
        .rescan = on_rescan,
        .reload = on_reload,
        .measure = on_measure,
        .find_job = on_find_job,
        .list_jobs = on_list_jobs,
        .list_job_times = on_list_job_times,
};
