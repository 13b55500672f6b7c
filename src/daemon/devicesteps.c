/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a job does with each of its devices. */

#include <errno.h>

#include "job.h"
#include "util/strings.h"

void job_note_begun(Job *job, const Step *step, Doing doing) {
        const StepList *steps = job->steps;
        const bool alone = doing == DOING_READ || step->chain == 0 || steps->parallel <= 1;

        if (alone)
                memset(job->ongoing, 0, (steps->n_chains + 1) * sizeof(*job->ongoing));
        job->ongoing[0] = (Ongoing) { 0 };
        job->ongoing[alone ? 0 : step->chain] = (Ongoing) { step, doing };
}

void job_note_ended(Job *job, const Step *step) {
        job->ongoing[0] = job->ongoing[step->chain] = (Ongoing) { 0 };
}

/* A device is in the list once. */
static int add_device_step(DeviceStep **list, size_t *n, const char *prefix, const Step *step, Doing doing) {
        _cleanup_free_ char *text = NULL;
        DeviceStep new;

        if (!step || !step_has_device(step))
                return 0;
        for (size_t i = 0; i < *n; i++)
                if (pci_address_equal((*list)[i].device, step->device))
                        return 0;
        text = job_stuck_describe(&(JobStuck) { .step = step, .doing = doing });
        new = (DeviceStep) { step->device, text ? string_format("%s%s", prefix, text) : NULL };
        if (!new.text || ARRAY_RESERVE(*list, *n) < 0) {
                free(new.text);
                return -ENOMEM;
        }
        (*list)[(*n)++] = new;
        return 0;
}

static int compare_device_steps(const void *a, const void *b) {
        return pci_address_compare(((const DeviceStep *) a)->device, ((const DeviceStep *) b)->device);
}

int job_device_steps(const Job *job, DeviceStep **ret, size_t *ret_n) {
        DeviceStep *list = NULL;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < job->n_stuck; i++)
                r = add_device_step(&list, &n, "stuck: ", job->stuck[i].step, job->stuck[i].doing);
        for (size_t i = 0; r == 0 && !job->has_result && i <= job->steps->n_chains; i++)
                r = add_device_step(&list, &n, "", job->ongoing[i].step, job->ongoing[i].doing);
        if (r < 0) {
                device_steps_free(list, n);
                return r;
        }
        if (n > 0)
                qsort(list, n, sizeof(*list), compare_device_steps);
        *ret = list;
        *ret_n = n;
        return 0;
}
