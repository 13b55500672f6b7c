/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps that create and remove shared memory. */

#include <errno.h>

#include "steps/step.h"

static int add_regions(StepList *l, StepKind kind, const Allocation *a, const char *to) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->n_regions; i++) {
                r = step_list_add(l, kind, (PciAddress) { 0 }, NULL, to);
                if (r == 0)
                        l->steps[l->n - 1].region = a->regions[i];
        }
        return r;
}

int steps_make_regions(const Allocation *a, const Config *config, StepList *steps) {
        size_t n = steps->n;
        int r = add_regions(steps, STEP_MAKE_REGION, a, config->shared_memory_group);

        step_list_move(steps, n, 0);
        return r;
}

int steps_remove_regions(const Allocation *a, StepList *steps) {
        return add_regions(steps, STEP_REMOVE_REGION, a, NULL);
}

static bool has_region(const StepList *l, const char *name) {
        for (size_t i = 0; i < l->n; i++)
                if (step_is_of_region(&l->steps[i]) && streq(l->steps[i].region.name, name))
                        return true;
        return false;
}

bool step_lists_share_region(const StepList *a, const StepList *b) {
        for (size_t i = 0; i < a->n; i++)
                if (step_is_of_region(&a->steps[i]) && has_region(b, a->steps[i].region.name))
                        return true;
        return false;
}
