/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "config/config.h"
#include "util/strings.h"
#include "util/stringtable.h"

static const char *const hypervisor_table[_HYPERVISOR_MAX] = {
        [HYPERVISOR_KVM] = "kvm",
        [HYPERVISOR_XEN] = "xen",
};

DEFINE_STRING_TABLE(hypervisor, Hypervisor, _HYPERVISOR_MAX)

static const char *const after_release_table[_AFTER_RELEASE_MAX] = {
        [AFTER_RELEASE_RESTORE] = "restore",
        [AFTER_RELEASE_KEEP] = "keep",
};

DEFINE_STRING_TABLE(after_release, AfterRelease, _AFTER_RELEASE_MAX)

static const char *const iommufd_mode_table[_IOMMUFD_MODE_MAX] = {
        [IOMMUFD_MODE_AUTO] = "auto",
        [IOMMUFD_MODE_NO] = "no",
        [IOMMUFD_MODE_YES] = "yes",
};

DEFINE_STRING_TABLE(iommufd_mode, IommufdMode, _IOMMUFD_MODE_MAX)

static const char *const pool_bind_table[_POOL_BIND_MAX] = {
        [POOL_BIND_ALLOCATE] = "allocate",
        [POOL_BIND_START] = "start",
};

DEFINE_STRING_TABLE(pool_bind, PoolBind, _POOL_BIND_MAX)

static const char *const reset_method_table[_RESET_METHOD_MAX] = {
        [RESET_METHOD_DEFAULT] = "default", [RESET_METHOD_DEVICE_SPECIFIC] = "device_specific",
        [RESET_METHOD_ACPI] = "acpi",       [RESET_METHOD_FLR] = "flr",
        [RESET_METHOD_AF_FLR] = "af_flr",   [RESET_METHOD_PM] = "pm",
        [RESET_METHOD_BUS] = "bus",         [RESET_METHOD_CXL_BUS] = "cxl_bus",
};
DEFINE_STRING_TABLE(reset_method, ResetMethod, _RESET_METHOD_MAX)

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
        [POOL_SCHEDULER_KUBERNETES] = "kubernetes",
        [POOL_SCHEDULER_NOVA] = "nova",
};

DEFINE_STRING_TABLE(pool_scheduler, PoolScheduler, _POOL_SCHEDULER_MAX)

static const char *const port_type_table[_PORT_TYPE_MAX] = {
        [PORT_TYPE_AUTO] = "auto",
        [PORT_TYPE_IB] = "ib",
        [PORT_TYPE_ETH] = "eth",
};

DEFINE_STRING_TABLE(port_type, PortType, _PORT_TYPE_MAX)

static const char *const remote_kind_table[_REMOTE_KIND_MAX] = {
        [REMOTE_KIND_CUSTOM] = "custom",   [REMOTE_KIND_RCUDA] = "rcuda",   [REMOTE_KIND_GVIRTUS] = "gvirtus",
        [REMOTE_KIND_CRICKET] = "cricket", [REMOTE_KIND_LUPINE] = "lupine",
};

DEFINE_STRING_TABLE(remote_kind, RemoteKind, _REMOTE_KIND_MAX)

bool remote_kind_spans(RemoteKind k) {
        return k == REMOTE_KIND_RCUDA || k == REMOTE_KIND_LUPINE;
}

static const char *const remote_health_table[_REMOTE_HEALTH_MAX] = {
        [REMOTE_HEALTH_NONE] = "none",
        [REMOTE_HEALTH_TCP] = "tcp",
};
DEFINE_STRING_TABLE(remote_health, RemoteHealth, _REMOTE_HEALTH_MAX)

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
        c->parallel_devices = 16;
        c->reserve_memory = UINT64_C(1) << 30;
        c->spare_ports = 1;
        c->guest_nodes = 16;
        return TAKE_PTR(c);
}

static void free_matches(Match *matches, size_t n) {
        for (size_t i = 0; i < n; i++)
                match_done(&matches[i]);
        free(matches);
}

