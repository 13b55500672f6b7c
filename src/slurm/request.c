/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the value of --passthrough and compares it with the GRES of the job. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "request.h"
#include "slurm/gres.h"
#include "util/strings.h"

/* The limit of the value in bytes. A value with REQUEST_POOLS_MAX pools, each with the longest name and count, is
 * shorter. */
#define TEXT_MAX ((size_t) 1024)

/* Parses one POOL[=COUNT] of the value; overwrites the '='. 0, -EINVAL or -ENOMEM. */
static int parse_word(char *word, PoolCount *ret) {
        char *equals = strchr(word, '=');
        uint64_t count = 1;

        if (equals)
                *equals = '\0';
        if (!*word || (equals && (parse_unsigned(equals + 1, UINT32_MAX, &count) < 0 || count == 0)))
                return -EINVAL;
        *ret = (PoolCount) { .pool = strdup(word), .count = (uint32_t) count };
        return ret->pool ? 0 : -ENOMEM;
}

int job_request_parse(const char *text, JobRequest *ret, char **ret_sentence) {
        _cleanup_job_request_ JobRequest q = { 0 };
        _cleanup_free_ char *list = strdup(text);
        char *rest = list, *word;
        int r = list ? 0 : -ENOMEM;

        /* The prolog parses the value as root and prints it to terminals: refuse control characters. */
        if (r == 0 && (strnlen(text, TEXT_MAX + 1) > TEXT_MAX || !text_is_clean(text)))
                r = -EINVAL;
        while (r == 0 && (word = strsep(&rest, ","))) {
                r = ARRAY_RESERVE(q.pools, q.n_pools);
                if (r == 0)
                        r = parse_word(word, &q.pools[q.n_pools]);
                if (r == 0)
                        q.n_pools++;
        }
        if (r == -EINVAL &&
            string_replace(ret_sentence, "--passthrough=%s is not POOL=COUNT[,POOL=COUNT...], such as gpu=1,ib-vf=2.",
                           QUOTABLE(text)) < 0)
                r = -ENOMEM;
        if (r < 0)
                return r;
        *ret = q;
        q = (JobRequest) { 0 };
        return 0;
}

void job_request_done(JobRequest *q) {
        for (size_t i = 0; i < q->n_pools; i++)
                free(q->pools[i].pool);
        free(q->pools);
        *q = (JobRequest) { 0 };
}

/* Returns the number in an entry "NAME[:TYPE](CNT:NUMBER)" if NAME is the GRES of this pool, else 0. */
static uint64_t entry_count(const char *entry, const char *pool) {
        size_t n = strlen(GRES_PREFIX), length = strlen(pool);
        const char *count = strstr(entry, "(CNT:");

        if (strncmp(entry, GRES_PREFIX, n) != 0 || strncmp(entry + n, pool, length) != 0 ||
            !strchr(":(", entry[n + length]) || !count)
                return 0;
        return strtoull(count + strlen("(CNT:"), NULL, 10);
}

static int gres_count(const char *detail, const char *pool, uint64_t *ret) {
        _cleanup_free_ char *list = strdup(detail ? detail : "");
        char *rest = list, *entry;

        if (!list)
                return -ENOMEM;
        *ret = 0;
        while ((entry = strsep(&rest, ",")))
                *ret += entry_count(entry, pool);
        return 0;
}

int job_request_check(const JobRequest *q, const char *detail, char **ret_sentence) {
        for (size_t i = 0; i < q->n_pools; i++) {
                const char *pool = q->pools[i].pool;
                uint64_t wanted = 0, given;
                int r = gres_count(detail, pool, &given);

                for (size_t j = 0; j < q->n_pools; j++)
                        if (strcmp(q->pools[j].pool, pool) == 0)
                                wanted += q->pools[j].count;
                if (r < 0)
                        return r;
                if (given < wanted)
                        return string_replace(ret_sentence,
                                              "%" PRIu64 " of pool '%s' wanted, but the job has %" PRIu64
                                              " of the GRES " GRES_PREFIX
                                              "%s on this node. Submit it with --gres=" GRES_PREFIX "%s:%" PRIu64 ".",
                                              wanted, pool, given, pool, pool, wanted) < 0
                                       ? -ENOMEM
                                       : -EPERM;
        }
        return 0;
}
