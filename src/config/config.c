/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "config/config.h"
#include "util/strings.h"
#include "util/stringtable.h"

static const char *const after_release_table[_AFTER_RELEASE_MAX] = {
        [AFTER_RELEASE_RESTORE] = "restore",
        [AFTER_RELEASE_KEEP] = "keep",
};

DEFINE_STRING_TABLE(after_release, AfterRelease, _AFTER_RELEASE_MAX)

static const char *const pool_bind_table[_POOL_BIND_MAX] = {
        [POOL_BIND_ALLOCATE] = "allocate",
        [POOL_BIND_START] = "start",
};

DEFINE_STRING_TABLE(pool_bind, PoolBind, _POOL_BIND_MAX)

static const char *const vf_identity_table[_VF_IDENTITY_MAX] = {
        [VF_IDENTITY_FRESH] = "fresh",
        [VF_IDENTITY_STABLE] = "stable",
};

DEFINE_STRING_TABLE(vf_identity, VfIdentity, _VF_IDENTITY_MAX)

static const char *const vf_placement_table[_VF_PLACEMENT_MAX] = {
        [VF_PLACEMENT_SPREAD] = "spread",
        [VF_PLACEMENT_PACK] = "pack",
};

DEFINE_STRING_TABLE(vf_placement, VfPlacement, _VF_PLACEMENT_MAX)

static const char *const pool_scheduler_table[_POOL_SCHEDULER_MAX] = {
        [POOL_SCHEDULER_NONE] = "none",
        [POOL_SCHEDULER_PLACEMENT] = "placement",
        [POOL_SCHEDULER_NOVA] = "nova",
};

DEFINE_STRING_TABLE(pool_scheduler, PoolScheduler, _POOL_SCHEDULER_MAX)

static const char *const port_type_table[_PORT_TYPE_MAX] = {
        [PORT_TYPE_AUTO] = "auto",
        [PORT_TYPE_IB] = "ib",
        [PORT_TYPE_ETH] = "eth",
};

DEFINE_STRING_TABLE(port_type, PortType, _PORT_TYPE_MAX)

Config *config_new(void) {
        _cleanup_(cleanup_config_free) Config *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->vfio_driver = strdup("vfio-pci");
        c->shared_memory_group = strdup("kvm");
        c->libvirt = strdup("qemu:///system");
        if (!c->vfio_driver || !c->shared_memory_group || !c->libvirt)
                return NULL;
        c->variants = true;
        c->job_timeout = 60;
        c->reserve_memory = UINT64_C(1) << 30;
        c->spare_ports = 1;
        return TAKE_PTR(c);
}

static void free_matches(Match *matches, size_t n) {
        for (size_t i = 0; i < n; i++)
                match_done(&matches[i]);
        free(matches);
}

Config *config_free(Config *c) {
        if (!c)
                return NULL;

        for (size_t i = 0; i < c->n_pools; i++) {
                free(c->pools[i].name);
                free_matches(c->pools[i].matches, c->pools[i].n_matches);
                for (size_t j = 0; j < c->pools[i].n_stop_services; j++)
                        free(c->pools[i].stop_services[j]);
                free(c->pools[i].stop_services);
                free(c->pools[i].cleaner);
        }
        for (size_t i = 0; i < c->n_problems; i++) {
                free(c->problems[i].file);
                free(c->problems[i].message);
        }
        free_matches(c->excludes, c->n_excludes);
        free(c->pools);
        free(c->problems);
        for (size_t i = 0; i < c->n_files; i++)
                free(c->files[i]);
        free(c->files);
        for (size_t i = 0; i < c->n_keep_interfaces; i++)
                free(c->keep_interfaces[i]);
        free(c->keep_interfaces);
        free(c->block_reason);
        free(c->unreadable);
        free(c->vfio_driver);
        free(c->shared_memory_group);
        free(c->shared_memory_server);
        free(c->libvirt);
        free(c);
        return NULL;
}

int config_problem_format(const ConfigProblem *p, char **ret) {
        return p->line > 0 ? string_replace(ret, "%s:%u: %s", p->file, p->line, p->message)
                           : string_replace(ret, "%s: %s", p->file, p->message);
}

