/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the steps that stop and start services, those that turn on persistence mode, and those that act on several
 * devices at once: commands that clean devices, questions to NVIDIA's driver, attributes of the VFs of a PF. */

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "executor-run.h"
#include "host/pcipath.h"
#include "host/rootservice.h"
#include "host/vfattr.h"
#include "model/inventory.h"
#include "util/clock.h"
#include "util/strings.h"

/* Returns the time when 1/part of the job's time, counted from now, has passed: CLOCK_MONOTONIC, microseconds. */
static uint64_t job_deadline(const Run *run, unsigned part) {
        return clock_usec(CLOCK_MONOTONIC) + run->steps->timeout_sec * UINT64_C(1000000) / part;
}

int report_active_services(const Run *run) {
        int any = 0;

        for (const Step *s = run->steps->steps; s < step_list_end(run->steps); s++) {
                ServiceState *state = &step_result(run, s)->service;
                int r;

                if (s->kind != STEP_STOP_SERVICE)
                        continue;
                /* The limit of all stops is set before the first one, so the stops together get half of the job's
                 * time. */
                state->stop_by = job_deadline(run, 2);
                r = unit_read_use(s->service, state->stop_by, &state->use);
                if (r < 0) {
                        run_report(run, s, (Report) { .kind = REPORT_FAILED, .error = r });
                        return r;
                }
                if (state->use == UNIT_UNUSED)
                        continue;
                run_report(run, s, (Report) { .kind = REPORT_ACTIVE });
                any = 1;
        }
        return any;
}

int run_stop_service(const Run *run, const Step *s) {
        const ServiceState *state = &step_result(run, s)->service;

        return state->use != UNIT_UNUSED ? root_stop_unit(s->service, state->stop_by) : 0;
}

/* All starts together get a quarter of the job's time, each an equal part. After its part the run goes on, and systemd
 * continues the start. */
void service_start(const Run *run, const Step *s, UnitUse use) {
        const StepList *steps = run->steps;
        unsigned part, starts = 0;
        bool asked;
        int r;

        for (size_t k = 0; k < steps->n; k++)
                starts += steps->steps[k].kind == STEP_START_SERVICE;
        /* A start that was only queued before the run needs to be queued again only: one second is enough. */
        part = use == UNIT_QUEUED ? MAX(steps->timeout_sec, 1U) : 4 * MAX(starts, 1U);
        r = root_start_unit(s->service, job_deadline(run, part), &asked);
        run_report(run, s,
                   (Report) { .kind = asked ? REPORT_STARTED : REPORT_NOT_STARTED,
                              .error = asked && r == -ETIMEDOUT ? 0 : r });
}

/* Returns the use of the service before this list stopped it. If the list has no STEP_STOP_SERVICE for the service, an
 * earlier job has stopped it: returns UNIT_ACTIVE. */
static UnitUse use_before(const Run *run, const Step *start) {
        for (const Step *s = run->steps->steps; s < start; s++)
                if (s->kind == STEP_STOP_SERVICE && streq(s->service, start->service))
                        return step_result(run, s)->service.use;
        return UNIT_ACTIVE;
}

int run_start_service(const Run *run, const Step *s) {
        const UnitUse use = use_before(run, s);

        if (use != UNIT_UNUSED)
                service_start(run, s, use);
        return 0;
}

static bool is_clean_of(const Step *s, const char *pool) {
        return s->kind == STEP_CLEAN && streq(s->clean.pool, pool);
}

static bool is_first_clean(const StepList *steps, const Step *s) {
        for (const Step *earlier = steps->steps; earlier < s; earlier++)
                if (is_clean_of(earlier, s->clean.pool))
                        return false;
        return true;
}

/* Returns the number of commands of the list: one for each pool. */
static unsigned count_commands(const StepList *steps) {
        unsigned n = 0;

        for (const Step *s = steps->steps; s < step_list_end(steps); s++)
                n += s->kind == STEP_CLEAN && is_first_clean(steps, s);
        return n;
}

