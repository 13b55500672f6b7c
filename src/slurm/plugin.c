/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * passthrough.so, a SPANK plugin of Slurm: the option --passthrough, the allocation of a job before it starts and its
 * release afterwards, and the environment of its steps. passthrough-slurm(7) is its manual.
 */
#include <errno.h>
#include <slurm/spank.h>
#include <stdio.h>

#include "controller.h"
#include "cores.h"
#include "handout.h"
#include "request.h"
#include "reservation.h"
#include "settings.h"
#include "util/strings.h"

/* Slurm finds the following symbols by name. All other symbols of this plugin are hidden. */
#pragma GCC visibility push(default)
/* cppcheck-suppress unknownMacro */
SPANK_PLUGIN(passthrough, 1)
extern spank_f slurm_spank_init, slurm_spank_job_prolog, slurm_spank_init_post_opt, slurm_spank_job_epilog;
#pragma GCC visibility pop

/* Checks the value of --passthrough in the program that the user runs: sbatch, srun or salloc. */
static int on_option(int value, const char *text, int remote) {
        _cleanup_job_request_ JobRequest request = { 0 };
        _cleanup_free_ char *sentence = NULL;

        if (remote || job_request_parse(text, &request, &sentence) == 0)
                return ESPANK_SUCCESS;
        slurm_error("passthrough: %s", sentence ? sentence : "Out of memory.");
        return ESPANK_BAD_ARG;
}

static char option_name[] = "passthrough", option_argument[] = "POOL=COUNT[,POOL=COUNT...]",
            option_usage[] = "Devices of the node for the virtual machine of this job";
static struct spank_option option = {
        .name = option_name, .arginfo = option_argument, .usage = option_usage, .has_arg = 1, .cb = on_option
};

/* Returns the value of --passthrough; NULL: the job does not use the option. */
static const char *option_value(spank_t spank) {
        char *value = NULL;

        return spank_option_getopt(spank, &option, &value) == ESPANK_SUCCESS ? value : NULL;
}

static int read_settings(int argc, char **argv, Settings *ret) {
        const char *wrong;

        if (settings_parse(argc, argv, ret, &wrong) == 0)
                return 0;
        slurm_error("passthrough: plugstack.conf: unknown argument '%s'", wrong);
        return -EINVAL;
}

int slurm_spank_init(spank_t spank, int argc, char **argv) {
        return spank_context() == S_CTX_SLURMD ? ESPANK_SUCCESS : (int) spank_option_register(spank, &option);
}

/* Returns the name of this node in slurm.conf. "": unknown. */
static const char *node_name(void) {
        /* cppcheck-suppress getenv ; set by slurmd for prolog and epilog */
        const char *name = getenv("SLURMD_NODENAME");

        return name ? name : "";
}

static const char *or_no_memory(const char *sentence) {
        return sentence ? sentence : "Out of memory.";
}

/* Writes the files of the job, from which its steps get their environment. */
static Outcome hand_out(const Settings *settings, const SlurmJob *job, uid_t uid, char **ret_sentence) {
        _cleanup_free_ char *document = NULL, *devices = NULL;
        char name[RESERVATION_NAME_MAX];
        Outcome outcome = reservation_describe(settings, job->id, reservation_has_guest(job) ? &document : NULL,
                                               &devices, ret_sentence);
        int r;

        if (outcome != OUTCOME_DONE)
                return outcome;
        reservation_name(job->id, name);
        r = handout_write(settings->directory, name, uid, document, devices ? devices : "");
        if (r == 0) {
                /* The job may have been canceled meanwhile. Its epilog may then have released the allocation already,
                 * and found no files to remove. */
                outcome = reservation_check(settings, job->id, ret_sentence);
                if (outcome != OUTCOME_DONE)
                        (void) handout_remove(settings->directory, name);
                return outcome;
        }
        (void) string_replace(ret_sentence, "Cannot write the files of the job in %s: %s.", settings->directory,
                              strerror(-r));
        return OUTCOME_BROKEN;
}

