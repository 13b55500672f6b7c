/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: the configuration. */

#include "check-internal.h"
#include "util/strings.h"

static void check_problems(const Config *config, CheckReport *report) {
        for (size_t i = 0; i < config->n_problems; i++) {
                _cleanup_free_ char *problem = NULL;

                if (config_problem_format(&config->problems[i], &problem) < 0)
                        report->failed = true;
                else
                        check_add(report, CHECK_WARNING, "Correct the line; see passthroughd.conf(5).", "%s", problem);
        }
}

void check_configuration(const CheckFacts *facts, CheckReport *report) {
        const Policy *policy = facts->policy;

        if (policy->config->block_reason)
                check_add(report, CHECK_FAILURE, "Correct the configuration; no device is offered until then.", "%s",
                          policy->config->block_reason);
        if (policy->conflict.verdict != VERDICT_NONE)
                check_add(report, CHECK_FAILURE, policy->conflict.remedy, "%s", policy->conflict.message);
        check_problems(policy->config, report);
        for (size_t i = 0; i < policy->n_problems; i++)
                check_add(report, CHECK_WARNING, NULL, "%s", policy->problems[i]);
}