/* Cleans the devices of n steps with one command, and notes the result in each step. */
static int clean_devices(const Run *run, const Step *const *steps, size_t n) {
        _cleanup_free_ PciAddress *devices = calloc(n, sizeof(*devices));
        int status = 0, r;

        if (!devices)
                return -ENOMEM;
        for (size_t k = 0; k < n; k++)
                devices[k] = steps[k]->device;
        r = root_clean(steps[0]->clean.pool, devices, n, job_deadline(run, 2 * count_commands(run->steps)), &status);
        /* If one of the devices has left the pool, root_clean() refuses all of them. Clean the first device alone; the
         * steps of the others try again. */
        if (r == -EPERM && n > 1)
                return clean_devices(run, steps, 1);
        for (size_t k = 0; k < n; k++) {
                StepResult *done = step_result(run, steps[k]);

                done->shared = true;
                done->result = r > 0 ? -EREMOTEIO : r;
                done->status = status;
        }
        return r > 0 ? -EREMOTEIO : r;
}

int run_clean(const Run *run, const Step *s) {
        const Step *const end = step_list_end(run->steps);
        _cleanup_free_ const Step **steps = calloc((size_t) (end - s), sizeof(*steps));
        size_t n = 0;

        if (!steps)
                return -ENOMEM;
        if (step_result(run, s)->shared)
                return step_result(run, s)->result;
        for (const Step *t = s; t < end; t++)
                if (is_clean_of(t, s->clean.pool) && !run_leaves_out(run, t))
                        steps[n++] = t;
        return clean_devices(run, steps, n);
}

/* Time limit for each GPU: the driver takes seconds to initialize a GPU that no process has open. */
#define GPU_USEC 20000000U

/* Turns on persistence mode. A failure does not end the run: passthroughd-root only logs it. */
int run_persistence(const Run *run _unused_, const Step *s) {
        (void) root_set_persistence(s->device, clock_usec(CLOCK_MONOTONIC) + GPU_USEC);
        return 0;
}

/* Time limit for each GPU in persistence mode, which is initialized already. */
#define PERSISTENCE_USEC 3000000U

/*
 * The driver takes interrupts (MSI) when it initializes a GPU, and returns them when the last process closes a GPU that
 * is not in persistence mode (nv_shutdown_adapter() in its nv.c). So a GPU without interrupts is not in persistence
 * mode. Its driver is not asked, because the question would initialize the GPU.
 */
static bool may_be_persistent(const Sysfs *fs, const Step *s) {
        _cleanup_close_ int fd = s->kind == STEP_UNBIND && streq(s->unbind.driver, NVIDIA_DRIVER)
                                         ? sysfs_open(fs, PCI_PATH(s->device, "msi_irqs"), O_PATH | O_DIRECTORY)
                                         : -EINVAL;

        return fd >= 0;
}

typedef int (*Question)(const PciAddress *gpus, size_t n, uint64_t end, int32_t *results);

/* Asks passthroughd-root about GPUs, at most ROOT_GPUS_MAX in one question. If passthroughd-root itself hangs in the
 * driver, the first GPU of the question gets -ETIMEDOUT. After a GPU with -ETIMEDOUT no further GPU is asked about. */
static void ask_driver(Question ask, uint64_t usec, const PciAddress *gpus, size_t n, int32_t *results) {
        size_t part;

        for (size_t i = 0; i < n; i += part) {
                uint64_t end;
                int r;

                part = MIN(n - i, ROOT_GPUS_MAX);
                end = clock_usec(CLOCK_MONOTONIC) + part * usec;
                r = ask(&gpus[i], part, end, &results[i]);
                if (r == -EHOSTDOWN && clock_usec(CLOCK_MONOTONIC) >= end)
                        results[i] = r = -ETIMEDOUT;
                if (r == -ETIMEDOUT)
                        return;
        }
}

/* GPUs of several steps, for a question about all of them. */
typedef struct Gpus {
        PciAddress *devices;
        const Step **steps;
        int32_t *results;
        size_t n;
} Gpus;

static void cleanup_gpus(Gpus *g) {
        free(g->devices);
        free(g->steps);
        free(g->results);
}

