/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the commands that clean devices between two allocations. */

#include <errno.h>
#include <stdio.h>

#include "executor-services.h"
#include "units.h"
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
        _cleanup_free_ char *command = strdup(steps->steps[first].to), *description = NULL;
        _cleanup_free_ const char **words = calloc(CLEANER_WORDS_MAX + steps->n + 1, sizeof(*words));
        _cleanup_free_ char *addresses = calloc(steps->n, PCI_ADDRESS_STRING_MAX);
        char *rest = command, *word, name[64];
        size_t n = 0;

        if (!command || !words || !addresses ||
            string_replace(&description, "Cleaning devices of pool %s", steps->steps[first].from) < 0)
                return -ENOMEM;
        while (n < CLEANER_WORDS_MAX && (word = string_next_word(&rest)))
                words[n++] = word;
        for (size_t i = first; i < steps->n; i++) {
                char *address = addresses + i * PCI_ADDRESS_STRING_MAX;

                if (!clean_is_shared(steps, first, i) || skipped[i])
                        continue;
                (void) snprintf(address, PCI_ADDRESS_STRING_MAX, "%s", PCI_ADDRESS_STR(steps->steps[i].device));
                words[n++] = address;
        }
        (void) snprintf(name, sizeof(name), "passthroughd-clean-%d-%zu.service", (int) getpid(), first);
        return unit_run(name, description, words, job_deadline(steps, 2 * count_commands(steps)), ret_status);
}