static void service_done(RemoteService *s) {
        free(s->name);
        free(s->via);
        free(s->variables);
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
                free(c->pools[i].vgpu_type);
        }
        for (size_t i = 0; i < c->n_services; i++)
                service_done(&c->services[i]);
        free(c->services);
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
        free(c->fabric_manager);
        free(c);
        return NULL;
}

int config_problem_format(const ConfigProblem *p, char **ret) {
        return p->line > 0 ? string_replace(ret, "%s:%u: %s", p->file, p->line, p->message)
                           : string_replace(ret, "%s: %s", p->file, p->message);
}

/* Appends a problem. Takes ownership of message, also on failure. message NULL: memory for it ran out. Returns 0 or
 * -ENOMEM. */
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

/* Counts a problem that is not listed. The last problem in the list tells the number of such problems. */
static int count_problem(Config *c, const char *file, unsigned line) {
        _cleanup_free_ char *message = string_format("%zu more problem%s %s not listed.", c->n_unlisted + 1,
                                                     PLURAL(c->n_unlisted + 1), ARE(c->n_unlisted + 1));

        if (!message)
                return -ENOMEM;
        if (c->n_unlisted++ == 0)
                return append_problem(c, file, line, TAKE_PTR(message));
        free(c->problems[c->n_problems - 1].message);
        c->problems[c->n_problems - 1].message = TAKE_PTR(message);
        return 0;
}

int config_add_problem(Config *c, const char *file, unsigned line, const char *format, ...) {
        char *message;

        if (c->n_problems >= CONFIG_PROBLEMS_MAX - 1)
                return count_problem(c, file, line);

        message = FORMAT_ARGUMENTS(format);
        return append_problem(c, file, line, message);
}

int config_read_failed(Config *c, const char *file, const char *why, const char *remedy) {
        int r = config_add_problem(c, file, 0, "The file cannot be read: %s.", why);

        if (r == 0 && !c->unreadable) {
                c->unreadable_remedy = remedy;
                r = string_replace(&c->unreadable, "%s cannot be read: %s.", file, why);
        }
        if (r == 0 && !c->block_reason)
                r = string_replace(&c->block_reason, "%s No device is offered until it can be read.", c->unreadable);
        return r;
}

/* Checks VirtualFunctions=. Drops it if a Match= line of the pool has address=, because VFs that do not exist yet have
 * no address. */
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

/* Checks PortTypes=. Port types are options of mlx4_core, and the daemon sets these options only for pools whose VFs it
 * creates. */
static int check_port_types(Config *c, Pool *pool) {
        if (pool->n_port_types == 0 || pool->virtual_functions > 0)
                return 0;
        return config_add_problem(c, pool->port_types_place.file, pool->port_types_place.line,
                                  "PortTypes= is ignored: it needs a number in VirtualFunctions= of the same pool.");
}

/* Checks VgpuType=. Drops VirtualFunctions= and Bind= beside it, because the vendor's tool creates the VFs of a GPU
 * with vGPUs, and the VFs keep their driver. */
static int check_vgpu_type(Config *c, Pool *pool) {
        const char *ignored = pool->virtual_functions > 0        ? "VirtualFunctions="
                              : pool->bind != POOL_BIND_ALLOCATE ? "Bind="
                                                                 : NULL;

        if (!pool->vgpu_type || !ignored)
                return 0;
        pool->virtual_functions = 0;
        pool->bind = POOL_BIND_ALLOCATE;
        return config_add_problem(c, pool->vgpu_type_place.file, pool->vgpu_type_place.line,
                                  "%s of [Pool %s] is ignored because of VgpuType=: the vendor's tool creates the VFs "
                                  "of a GPU with vGPUs, and they keep their driver.",
                                  ignored, pool->name);
}

/* Drops Scheduler=nova beside VgpuType=, because the daemon creates a vGPU for an allocation, and devices of Nova have
 * no allocation. */
