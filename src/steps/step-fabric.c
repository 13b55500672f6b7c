/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps that activate and deactivate the NVLink partition of an allocation. */

#include <errno.h>

#include "steps/step.h"

bool step_is_of_fabric(const Step *s) {
        return s->kind == STEP_ACTIVATE || s->kind == STEP_DEACTIVATE;
}

static int add(StepList *l, StepKind kind, const Allocation *a, const Config *config) {
        int r = a->partition >= 0 && config->fabric_manager ? step_list_add(l, kind, (PciAddress) { 0 }, NULL, NULL)
                                                            : 1;

        if (r == 0)
                l->steps[l->n - 1].partition = (unsigned) a->partition;
        return r;
}

int steps_activate(const Allocation *a, const Config *config, bool again, StepList *steps) {
        const size_t first = steps->n;
        int r = add(steps, STEP_ACTIVATE, a, config);

        if (r != 0 || !again)
                return r < 0 ? r : 0;
        r = steps_check_unused(a, steps);
        step_list_move(steps, first + 1, first);
        for (size_t i = first; i < steps->n; i++)
                steps->steps[i].may_lack = true;
        return r;
}

int steps_deactivate(const Allocation *a, const Config *config, StepList *steps) {
        int r = add(steps, STEP_DEACTIVATE, a, config);

        if (r == 0)
                step_list_move(steps, steps->n - 1, 0);
        return r < 0 ? r : 0;
}

bool step_may_lack(const Step *s, int error) {
        static const int away[] = { ENOTCONN, EAGAIN, ETIMEDOUT, EHOSTDOWN, ELIBACC, EPROTO };

        if (!s->may_lack || s->kind == STEP_CHECK_UNUSED)
                return s->may_lack;
        for (size_t i = 0; i < ELEMENTSOF(away); i++)
                if (error == -away[i])
                        return true;
        return false;
}
