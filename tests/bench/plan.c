/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * plan ROOT CONFIG TIMES POOL=N ... [cpus=N memory=GIB]: fills the machine below ROOT with allocations of the request
 * until it is refused. After each allocation, plans the request TIMES times, and prints the microseconds of each.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "machine.h"

#include "util/strings.h"

static int read_word(Request *r, char *word) {
        char *equals = strchr(word, '=');
        unsigned long n;

        if (!equals)
                return -1;
        *equals = '\0';
        n = strtoul(equals + 1, NULL, 10);
        if (streq(word, "cpus"))
                r->cpus = (unsigned) n;
        else if (streq(word, "memory"))
                r->memory = (uint64_t) n << 30;
        else
                return request_add_pool(r, word, (unsigned) n);
        return 0;
}

/* Returns the last plan of a level, or NULL when the request was refused. */
static Plan *plan_level(const HostView *view, const Request *r, unsigned times) {
        Plan *last = NULL;

        for (unsigned i = 0; i < times; i++) {
                _cleanup_refusal_ Refusal refusal = { 0 };
                Plan *plan = NULL;
                double start = now_us();
                Verdict v = plan_make(view, r, &plan, &refusal);

                printf("%.1f\n", now_us() - start);
                plan_free(last);
                last = v == VERDICT_NONE ? plan : NULL;
        }
        return last;
}

static int claim(const Machine *m, Plan *plan, unsigned number) {
        Allocation *a = TAKE_PTR(plan->allocation);

        if (string_replace(&a->name, "vm%u", number) < 0)
                return -1;
        return ledger_claim(m->ledger, m->inventory, m->config, a, NULL) == VERDICT_NONE ? 0 : -1;
}

int main(int argc, char *argv[]) {
        _cleanup_(machine_done) Machine m = { 0 };
        _cleanup_request_ Request r;
        unsigned n = 0;
        int bad = argc < 5;

        request_init(&r);
        for (int i = 4; i < argc && !bad; i++)
                bad = read_word(&r, argv[i]) < 0;
        if (bad || machine_read(&m, argv[1], argv[2]) < 0) {
                (void) fprintf(stderr, "usage: plan ROOT CONFIG TIMES POOL=N ...\n");
                return EXIT_FAILURE;
        }
        for (;;) {
                HostView c = machine_view(&m);
                _cleanup_(cleanup_plan_free) Plan *plan = plan_level(&c, &r, (unsigned) strtoul(argv[3], NULL, 10));

                if (!plan)
                        break;
                if (claim(&m, plan, ++n) < 0)
                        return EXIT_FAILURE;
        }
        return n > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
