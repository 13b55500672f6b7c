/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls to slurmctld by libslurm. */
#include <errno.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>

#include "controller.h"
#include "cores.h"
#include "util/strings.h"

#define MEBIBYTE UINT64_C(1048576)

void controller_init(void) {
        slurm_init(NULL);
}

/* Returns the argument that names a job in calls of libslurm. Its type differs between releases: src/slurm/features
 * detects the one of the installed headers. */
#ifdef SLURM_HAS_CALLS_BY_ID
static slurm_step_id_t job_of(uint32_t id) {
        slurm_step_id_t job = SLURM_STEP_ID_INITIALIZER;

        job.job_id = id;
        return job;
}
#else
static uint32_t job_of(uint32_t id) {
        return id;
}
#endif

static void set_job(job_desc_msg_t *change, uint32_t id) {
#ifdef SLURM_HAS_CHANGE_BY_ID
        change->step_id.job_id = id;
#else
        change->job_id = id;
#endif
}

static void free_conf(slurm_conf_t *conf) {
#ifdef SLURM_HAS_FREE_CONF
        slurm_free_conf(conf);
#else
        slurm_free_ctl_conf(conf);
#endif
}

/* Casts const away: libslurm's messages have char pointers, but libslurm does not write to these texts. */
static char *text_of(const char *s) {
        return (char *) (uintptr_t) s;
}

/* Finds the job in a reply, which has all jobs of a job array. NULL: not in the reply. */
static const job_info_t *find_job(const job_info_msg_t *message, uint32_t id) {
        for (uint32_t i = 0; i < message->record_count; i++)
                if (message->job_array[i].job_id == id)
                        return &message->job_array[i];
        return NULL;
}

/* Returns the index of a node in the list of the job's nodes, or -1. */
static int find_node(const job_info_t *info, const char *node) {
        __auto_type list = slurm_hostlist_create(info->nodes); /* a pointer, which some releases hide in a typedef */
        int i = list ? slurm_hostlist_find(list, node) : -1;

        slurm_hostlist_destroy(list);
        return i;
}

/* Reads the job's cores on the node (NULL: none) and the number of its CPUs there. */
#ifdef SLURM_HAS_JOB_CORES
/* In bytes. The longest list of cores below CPUSET_MAX, every second one, is shorter. */
#define CORE_LIST_MAX 32768U

/* Reads the cores from libslurm, whose structures number cores, even where they call them CPUs. */
static int load_cores(const job_info_t *info, const char *node, char **ret_cores, unsigned *ret_cpus) {
        char list[CORE_LIST_MAX];
        int cpus;

        if (!info->job_resrcs ||
            slurm_job_cpus_allocated_str_on_node(list, sizeof(list), info->job_resrcs, node) != SLURM_SUCCESS || !*list)
                return 0;
        cpus = slurm_job_cpus_allocated_on_node(info->job_resrcs, node);
        *ret_cpus = (unsigned) MAX(cpus, 0);
        return string_copy(ret_cores, list);
}
#else
static int load_cores(const job_info_t *info, const char *node, char **ret_cores, unsigned *ret_cpus) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = scontrol_show_job(info->job_id, &text, &size);

        return r < 0 ? r : cores_parse(text, size, info->job_id, node, ret_cores, ret_cpus);
}
#endif

/* Reads the description of a node. NULL: slurmctld does not reply, or does not know the node. */
static node_info_msg_t *load_node(const char *node) {
        node_info_msg_t *message = NULL;

        if (slurm_load_node_single(&message, text_of(node), 0) == SLURM_SUCCESS && message->record_count > 0)
                return message;
        slurm_free_node_info_msg(message);
        return NULL;
}

/* Returns the memory that the node has for jobs: a job whose pn_min_memory is 0 gets all of it. Returns 0 if Slurm does
 * not count memory, or slurmctld does not describe the node. */
static uint64_t find_all_memory(const job_info_t *info, const char *node) {
        node_info_msg_t *message =
                info->tres_alloc_str && strstr(info->tres_alloc_str, "mem=") ? load_node(node) : NULL;
        uint64_t memory = 0;

        if (message)
                memory = message->node_array[0].real_memory - message->node_array[0].mem_spec_limit;
        slurm_free_node_info_msg(message);
        return memory * MEBIBYTE;
}

/* Returns the memory of the job on the node. --mem-per-cpu applies to all CPUs that the job has, including those it got
 * because Slurm allocates whole cores. */
static uint64_t find_memory(const job_info_t *info, const char *node, unsigned cpus) {
        if (info->pn_min_memory == 0)
                return find_all_memory(info, node);
        if (!(info->pn_min_memory & MEM_PER_CPU))
                return info->pn_min_memory * MEBIBYTE;
        return (info->pn_min_memory & ~MEM_PER_CPU) * cpus * MEBIBYTE;
}

/* Returns true unless the job runs or is suspended: it has ended, its epilogs run, or it is pending again. */
static bool is_over(const job_info_t *info) {
        uint32_t state = info->job_state & JOB_STATE_BASE;

        return (state != JOB_RUNNING && state != JOB_SUSPENDED) || info->job_state & JOB_COMPLETING;
}

