/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shortens lists of CPUs. */
#include <errno.h>
#include <stdlib.h>

#include "cpus.h"
#include "util/strings.h"

/* CPUs with equal gaps between them: first, first + step, ..., last. */
typedef struct CpuRun {
        unsigned long first, last, step;
        size_t n;
} CpuRun;

/* Few CPUs with wide gaps are easier to read one by one. */
static int append_run(char **text, const CpuRun *run) {
        int r = 0;

        if (run->n > 2 && run->n >= 2 * run->step)
                return string_append(text, ",", "%lu-%lu:%lu", run->first, run->last, run->step);
        for (size_t i = 0; r >= 0 && i < run->n; i++)
                r = string_append(text, ",", "%lu", run->first + i * run->step);
        return r;
}

/* Adds a CPU that follows no other CPU directly. */
static int take_single(char **text, CpuRun *run, unsigned long cpu) {
        CpuRun before = *run;

        if (before.n == 1 || (before.n > 1 && cpu - before.last == before.step)) {
                *run = (CpuRun) { before.first, cpu, cpu - before.last, before.n + 1 };
                return 0;
        }
        *run = (CpuRun) { cpu, cpu, 0, 1 };
        return append_run(text, &before);
}

char *cpus_shorten(const char *list) {
        _cleanup_free_ char *text = NULL;
        CpuRun run = { 0 };
        int r = 0;

        while (r >= 0 && *list) {
                char *end;
                unsigned long first = strtoul(list, &end, 10);

                if (*end == '-') {
                        r = append_run(&text, &run);
                        run = (CpuRun) { 0 };
                        if (r >= 0)
                                r = string_append(&text, ",", "%lu-%lu", first, strtoul(end + 1, &end, 10));
                } else
                        r = take_single(&text, &run, first);
                list = *end ? end + 1 : end;
        }
        if (r >= 0)
                r = append_run(&text, &run);
        return r < 0 ? NULL : text ? TAKE_PTR(text) : strdup("-");
}