static int check_vgpu_scheduler(Config *c, Pool *pool) {
        if (!pool->vgpu_type || pool->scheduler != POOL_SCHEDULER_NOVA)
                return 0;
        pool->scheduler = POOL_SCHEDULER_NONE;
        return config_add_problem(c, pool->vgpu_type_place.file, pool->vgpu_type_place.line,
                                  "Scheduler=nova of [Pool %s] is ignored because of VgpuType=: the daemon creates "
                                  "vGPUs for allocations only. Remove one of the two keys.",
                                  pool->name);
}

/* Checks Fabric=. Drops it beside VgpuType=, because the daemon activates no NVLink partitions for vGPUs, and reports
 * it when [Fabric] has no partitions. */
static int check_fabric(Config *c, Pool *pool) {
        if (pool->fabric && pool->vgpu_type) {
                pool->fabric = false;
                return config_add_problem(
                        c, pool->vgpu_type_place.file, pool->vgpu_type_place.line,
                        "Fabric=yes of [Pool %s] is ignored because of VgpuType=: the daemon activates no "
                        "NVLink partitions for vGPUs. Remove one of the two keys.",
                        pool->name);
        }
        if (!pool->fabric || c->fabric.n > 0)
                return 0;
        return config_add_problem(c, pool->place.file, pool->place.line,
                                  "[Pool %s] has Fabric=yes, but [Fabric] has no partitions, so it offers nothing to a "
                                  "request without fabric=off.",
                                  pool->name);
}

/* Checks ConfidentialMode=. Drops Fabric= beside it, because Fabric Manager then runs in the guest that has the
 * NVSwitches. With VgpuType=, drops ConfidentialMode= itself too, because no vGPU has a confidential mode. */
static int check_confidential(Config *c, Pool *pool) {
        bool vgpu = pool->vgpu_type;

        if (pool->confidential_mode == CONFIDENTIAL_MODE_OFF || (!vgpu && !pool->fabric))
                return 0;
        pool->fabric = false;
        if (vgpu)
                pool->confidential_mode = CONFIDENTIAL_MODE_OFF;
        return config_add_problem(
                c, pool->confidential_place.file, pool->confidential_place.line,
                vgpu ? "ConfidentialMode= of [Pool %s] is ignored because of VgpuType=: no vGPU has a "
                       "confidential mode. Remove one of the two keys."
                     : "Fabric=yes of [Pool %s] is ignored because of ConfidentialMode=: Fabric Manager "
                       "runs in the guest that has the NVSwitches. Remove one of the two keys.",
                pool->name);
}

/* Drops services that have the name of a pool, because a request names pools and services in the same way. */
static int drop_ambiguous_services(Config *c) {
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; i < c->n_services; i++) {
                RemoteService *s = &c->services[i];

                if (!config_find_pool(c, s->name)) {
                        c->services[n++] = *s;
                        continue;
                }
                r = r
                            ?: config_add_problem(c, s->place.file, s->place.line,
                                                  "[Service %s] is ignored: there is a pool of this name.", s->name);
                service_done(s);
        }
        c->n_services = n;
        return r;
}

static int check_service(Config *c, const RemoteService *s) {
        int r = s->n_endpoints > 0 ? 0
                                   : config_add_problem(c, s->place.file, s->place.line,
                                                        "[Service %s] has no valid Endpoint= line, so it offers "
                                                        "nothing.",
                                                        s->name);

        if (r >= 0 && config_via_problem(c, s))
                r = config_add_problem(c, s->place.file, s->place.line,
                                       "[Service %s] offers nothing: Via= names the pool '%s', %s.", s->name, s->via,
                                       config_via_problem(c, s));
        if (r >= 0 && s->kind == REMOTE_KIND_CUSTOM && !s->variables)
                r = config_add_problem(c, s->place.file, s->place.line,
                                       "[Service %s] tells guests nothing: it has neither Kind= nor Variables=.",
                                       s->name);
        return r;
}