static int take_job(const job_info_t *info, const char *node, SlurmJob *ret, char **ret_sentence) {
        _cleanup_slurm_job_ SlurmJob job = { .id = info->job_id,
                                             .restarts = info->restart_cnt,
                                             .submitted = info->submit_time,
                                             .is_over = is_over(info),
                                             .can_requeue = info->batch_flag && info->requeue };
        unsigned cpus = 0;
        int i = find_node(info, node), r = load_cores(info, node, &job.cores, &cpus);

        if (r == -ENOENT)
                (void) string_replace(ret_sentence,
                                      "Cannot find the cores of job %u: there is no scontrol in ../bin beside "
                                      "slurmstepd. Install slurm-client.",
                                      info->job_id);
        else if (r < 0)
                (void) string_replace(ret_sentence,
                                      "Cannot find the cores of job %u: 'scontrol --json show job %u' failed or has "
                                      "another format (%s).",
                                      info->job_id, info->job_id, strerror(-r));
        else if (i >= 0 && (uint32_t) i < info->gres_detail_cnt)
                r = string_copy(&job.gres, info->gres_detail_str[i]);
        if (r < 0)
                return r;
        job.memory = find_memory(info, node, cpus);
        *ret = job;
        job = (SlurmJob) { 0 };
        return 0;
}

int controller_load_job(uint32_t id, const char *node, SlurmJob *ret, char **ret_sentence) {
        job_info_msg_t *message = NULL;
        const job_info_t *info = NULL;
        int r = -EIO;

        if (slurm_load_job(&message, job_of(id), SHOW_DETAIL) == SLURM_SUCCESS)
                info = find_job(message, id);
        if (info)
                r = take_job(info, node, ret, ret_sentence);
        else
                (void) string_replace(ret_sentence, "slurmctld does not describe job %u: %s.", id,
                                      slurm_strerror(errno));
        slurm_free_job_info_msg(message);
        return r;
}

void slurm_job_done(SlurmJob *job) {
        free(job->cores);
        free(job->gres);
        *job = (SlurmJob) { 0 };
}

/* Tells the owner of a job, in its AdminComment and, with notify, on the job's terminal or in its output. */
static void tell_owner(uint32_t id, bool notify, const char *sentence) {
        job_desc_msg_t change;

        slurm_init_job_desc_msg(&change);
        set_job(&change, id);
        change.admin_comment = text_of(sentence);
        (void) slurm_update_job(&change);
        if (notify)
                (void) slurm_notify_job(job_of(id), text_of(sentence));
}

/* Converts a result of libslurm to 0 or -EIO. A job that has ended meanwhile, or is pending again, is no failure. */
static int result_of(int r) {
        if (r == SLURM_SUCCESS || errno == ESLURM_ALREADY_DONE || errno == ESLURM_INVALID_JOB_ID ||
            errno == ESLURM_JOB_PENDING)
                return 0;
        return -EIO;
}

/*
 * Returns true when the job is over, as is_over() says. Check before a requeue: Slurm would also requeue a job that is
 * being canceled.
 */
static bool has_ended(uint32_t id) {
        job_info_msg_t *message = NULL;
        const job_info_t *info = NULL;
        bool ended;

        if (slurm_load_job(&message, job_of(id), SHOW_ALL) == SLURM_SUCCESS)
                info = find_job(message, id);
        ended = info && is_over(info);
        slurm_free_job_info_msg(message);
        return ended;
}

int controller_refuse_job(const SlurmJob *job, bool hold, const char *sentence) {
        if (has_ended(job->id))
                return 0;
        tell_owner(job->id, !job->can_requeue, sentence);
        if (job->can_requeue && result_of(slurm_requeue(job_of(job->id), hold ? JOB_REQUEUE_HOLD : 0)) == 0)
                return 0;
        return result_of(slurm_kill_job(job_of(job->id), SIGKILL, 0));
}

int controller_terminate_job(uint32_t id, const char *sentence) {
        if (has_ended(id))
                return 0;
        tell_owner(id, true, sentence);
        return result_of(slurm_kill_job(job_of(id), SIGTERM, KILL_FULL_JOB));
}

static bool is_drained(const char *node) {
        node_info_msg_t *message = load_node(node);
        bool drained = message && message->node_array[0].node_state & NODE_STATE_DRAIN;

        slurm_free_node_info_msg(message);
        return drained;
}

int controller_drain(const char *node, const char *sentence) {
        update_node_msg_t change;

        if (is_drained(node))
                return 0;
        slurm_init_update_node_msg(&change);
        change.node_names = text_of(node);
        change.node_state = NODE_STATE_DRAIN;
        change.reason = text_of(sentence);
        return slurm_update_node(&change) == SLURM_SUCCESS ? 0 : -EIO;
}

int controller_load_gres(const char *node, char **ret_gres, char **ret_types) {
        node_info_msg_t *message = load_node(node);
        slurm_conf_t *conf = NULL;
        int r = message ? string_copy(ret_gres, message->node_array[0].gres ?: "") : -EIO;

        if (r == 0)
                r = slurm_load_ctl_conf(0, &conf) == SLURM_SUCCESS ? string_copy(ret_types, conf->gres_plugins ?: "")
                                                                   : -EIO;
        free_conf(conf);
        slurm_free_node_info_msg(message);
        return r;
}

int controller_set_gres(const char *node, const char *gres) {
        update_node_msg_t change;

        slurm_init_update_node_msg(&change);
        change.node_names = text_of(node);
        change.gres = text_of(gres);
        return slurm_update_node(&change) == SLURM_SUCCESS ? 0 : -EIO;
}

static bool is_on_node(const job_info_t *info, const char *node) {
        return (!is_over(info) || info->job_state & JOB_COMPLETING) && find_node(info, node) >= 0;
}

int controller_has_job(uint32_t id, const char *node) {
        job_info_msg_t *message = NULL;
        const job_info_t *info;
        int r;

        if (slurm_load_job(&message, job_of(id), SHOW_ALL) != SLURM_SUCCESS)
                return errno == ESLURM_INVALID_JOB_ID ? 0 : -EIO;
        info = find_job(message, id);
        r = info && is_on_node(info, node);
        slurm_free_job_info_msg(message);
        return r;
}