static bool gpus_allocate(const Run *run, Gpus *g) {
        g->devices = calloc(run->steps->n, sizeof(*g->devices));
        g->steps = calloc(run->steps->n, sizeof(*g->steps));
        g->results = calloc(run->steps->n, sizeof(*g->results));
        return g->devices && g->steps && g->results;
}

static void gpus_add(Gpus *g, const Step *s) {
        g->devices[g->n] = s->device;
        g->steps[g->n++] = s;
}

int report_persistent_gpus(const Run *run) {
        const Step *const end = step_list_end(run->steps);
        _cleanup_(cleanup_gpus) Gpus gpus = { 0 };
        int any = 0;

        if (!gpus_allocate(run, &gpus))
                return 0;
        for (const Step *s = run->steps->steps; s < end; s++)
                if (may_be_persistent(run->fs, s))
                        gpus_add(&gpus, s);
        if (gpus.n == 0)
                return 0;
        run_begin(run, gpus.steps[0], DOING_READ);
        ask_driver(root_read_persistence, PERSISTENCE_USEC, gpus.devices, gpus.n, gpus.results);
        for (size_t i = 0; i < gpus.n; i++) {
                if (gpus.results[i] <= 0)
                        continue;
                run_report(run, gpus.steps[i], (Report) { .kind = REPORT_PERSISTENT });
                any = 1;
        }
        return any;
}

/* Checks the GPU of this step, and with the same question those of all later STEP_CHECK_GPU. */
int run_check_gpu(const Run *run, const Step *s) {
        const Step *const end = step_list_end(run->steps);
        _cleanup_(cleanup_gpus) Gpus gpus = { 0 };

        if (step_result(run, s)->shared)
                return step_result(run, s)->result;
        if (!gpus_allocate(run, &gpus))
                return -ENOMEM;
        for (const Step *t = s; t < end; t++)
                if (t->kind == STEP_CHECK_GPU && !run_leaves_out(run, t))
                        gpus_add(&gpus, t);
        ask_driver(root_check_health, GPU_USEC, gpus.devices, gpus.n, gpus.results);
        for (size_t k = 0; k < gpus.n; k++) {
                StepResult *done = step_result(run, gpus.steps[k]);

                done->shared = true;
                /* A result for which step_cause() has no sentence says nothing about the GPU. If passthroughd-root has
                 * refused the question, it has logged why. */
                done->result = step_cause(gpus.steps[k], gpus.results[k]) ? gpus.results[k] : 0;
        }
        return step_result(run, s)->result;
}

/* The changes of the VFs of consecutive steps. All VFs are of one PF. */
typedef struct Identities {
        const Run *run;
        const VfChange *first;
        const Step *step; /* the step of *first */
} Identities;

static void report_identity(const VfChange *c, VfMoment moment, void *userdata) {
        const Identities *p = userdata;
        const Step *s = p->step + (c - p->first);
        StepResult *done = step_result(p->run, s);

        switch (moment) {
        case VF_LOOKING:
                run_begin(p->run, s, DOING_READ);
                break;
        case VF_WRITING:
                done->begun = true;
                run_begin(p->run, s, DOING_STEP);
                break;
        case VF_DONE:
                done->reported = true;
                done->found = c->had;
                done->changed = c->result > 0;
                done->device_failed = c->result < 0;
                if (done->device_failed)
                        run_report_device_failed(p->run, s, c->result);
                break;
        }
}

int run_try_attributes(const Run *run, const Step *s) {
        const Step *const end = step_list_end(run->steps);
        _cleanup_free_ VfChange *changes = calloc((size_t) (end - s), sizeof(*changes));
        size_t n = 0;

        if (!changes)
                return -ENOMEM;
        for (; s + n < end && s[n].kind == STEP_TRY_ATTRIBUTES && pci_address_equal(s[n].device, s->device); n++)
                changes[n] = (VfChange) { .vf = s[n].vf.index, .wanted = s[n].vf.attributes, .only_offered = true };
        vf_attributes_write(run->fs, s->device, changes, n, report_identity, &(Identities) { run, changes, s });
        return 0;
}