static Outcome reserve(const Settings *settings, const SlurmJob *job, uid_t uid, const char *text,
                       char **ret_sentence) {
        _cleanup_job_request_ JobRequest request = { 0 };
        _cleanup_free_ char *cpus = NULL;
        Outcome outcome;
        int r;

        if (job_request_parse(text, &request, ret_sentence) < 0 ||
            job_request_check(&request, job->gres, ret_sentence) < 0)
                return OUTCOME_INVALID;
        r = job->cores ? cpus_of_slurm_cores(settings->root, job->cores, &cpus) : 0;
        if (r < 0) {
                (void) string_replace(ret_sentence, "Cannot find the cores %s of Slurm on this machine: %s.",
                                      job->cores, strerror(-r));
                return OUTCOME_BROKEN;
        }
        outcome = reservation_make(settings, job, uid, &request, cpus, ret_sentence);
        return outcome == OUTCOME_DONE ? hand_out(settings, job, uid, ret_sentence) : outcome;
}

/* Removes the job from the node and tells its owner. OUTCOME_BROKEN also drains the node. 0 or a negative errno. */
static int refuse(const SlurmJob *job, Outcome outcome, const char *sentence) {
        _cleanup_free_ char *reason = string_format("passthroughd: %s", or_no_memory(sentence));
        int r = reason ? 0 : -ENOMEM;

        if (r != 0)
                return r;
        if (outcome == OUTCOME_BROKEN)
                r = controller_drain(node_name(), reason);
        if (r != 0)
                return r;
        return controller_refuse_job(job, outcome == OUTCOME_INVALID, reason);
}

/* A return value other than 0 makes Slurm drain the node with a reason of its own. It is returned if plugstack.conf has
 * a wrong argument, the job cannot be read, or slurmctld does not take the refusal. */
int slurm_spank_job_prolog(spank_t spank, int argc, char **argv) {
        _cleanup_slurm_job_ SlurmJob job = { 0 };
        _cleanup_free_ char *sentence = NULL;
        const char *text = option_value(spank);
        Settings settings;
        Outcome outcome;
        uint32_t id;
        uid_t uid;

        if (!text)
                return 0;
        if (read_settings(argc, argv, &settings) < 0 || spank_get_item(spank, S_JOB_ID, &id) != ESPANK_SUCCESS ||
            spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS)
                return -1;
        controller_init();
        if (controller_load_job(id, node_name(), &job, &sentence) < 0) {
                slurm_error("passthrough: %s", or_no_memory(sentence));
                return -1;
        }
        if (job.is_over)
                return 0;
        outcome = reserve(&settings, &job, uid, text, &sentence);
        if (outcome == OUTCOME_DONE) {
                slurm_info("passthrough: job %u: %s is allocated to uid %u", id, text, uid);
                return 0;
        }
        slurm_error("passthrough: job %u: %s", id, or_no_memory(sentence));
        return refuse(&job, outcome, sentence) < 0 ? -1 : 0;
}

int slurm_spank_job_epilog(spank_t spank, int argc, char **argv) {
        _cleanup_free_ char *sentence = NULL, *reason = NULL;
        char name[RESERVATION_NAME_MAX];
        Settings settings;
        Outcome outcome;
        uint32_t id;

        if (!option_value(spank))
                return 0;
        if (read_settings(argc, argv, &settings) < 0 || spank_get_item(spank, S_JOB_ID, &id) != ESPANK_SUCCESS)
                return -1;
        reservation_name(id, name);
        outcome = reservation_release(&settings, id, &sentence);
        /* Remove the files last: a prolog that still runs writes its files first and then checks that the allocation
         * exists. */
        (void) handout_remove(settings.directory, name);
        if (outcome == OUTCOME_DONE)
                return 0;
        slurm_error("passthrough: job %u: %s", id, or_no_memory(sentence));
        reason = string_format("passthroughd: %s", or_no_memory(sentence));
        if (outcome != OUTCOME_BROKEN)
                return 0;
        controller_init();
        return reason && controller_drain(node_name(), reason) == 0 ? 0 : -1;
}

static int set_variable(const char *variable, const char *value, void *userdata) {
        return spank_setenv(userdata, variable, value, 1) == ESPANK_SUCCESS ? 0 : -EIO;
}

/* Adds the variables of the job to the environment of a step. Runs in slurmstepd, before it drops root. */
int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv) {
        char name[RESERVATION_NAME_MAX];
        Settings settings;
        uint32_t id;
        int r;

        if (spank_context() != S_CTX_REMOTE)
                return 0;
        if (read_settings(argc, argv, &settings) < 0 || spank_get_item(spank, S_JOB_ID, &id) != ESPANK_SUCCESS)
                return -1;
        reservation_name(id, name);
        r = handout_read(settings.directory, name, set_variable, spank);
        if (r == 0 || r == -ENOENT)
                return 0;
        slurm_error("passthrough: job %u: cannot read its variables: %s", id, strerror(-r));
        return -1;
}