int config_finish(Config *c) {
        static int (*const checks[])(Config *c, Pool *pool) = { check_port_types, check_vgpu_type, check_vgpu_scheduler,
                                                                check_confidential, check_fabric };
        int r = drop_ambiguous_services(c);

        if (r >= 0 && c->hypervisor == HYPERVISOR_XEN && !c->libvirt_given)
                r = string_copy(&c->libvirt, "xen:///system");
        if (r >= 0 && c->hypervisor == HYPERVISOR_XEN) {
                c->variants = false;
                r = string_copy(&c->vfio_driver, PCIBACK_DRIVER);
        }
        for (size_t i = 0; r >= 0 && i < c->n_services; i++)
                r = check_service(c, &c->services[i]);
        if (r < 0)
                return r;
        for (size_t i = 0; i < c->n_pools; i++) {
                Pool *pool = &c->pools[i];

                if (pool->n_matches > 0)
                        r = check_virtual_functions(c, pool);
                else
                        r = config_add_problem(c, pool->place.file, pool->place.line,
                                               "[Pool %s] has no valid Match= line, so it offers nothing.", pool->name);
                for (size_t k = 0; r >= 0 && k < ELEMENTSOF(checks); k++)
                        r = checks[k](c, pool);
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

const RemoteService *config_find_service(const Config *c, const char *name) {
        for (size_t i = 0; i < c->n_services; i++)
                if (streq(c->services[i].name, name))
                        return &c->services[i];
        return NULL;
}

const char *config_via_problem(const Config *c, const RemoteService *s) {
        const Pool *pool = s->via ? config_find_pool(c, s->via) : NULL;

        if (s->via && !pool)
                return "which does not exist";
        return pool && pool->scheduler == POOL_SCHEDULER_NOVA ? "whose devices Nova gives out" : NULL;
}

unsigned config_endpoint_slots(const Config *c, const char *endpoint) {
        for (size_t i = 0; i < c->n_services; i++)
                for (size_t k = 0; k < c->services[i].n_endpoints; k++)
                        if (streq(c->services[i].endpoints[k].name, endpoint))
                                return c->services[i].endpoints[k].slots;
        return 0;
}

unsigned config_module(const Config *c, const PciDevice *gpu) {
        for (size_t i = 0; i < c->n_modules; i++)
                if (pci_address_equal(c->modules[i].address, gpu->address))
                        return c->modules[i].module;
        return gpu->module;
}

bool pool_name_is_valid(const char *name) {
        size_t len = strnlen(name, POOL_NAME_MAX + 1);

        return len > 0 && len <= POOL_NAME_MAX && name[0] != '-' &&
               strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

bool endpoint_is_valid(const char *endpoint) {
        size_t host = strspn(endpoint, "abcdefghijklmnopqrstuvwxyz0123456789.-");
        uint64_t port;

        return host > 0 && strlen(endpoint) <= ENDPOINT_MAX && endpoint[host] == ':' && !strchr(".-", endpoint[0]) &&
               parse_unsigned(endpoint + host + 1, UINT16_MAX, &port) >= 0 && port > 0;
}

/* Returns true for a valid word NAME=VALUE: '%' is followed by h, p or n, and no character has a meaning to a shell or
 * systemd. */
static bool variable_is_valid(const char *word, size_t length) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
        size_t name = strspn(word, letters);

        if (name == 0 || name >= length || word[name] != '=' || (word[0] >= '0' && word[0] <= '9'))
                return false;
        for (size_t i = name + 1; i < length; i++)
                if (!strchr(letters, word[i]) && !strchr("%:/.,@+=-", word[i]))
                        return false;
                else if (word[i] == '%' && (i + 1 == length || !strchr("hpn", word[i + 1])))
                        return false;
        return true;
}

bool variables_are_valid(const char *variables) {
        size_t length;

        for (const char *word = variables;; word += length + 1) {
                length = strcspn(word, " ");
                if (length > 0 && !variable_is_valid(word, length))
                        return false;
                if (!word[length])
                        return strlen(variables) <= CONFIG_LINE_MAX;
        }
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
