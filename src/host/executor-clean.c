/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the commands that clean devices between two allocations. */

#include <errno.h>

#include "executor-services.h"
#include "host/rootservice.h"
#include "util/strings.h"

bool clean_is_shared(const StepList *steps, size_t i, size_t j) {
        return steps->steps[j].kind == STEP_CLEAN && streq(steps->steps[i].from, steps->steps[j].from);
}

/* Whether step i is the first STEP_CLEAN of its pool. */
static bool is_first(const StepList *steps, size_t i) {
        for (size_t j = 0; j < i; j++)
                if (clean_is_shared(steps, i, j))
                        return false;
        return true;
}

static unsigned count_commands(const StepList *steps) {
        unsigned n = 0;

        for (size_t i = 0; i < steps->n; i++)
                n += steps->steps[i].kind == STEP_CLEAN && is_first(steps, i);
        return n;
}

int devices_clean(const StepList *steps, size_t first, const bool *skipped, int *ret_status) {
        _cleanup_free_ PciAddress *devices = calloc(steps->n, sizeof(*devices));
        size_t n = 0;

        if (!devices)
                return -ENOMEM;
        for (size_t i = first; i < steps->n; i++)
                if (clean_is_shared(steps, first, i) && !skipped[i])
                        devices[n++] = steps->steps[i].device;
        return root_clean(steps->steps[first].from, devices, n, job_deadline(steps, 2 * count_commands(steps)),
                          ret_status);
}
