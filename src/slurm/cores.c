/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the cores of a job in the JSON of scontrol, which has the same members since Slurm 23.11. */
#include <errno.h>
#include <stdbool.h>

#include "cores.h"
#include "model/cpuset.h"
#include "model/json-parse.h"
#include "util/strings.h"

/* Limit on the cost of the values. A core, of about 150 bytes, costs 18. */
#define COST_MAX ((size_t) 8 << 20)

static json_object *member(json_object *o, const char *key) {
        json_object *value = NULL;

        return json_object_object_get_ex(o, key, &value) ? value : NULL;
}

static size_t length_of(json_object *list) {
        return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

static bool is_number(json_object *value, int64_t number) {
        return json_object_is_type(value, json_type_int) && json_object_get_int64(value) == number;
}

static bool is_text(json_object *value, const char *text) {
        return json_object_is_type(value, json_type_string) && streq(json_object_get_string(value), text);
}

static json_object *find_job(json_object *jobs, uint32_t id) {
        for (size_t i = 0; i < length_of(jobs); i++) {
                json_object *job = json_object_array_get_idx(jobs, i);

                if (is_number(member(job, "job_id"), id))
                        return job;
        }
        return NULL;
}

static json_object *find_node(json_object *nodes, const char *name) {
        for (size_t i = 0; i < length_of(nodes); i++) {
                json_object *node = json_object_array_get_idx(nodes, i);

                if (is_text(member(node, "name"), name))
                        return node;
        }
        return NULL;
}

/* Reads the status, a list of words. */
static int read_status(json_object *status, bool *ret_allocated) {
        bool known = false;

        *ret_allocated = false;
        for (size_t i = 0; i < length_of(status); i++) {
                json_object *word = json_object_array_get_idx(status, i);

                if (is_text(word, "ALLOCATED"))
                        *ret_allocated = true;
                known = known || *ret_allocated || is_text(word, "UNALLOCATED");
        }
        return known ? 0 : -EBADMSG;
}

/* Reads the cores of all sockets. Slurm numbers cores socket after socket, so none may be left out. */
static int read_sockets(json_object *sockets, CpuSet *ret) {
        unsigned number = 0;

        for (size_t s = 0; s < length_of(sockets); s++) {
                json_object *socket = json_object_array_get_idx(sockets, s), *cores = member(socket, "cores");

                if (!is_number(member(socket, "index"), (int64_t) s) || length_of(cores) == 0)
                        return -EBADMSG;
                for (size_t c = 0; c < length_of(cores); c++, number++) {
                        json_object *core = json_object_array_get_idx(cores, c);
                        bool allocated;

                        if (number >= CPUSET_MAX || !is_number(member(core, "index"), (int64_t) c) ||
                            read_status(member(core, "status"), &allocated) < 0)
                                return -EBADMSG;
                        if (allocated)
                                cpuset_add(ret, number);
                }
        }
        return number > 0 ? 0 : -EBADMSG;
}

static int read_job(json_object *job, const char *name, char **ret_cores, unsigned *ret_cpus) {
        json_object *resources = NULL, *node, *cpus;
        CpuSet cores = { 0 };
        int r;

        if (!json_object_object_get_ex(job, "job_resources", &resources))
                return -EBADMSG;
        if (!resources) /* the job is pending */
                return 0;
        node = find_node(member(member(resources, "nodes"), "allocation"), name);
        cpus = member(member(node, "cpus"), "count");
        if (!json_object_is_type(cpus, json_type_int) || json_object_get_int64(cpus) < 0 ||
            json_object_get_int64(cpus) > UINT16_MAX)
                return -EBADMSG;
        r = read_sockets(member(node, "sockets"), &cores);
        if (r < 0 || cpuset_is_empty(&cores))
                return r;
        *ret_cores = cpuset_format(&cores);
        if (!*ret_cores)
                return -ENOMEM;
        *ret_cpus = (unsigned) json_object_get_int64(cpus);
        return 0;
}

int cores_parse(const char *json, size_t size, uint32_t id, const char *node, char **ret_cores, unsigned *ret_cpus) {
        json_object *o = NULL;
        int r = json_parse_within(json, size, COST_MAX, &o);

        *ret_cores = NULL;
        *ret_cpus = 0;
        if (r == 0)
                r = read_job(find_job(member(o, "jobs"), id), node, ret_cores, ret_cpus);
        json_object_put(o);
        return r;
}