/* Takes ownership of message, also on failure. NULL message: -ENOMEM. */
static int append_problem(Config *c, const char *file, unsigned line, char *message) {
        _cleanup_free_ char *owned = message;
        ConfigProblem problem = { .line = line };

        if (!owned || ARRAY_RESERVE(c->problems, c->n_problems) < 0)
                return -ENOMEM;
        if (string_copy(&problem.file, file) < 0)
                return -ENOMEM;

        problem.message = TAKE_PTR(owned);
        c->problems[c->n_problems++] = problem;
        return 0;
}

int config_add_problem(Config *c, const char *file, unsigned line, const char *format, ...) {
        va_list ap;
        char *message;

        if (c->n_problems >= CONFIG_PROBLEMS_MAX)
                return 0;
        if (c->n_problems == CONFIG_PROBLEMS_MAX - 1)
                return append_problem(c, file, line, strdup("There are more problems, which are not listed."));

        va_start(ap, format);
        message = string_vformat(format, ap);
        va_end(ap);
        return append_problem(c, file, line, message);
}

int config_read_failed(Config *c, const char *file, const char *why) {
        int r = config_add_problem(c, file, 0, "The file cannot be read: %s.", why);

        if (r == 0 && !c->unreadable)
                r = string_replace(&c->unreadable, "%s cannot be read: %s.", file, why);
        if (r == 0 && !c->block_reason)
                r = string_replace(&c->block_reason, "%s No device is offered until it can be read.", c->unreadable);
        return r;
}

/* A VF that does not exist yet has no address to match. */
static int check_virtual_functions(Config *c, Pool *pool) {
        for (size_t i = 0; i < pool->n_matches && pool->virtual_functions > 0; i++) {
                const ConfigPlace *place = &pool->matches[i].place;

                if (!pool->matches[i].address)
                        continue;
                pool->virtual_functions = 0;
                return config_add_problem(
                        c, pool->virtual_functions_place.file, pool->virtual_functions_place.line,
                        "VirtualFunctions= is ignored: Match= in %s:%u uses address=, but VFs that do not "
                        "exist yet have no address; use pf= with the address of their PF.",
                        place->file, place->line);
        }
        return 0;
}

/* Port types are options of mlx4_core, which the daemon sets only when it creates VFs. */
static int check_port_types(Config *c, const Pool *pool) {
        if (pool->n_port_types == 0 || pool->virtual_functions > 0)
                return 0;
        return config_add_problem(c, pool->port_types_place.file, pool->port_types_place.line,
                                  "PortTypes= is ignored: it needs a number in VirtualFunctions= of the same pool.");
}

int config_finish(Config *c) {
        for (size_t i = 0; i < c->n_pools; i++) {
                Pool *pool = &c->pools[i];
                int r;

                if (pool->n_matches > 0)
                        r = check_virtual_functions(c, pool);
                else
                        r = config_add_problem(c, pool->place.file, pool->place.line,
                                               "[Pool %s] has no valid Match= line, so it offers nothing.", pool->name);
                if (r >= 0)
                        r = check_port_types(c, pool);
                if (r < 0)
                        return r;
        }
        return 0;
}

const Pool *config_find_pool(const Config *c, const char *name) {
        for (size_t i = 0; i < c->n_pools; i++)
                if (streq(c->pools[i].name, name))
                        return &c->pools[i];
        return NULL;
}

bool pool_name_is_valid(const char *name) {
        size_t len = strnlen(name, POOL_NAME_MAX + 1);

        return len > 0 && len <= POOL_NAME_MAX && name[0] != '-' &&
               strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

bool service_name_is_valid(const char *name) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@";
        static const char *const types[] = { ".service", ".socket", ".timer", ".path" };
        static const char *const needed[] = { "passthroughd", "dbus", "dbus-broker" };
        const char *dot = strrchr(name, '.');
        bool known = false;

        if (!dot || dot == name || dot[-1] == '@' || name[strspn(name, allowed)] || strlen(name) > UNIT_NAME_MAX)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                known = known || streq(dot, types[i]);
        for (size_t i = 0; i < ELEMENTSOF(needed); i++)
                if (strlen(needed[i]) == (size_t) (dot - name) && strncmp(name, needed[i], strlen(needed[i])) == 0)
                        return false;
        return known && !strchr(".-@", name[0]);
}
