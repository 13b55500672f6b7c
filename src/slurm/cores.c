/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the cores of a job in the JSON of scontrol, which has the same members since Slurm 23.11. */
#include <errno.h>
#include <stdbool.h>

#include "cores.h"
#include "model/cpuset.h"
#include "model/json-parse.h"
#include "util/strings.h"

/* The most that the JSON's values may cost (json_parse_within()). A core costs 18, in about 150 bytes of text. */
#define COST_MAX ((size_t) 8 << 20)

static bool has_number(json_object *o, const char *key, uint64_t number) {
        uint64_t n;

        return json_read_number(o, key, UINT64_MAX, &n) >= 0 && n == number;
}

static json_object *find_job(json_object *jobs, uint32_t id) {
        for (size_t i = 0; i < json_length(jobs); i++)
                if (has_number(json_at(jobs, i), "job_id", id))
                        return json_at(jobs, i);
        return NULL;
}

/* Reads the status of a core, a list of words. Returns -EBADMSG unless it says whether the core is allocated. */
static int read_status(json_object *status, bool *ret_allocated) {
        bool known = false;

        *ret_allocated = false;
        for (size_t i = 0; i < json_length(status); i++) {
                const char *word = json_object_get_string(json_at(status, i));

                if (streq_ptr(word, "ALLOCATED"))
                        *ret_allocated = true;
                known = known || *ret_allocated || streq_ptr(word, "UNALLOCATED");
        }
        return known ? 0 : -EBADMSG;
}

/*
 * Reads the allocated cores of all sockets. Slurm numbers cores socket after socket, so the JSON must list every core.
 */
static int read_sockets(json_object *sockets, CpuSet *ret) {
        unsigned number = 0;

        for (size_t s = 0; s < json_length(sockets); s++) {
                json_object *socket = json_at(sockets, s), *cores = member(socket, "cores");

                if (!has_number(socket, "index", s) || json_length(cores) == 0)
                        return -EBADMSG;
                for (size_t c = 0; c < json_length(cores); c++, number++) {
                        json_object *core = json_at(cores, c);
                        bool allocated;

                        if (number >= CPUSET_MAX || !has_number(core, "index", c) ||
                            read_status(member(core, "status"), &allocated) < 0)
                                return -EBADMSG;
                        if (allocated)
                                cpuset_add(ret, number);
                }
        }
        return number > 0 ? 0 : -EBADMSG;
}

static int read_job(json_object *job, const char *name, char **ret_cores, unsigned *ret_cpus) {
        json_object *resources = member(job, "job_resources"), *node;
        CpuSet cores = { 0 };
        unsigned cpus;
        int r;

        if (!resources) /* null: the job waits */
                return json_object_object_get_ex(job, "job_resources", NULL) ? 0 : -EBADMSG;
        node = json_find(member(member(resources, "nodes"), "allocation"), "name", name);
        if (JSON_READ_INTEGER(member(node, "cpus"), "count", UINT16_MAX, &cpus) < 0)
                return -EBADMSG;
        r = read_sockets(member(node, "sockets"), &cores);
        if (r < 0 || cpuset_is_empty(&cores))
                return r;
        *ret_cores = cpuset_format(&cores);
        if (!*ret_cores)
                return -ENOMEM;
        *ret_cpus = cpus;
        return 0;
}

int cores_parse(const char *json, size_t size, uint32_t id, const char *node, char **ret_cores, unsigned *ret_cpus) {
        _cleanup_json_ json_object *o = NULL;
        int r = json_parse_within(json, size, COST_MAX, &o);

        *ret_cores = NULL;
        *ret_cpus = 0;
        if (r == 0)
                r = read_job(find_job(member(o, "jobs"), id), node, ret_cores, ret_cpus);
        return r;
}
