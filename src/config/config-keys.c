/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The configuration keys: names, value parsers, defaults. */

#include <errno.h>

#include "config-internal.h"
#include "model/vgpu.h"
#include "util/strings.h"

#define JOB_TIMEOUT_MAX       3600U
#define PARALLEL_DEVICES_MAX  64U
#define GUEST_NODES_MAX       1024U /* arm64 has at most 10 bits for nodes (NODES_SHIFT) */
#define DRIVER_NAME_MAX       63U
#define DRIVER_NAME           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define VIRTUAL_FUNCTIONS_MAX 65535U /* NumVFs of the SR-IOV capability has 16 bits */
#define INTERFACE_GLOB_MAX    63U
#define INTERFACE_GLOB        DRIVER_NAME ".:@*?[]^!"
#define GROUP_NAME_MAX        31U
#define MANAGER_MAX           107U /* the longest path of a UNIX socket */
#define SERVER_MAX            44U  /* so that a path is within MANAGER_MAX when the name of a region replaces %n */

/* A value parser returns 0, -ENOMEM, or another negative errno for a wrong value. A wrong value becomes a problem with
 * the text of Key.expected. A parser that has added a problem itself returns 0. */

/* block_reason names only the first line that could not be read. */
int parser_hold_back(ConfigParser *p, const char *what) {
        Config *c = p->config;

        if (c->block_reason)
                return 0;
        return string_replace(&c->block_reason, "%s (%s:%u), so no device is offered until it is fixed.", what, p->file,
                              p->line);
}

int parser_hold_back_header(ConfigParser *p) {
        return parser_hold_back(p, "A line that may be meant as the header [Exclude] could not be read");
}

int parser_told_problem(ConfigParser *p, int r) {
        return r < 0 || p->section != SECTION_EXCLUDE ? r
                                                      : parser_hold_back(p, "A line of [Exclude] could not be read");
}

static int parse_vfio_driver(ConfigParser *p, const char *value) {
        size_t len = strspn(value, DRIVER_NAME);

        if (len == 0 || len > DRIVER_NAME_MAX || value[len])
                return -EINVAL;
        p->config->variants = streq(value, "auto");
        return string_copy(&p->config->vfio_driver, p->config->variants ? "vfio-pci" : value);
}

static int parse_job_timeout(ConfigParser *p, const char *value) {
        uint64_t n;
        int r = parse_unsigned(value, JOB_TIMEOUT_MAX, &n);

        if (r < 0 || n == 0)
                return -EINVAL;
        p->config->job_timeout = (unsigned) n;
        return 0;
}

static int parse_parallel_devices(ConfigParser *p, const char *value) {
        uint64_t n;
        int r = parse_unsigned(value, PARALLEL_DEVICES_MAX, &n);

        if (r < 0 || n == 0)
                return -EINVAL;
        p->config->parallel_devices = (unsigned) n;
        return 0;
}

/* Defines a parser for keys whose values are the words of an enum. Another word gives _X_INVALID, which is -EINVAL. */
#define DEFINE_WORD_PARSER(key, words, field)                                                                          \
        static int parse_##key(ConfigParser *p, const char *value) {                                                   \
                int word = (int) words##_from_string(value);                                                           \
                                                                                                                       \
                if (word < 0)                                                                                          \
                        return word;                                                                                   \
                p->config->field = word;                                                                               \
                return 0;                                                                                              \
        }

DEFINE_WORD_PARSER(hypervisor, hypervisor, hypervisor)
DEFINE_WORD_PARSER(after_release, after_release, after_release)
DEFINE_WORD_PARSER(iommufd, iommufd_mode, iommufd)
DEFINE_WORD_PARSER(bind, pool_bind, pools[p->pool].bind)
DEFINE_WORD_PARSER(numa_policy, numa_policy, pools[p->pool].numa)
DEFINE_WORD_PARSER(vf_placement, vf_placement, pools[p->pool].placement)
DEFINE_WORD_PARSER(scheduler, pool_scheduler, pools[p->pool].scheduler)
DEFINE_WORD_PARSER(vf_identity, vf_identity, pools[p->pool].identity)
DEFINE_WORD_PARSER(reset_method, reset_method, pools[p->pool].reset_method)
DEFINE_WORD_PARSER(kind, remote_kind, services[p->service].kind)

static int parse_confidential_mode(ConfigParser *p, const char *value) {
        ConfidentialMode mode = confidential_mode_from_string(value);

        if ((int) mode < 0)
                return (int) mode;
        p->config->pools[p->pool].confidential_mode = mode;
        p->config->pools[p->pool].confidential_place = (ConfigPlace) { p->file, p->line };
        return 0;
}

static int parse_housekeeping(ConfigParser *p, const char *value) {
        return cpuset_parse(value, &p->config->housekeeping);
}

static int parse_reserve_memory(ConfigParser *p, const char *value) {
        return parse_size(value, &p->config->reserve_memory);
}

static int parse_guest_nodes(ConfigParser *p, const char *value) {
        uint64_t n;
        int r = parse_unsigned(value, GUEST_NODES_MAX, &n);

        if (r < 0 || n == 0)
                return -EINVAL;
        p->config->guest_nodes = (unsigned) n;
        return 0;
}

static int parse_spare_ports(ConfigParser *p, const char *value) {
        uint64_t n;
        int r = parse_unsigned(value, CONFIG_SPARE_MAX, &n);

        if (r == 0)
                p->config->spare_ports = (unsigned) n;
        return r;
}

static int parse_shared_memory_group(ConfigParser *p, const char *value) {
        size_t len = strspn(value, DRIVER_NAME ".");

        if (len == 0 || len > GROUP_NAME_MAX || value[len])
                return -EINVAL;
        return string_copy(&p->config->shared_memory_group, value);
}

/* Parses an absolute path that contains %n exactly once, or nothing. %n becomes the name of a region, because each
 * region has its own server. */
static int parse_shared_memory_server(ConfigParser *p, const char *value) {
        const char *name = strstr(value, "%n");
        size_t before = strspn(value, DRIVER_NAME "./");

        if (!*value)
                return string_copy(&p->config->shared_memory_server, NULL);
        if (*value != '/' || strlen(value) > SERVER_MAX || !name || value + before != name ||
            name[2 + strspn(name + 2, DRIVER_NAME "./")] || strstr(value, "/.."))
                return -EINVAL;
        return string_copy(&p->config->shared_memory_server, value);
}

static bool interface_glob_is_valid(const char *glob) {
        size_t len = strspn(glob, INTERFACE_GLOB);

        return len > 0 && len <= INTERFACE_GLOB_MAX && !glob[len] && !streq(glob, "!");
}

static int keep_interface(Config *c, const char *glob) {
        if (!interface_glob_is_valid(glob) || c->n_keep_interfaces >= CONFIG_INTERFACES_MAX)
                return -EINVAL;
        if (ARRAY_RESERVE(c->keep_interfaces, c->n_keep_interfaces) < 0)
                return -ENOMEM;
        c->keep_interfaces[c->n_keep_interfaces] = NULL;
        if (string_copy(&c->keep_interfaces[c->n_keep_interfaces], glob) < 0)
                return -ENOMEM;
        c->n_keep_interfaces++;
        return 0;
}

/* Parses KeepInterfaces=. A broken list withholds all devices, because it is unknown which devices to keep for the
 * host. */
static int parse_keep_interfaces(ConfigParser *p, const char *value) {
        _cleanup_free_ char *copy = strdup(value);
        char *rest = copy, *glob;
        Config *c = p->config;
        int r = 0, told;

        if (!copy)
                return -ENOMEM;
        while (!*value && c->n_keep_interfaces > 0)
                free(c->keep_interfaces[--c->n_keep_interfaces]);
        while (r >= 0 && (glob = string_next_word(&rest)))
                r = keep_interface(c, glob);
        told = r == -EINVAL ? parser_hold_back(p, "A KeepInterfaces= line could not be read") : 0;
        return told < 0 ? told : r;
}

static int parse_yes(const char *value, bool *ret) {
        if (!streq(value, "yes") && !streq(value, "no"))
                return -EINVAL;
        *ret = streq(value, "yes");
        return 0;
}

static int parse_one_time_use(ConfigParser *p, const char *value) {
        return parse_yes(value, &p->config->pools[p->pool].one_time_use);
}

static int parse_allow_no_reset(ConfigParser *p, const char *value) {
        return parse_yes(value, &p->config->pools[p->pool].allow_no_reset);
}

static int parse_fabric(ConfigParser *p, const char *value) {
        return parse_yes(value, &p->config->pools[p->pool].fabric);
}

/* Parses the address of Fabric Manager: HOST:PORT, an absolute path, or nothing. */
static int parse_manager(ConfigParser *p, const char *value) {
        size_t host = strspn(value, DRIVER_NAME ".");
        uint64_t port;

        if (*value && strlen(value) > MANAGER_MAX)
                return -EINVAL;
        if (*value == '/' ? value[strspn(value, DRIVER_NAME "./")] || strstr(value, "/..")
                          : *value && (host == 0 || value[host] != ':' ||
                                       parse_unsigned(value + host + 1, UINT16_MAX, &port) < 0 || port == 0))
                return -EINVAL;
        return string_copy(&p->config->fabric_manager, *value ? value : NULL);
}

/* Parses Partitions=: the name of a machine model, whose partitions replace those of earlier lines. */
static int parse_partitions(ConfigParser *p, const char *value) {
        if (*value)
                return fabric_table_of(value, &p->config->fabric);
        p->config->fabric.n = 0;
        return 0;
}

/* Parses Partition=, such as "3=1,3": the id of a partition, and the module ids of its GPUs. */
static int parse_partition(ConfigParser *p, const char *value) {
        const char *list = strchr(value, '=');
        _cleanup_free_ char *text = list ? strndup(value, (size_t) (list - value)) : NULL;
        uint64_t id, modules = 0;
        CpuSet set;
        int module = -1;

        if (!*value)
                return parse_partitions(p, value);
        if (!list)
                return -EINVAL;
        if (!text)
                return -ENOMEM;
        if (parse_unsigned(text, FABRIC_ID_MAX, &id) < 0 || cpuset_parse(list + 1, &set) < 0)
                return -EINVAL;
        while ((module = cpuset_next(&set, (unsigned) (module + 1))) >= 0) {
                if (module == 0 || module > (int) FABRIC_MODULE_MAX)
                        return -EINVAL;
                modules |= fabric_bit((unsigned) module);
        }
        return modules == 0 ? -EINVAL : fabric_table_add(&p->config->fabric, (unsigned) id, modules);
}

/* Parses Module=, such as "0000:1b:00.0=5". If another GPU already has this module id, the line is ignored. */
static int parse_module(ConfigParser *p, const char *value) {
        const char *number = strchr(value, '=');
        _cleanup_free_ char *text = number ? strndup(value, (size_t) (number - value)) : NULL;
        Config *c = p->config;
        PciAddress address;
        uint64_t module;
        size_t at = 0;

        if (!*value) {
                c->n_modules = 0;
                return 0;
        }
        if (!number)
                return -EINVAL;
        if (!text)
                return -ENOMEM;
        if (pci_address_parse(text, &address) < 0 || address.instance > 0 ||
            parse_unsigned(number + 1, FABRIC_MODULE_MAX, &module) < 0 || module == 0)
                return -EINVAL;
        for (size_t i = 0; i < c->n_modules; i++)
                if (c->modules[i].module == module && !pci_address_equal(c->modules[i].address, address))
                        return parser_problem(p, "Module= is ignored: %s has module id %u already.",
                                              PCI_ADDRESS_STR(c->modules[i].address), (unsigned) module);
        while (at < c->n_modules && !pci_address_equal(c->modules[at].address, address))
                at++;
        c->n_modules = MAX(c->n_modules, at + 1);
        c->modules[at] = (ConfigModule) { address, (unsigned) module };
        return 0;
}

/* Parses a URI of libvirt: a scheme, "://" and printable ASCII characters without spaces; or nothing. */
static int parse_libvirt(ConfigParser *p, const char *value) {
        size_t scheme = strspn(value, "abcdefghijklmnopqrstuvwxyz+");

        if (*value && (scheme == 0 || strncmp(value + scheme, "://", 3) != 0 || strchr(value, ' ') ||
                       !text_is_ascii(value, strlen(value)) || !text_is_clean(value)))
                return -EINVAL;
        p->config->libvirt_given = true;
        return string_copy(&p->config->libvirt, *value ? value : NULL);
}

static int add_service(Pool *pool, const char *name) {
        if (!service_name_is_valid(name) || pool->n_stop_services >= CONFIG_SERVICES_MAX)
                return -EINVAL;
        if (ARRAY_RESERVE(pool->stop_services, pool->n_stop_services) < 0)
                return -ENOMEM;
        pool->stop_services[pool->n_stop_services] = NULL;
        if (string_copy(&pool->stop_services[pool->n_stop_services], name) < 0)
                return -ENOMEM;
        pool->n_stop_services++;
        return 0;
}

/* Parses StopServices=. A line replaces the list of an earlier line, because the order of the services matters. An
 * invalid name, or a line with too many names, empties the list. */
static int parse_stop_services(ConfigParser *p, const char *value) {
        Pool *pool = &p->config->pools[p->pool];
        _cleanup_free_ char *copy = strdup(value);
        char *rest = copy, *name;
        int r = 0;

        if (!copy)
                return -ENOMEM;
        while (pool->n_stop_services > 0)
                free(pool->stop_services[--pool->n_stop_services]);
        while (r == 0 && (name = string_next_word(&rest)))
                r = add_service(pool, name);
        while (r < 0 && pool->n_stop_services > 0)
                free(pool->stop_services[--pool->n_stop_services]);
        return r;
}

/* Parses CleanerCommand=, whose words are separated by spaces. Quotes, '`', '$' and '\' are refused, because no shell
 * interprets them. */
static int parse_cleaner(ConfigParser *p, const char *value) {
        Pool *pool = &p->config->pools[p->pool];
        _cleanup_free_ char *copy = strdup(value);
        char *rest = copy;
        unsigned n = 0;

        if (!copy)
                return -ENOMEM;
        if (*value && (value[0] != '/' || strpbrk(value, "\"'`$\\")))
                return -EINVAL;
        while (string_next_word(&rest))
                n++;
        if (n > CLEANER_WORDS_MAX)
                return -EINVAL;
        return string_copy(&pool->cleaner, *value ? value : NULL);
}

static int parse_virtual_functions(ConfigParser *p, const char *value) {
        bool external = streq(value, "external");
        uint64_t n = 0;
        int r = external ? 0 : parse_unsigned(value, VIRTUAL_FUNCTIONS_MAX, &n);

        if (r < 0)
                return r;
        p->config->pools[p->pool].virtual_functions = (unsigned) n;
        p->config->pools[p->pool].external = external;
        p->config->pools[p->pool].virtual_functions_place = (ConfigPlace) { p->file, p->line };
        return 0;
}

/* Parses VfAttributes=. Adds the problem of a wrong value itself. */
static int parse_vf_attributes(ConfigParser *p, const char *value) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes v;
        int r = vf_attributes_parse_wanted(value, &v, &problem);

        if (r == -EINVAL)
                return parser_problem(p, "%s", problem);
        if (r < 0)
                return r;
        if (v.set & VF_IDENTITY_BITS)
                return parser_problem(
                        p, "VfAttributes= applies to all VFs of the pool, so it cannot set mac=, node-guid=, "
                           "port-guid= or second-port-guid=: set them in the request; VfIdentity= sets the "
                           "default.");
        p->config->pools[p->pool].attributes = v;
        return 0;
}

static int parse_vgpu_type(ConfigParser *p, const char *value) {
        Pool *pool = &p->config->pools[p->pool];

        if (*value && !vgpu_name_is_valid(value))
                return -EINVAL;
        pool->vgpu_type_place = (ConfigPlace) { p->file, p->line };
        return string_copy(&pool->vgpu_type, *value ? value : NULL);
}

/* Parses "ib,eth", the types of the first and the second port; or a single type; or nothing. */
static int parse_port_types(ConfigParser *p, const char *value) {
        Pool *pool = &p->config->pools[p->pool];
        PortType types[PORT_TYPES_MAX];
        size_t n = 0;

        while (*value) {
                _cleanup_free_ char *word = strndup(value, strcspn(value, ","));

                if (!word)
                        return -ENOMEM;
                if (n == ELEMENTSOF(types))
                        return -EINVAL;
                types[n] = port_type_from_string(word);
                value += strlen(word);
                /* After a comma a type must follow. */
                if (types[n++] == _PORT_TYPE_INVALID || (*value && !*++value))
                        return -EINVAL;
        }
        memcpy(pool->port_types, types, n * sizeof(*types));
        pool->n_port_types = n;
        pool->port_types_place = (ConfigPlace) { p->file, p->line };
        return 0;
}

/* Adds a Match= line, or the problem because of which it is ignored. Only the literal line "Match=" empties the list,
 * so that no exclusion is lost by mistake. */
static int add_match(ConfigParser *p, const char *value, Match **matches, size_t *n) {
        _cleanup_free_ char *problem = NULL;
        Match m;
        int r;

        if (p->resets) {
                while (*n > 0)
                        match_done(&(*matches)[--*n]);
                return 0;
        }
        if (*n >= CONFIG_MATCHES_MAX)
                return parser_problem(p, "There are more than %u Match= lines in this section, including other files.",
                                      CONFIG_MATCHES_MAX);

        r = match_parse(value, &m, &problem);
        if (r == -EINVAL)
                return parser_problem(p, "%s%s", problem,
                                      p->section == SECTION_EXCLUDE ? " No device is offered until it is fixed." : "");
        if (r < 0)
                return r;

        if (ARRAY_RESERVE(*matches, *n) < 0) {
                match_done(&m);
                return -ENOMEM;
        }
        m.place = (ConfigPlace) { p->file, p->line };
        (*matches)[(*n)++] = m;
        return 0;
}

static int parse_pool_match(ConfigParser *p, const char *value) {
        Pool *pool = &p->config->pools[p->pool];

        return add_match(p, value, &pool->matches, &pool->n_matches);
}

static int parse_exclude_match(ConfigParser *p, const char *value) {
        return add_match(p, value, &p->config->excludes, &p->config->n_excludes);
}

/* Sets the number of slots of an endpoint. A later line for the endpoint replaces the number, so that a drop-in file
 * can take an endpoint out of service. */
static int set_endpoint(ConfigParser *p, const char *name, unsigned slots) {
        RemoteService *service = &p->config->services[p->service];
        size_t at = 0;

        for (size_t i = 0; i < p->config->n_services; i++)
                for (size_t k = 0; k < p->config->services[i].n_endpoints && i != p->service; k++)
                        if (streq(p->config->services[i].endpoints[k].name, name))
                                return parser_problem(p, "Endpoint= is ignored: [Service %s] has %s already.",
                                                      p->config->services[i].name, name);
        while (at < service->n_endpoints && !streq(service->endpoints[at].name, name))
                at++;
        if (at == REMOTE_ENDPOINTS_MAX)
                return parser_problem(p, "Endpoint= is ignored: a service has at most %u endpoints.",
                                      REMOTE_ENDPOINTS_MAX);
        service->n_endpoints = MAX(service->n_endpoints, at + 1);
        service->endpoints[at].slots = slots;
        memcpy(service->endpoints[at].name, name, strlen(name) + 1);
        return 0;
}

/* Parses Endpoint=, such as "gpu1.example.org:9999 slots=2". */
static int parse_endpoint(ConfigParser *p, const char *value) {
        _cleanup_free_ char *copy = strdup(value);
        char *rest = copy, *name, *slots;
        uint64_t n;

        if (!copy)
                return -ENOMEM;
        if (!*value) {
                p->config->services[p->service].n_endpoints = 0;
                return 0;
        }
        name = string_next_word(&rest);
        slots = string_next_word(&rest);
        for (char *c = name; c && *c; c++)
                if (*c >= 'A' && *c <= 'Z')
                        *c += 'a' - 'A';
        /* Each endpoint must have only one valid name, so a port has no leading zero, and a host name no dot at its
         * end. */
        if (!slots || string_next_word(&rest) || !endpoint_is_valid(name) || strstr(name, ":0") || strstr(name, ".:") ||
            strncmp(slots, "slots=", 6) != 0 || parse_unsigned(slots + 6, ENDPOINT_SLOTS_MAX, &n) < 0)
                return -EINVAL;
        return set_endpoint(p, name, (unsigned) n);
}

static int parse_health(ConfigParser *p, const char *value) {
        RemoteHealth health = *value ? remote_health_from_string(value) : REMOTE_HEALTH_NONE;

        if (health < 0)
                return -EINVAL;
        p->config->services[p->service].health = health;
        return 0;
}

static int parse_via(ConfigParser *p, const char *value) {
        if (*value && !pool_name_is_valid(value))
                return -EINVAL;
        return string_copy(&p->config->services[p->service].via, *value ? value : NULL);
}

/* Returns the first '%' in variables that begins no known placeholder; NULL: there is none. */
static const char *find_unknown_placeholder(const char *variables) {
        for (const char *at = variables; (at = strchr(at, '%')); at += 2)
                if (!at[1] || !strchr("hpn", at[1]))
                        return at;
        return NULL;
}

static int parse_variables(ConfigParser *p, const char *value) {
        const char *unknown = find_unknown_placeholder(value);

        /* From 0x80 on, unknown[1] is the first byte of a UTF-8 character, which %.2s would split. */
        if (unknown && (unsigned char) unknown[1] < 0x80)
                return parser_problem(p, "Variables= is ignored: '%.2s' is no placeholder; known: %%h, %%p and %%n.",
                                      unknown);
        if (*value && !variables_are_valid(value))
                return -EINVAL;
        return string_copy(&p->config->services[p->service].variables, *value ? value : NULL);
}

static const struct Key {
        Section section;
        const char *name;
        int (*parse)(ConfigParser *p, const char *value);
        const char *fallback; /* the text that is parsed for an empty assignment, "KEY=" */
        const char *expected;
} keys[] = {
        { SECTION_DAEMON, "Hypervisor", parse_hypervisor, "kvm", "kvm or xen" },
        { SECTION_DAEMON, "VfioDriver", parse_vfio_driver, "auto",
          "auto or the name of a kernel driver, as in vfio-pci" },
        { SECTION_DAEMON, "JobTimeoutSec", parse_job_timeout, "60", "a number of seconds from 1 to 3600" },
        { SECTION_DAEMON, "ParallelDevices", parse_parallel_devices, "16", "a number from 1 to 64" },
        { SECTION_DAEMON, "HousekeepingCpus", parse_housekeeping, "", "a list of CPUs, as in 0-3,16" },
        { SECTION_DAEMON, "ReserveMemory", parse_reserve_memory, "1G", "a size, as in 512M or 2G" },
        { SECTION_DAEMON, "SparePorts", parse_spare_ports, "1", "a number from 0 to 8" },
        { SECTION_DAEMON, "Iommufd", parse_iommufd, "auto", "auto, no or yes" },
        { SECTION_DAEMON, "GuestNodes", parse_guest_nodes, "16", "a number from 1 to 1024" },
        { SECTION_DAEMON, "AfterRelease", parse_after_release, "restore", "restore or keep" },
        { SECTION_DAEMON, "KeepInterfaces", parse_keep_interfaces, "",
          "names of network interfaces with spaces between, as in eth0 storage*" },
        { SECTION_DAEMON, "Libvirt", parse_libvirt, "", "a URI of libvirt, as in qemu:///system" },
        { SECTION_DAEMON, "SharedMemoryGroup", parse_shared_memory_group, "kvm", "the name of a group, as in kvm" },
        { SECTION_DAEMON, "SharedMemoryServer", parse_shared_memory_server, "",
          "an absolute path with %n in it, as in /run/ivshmem/%n.sock" },
        { SECTION_FABRIC, "Manager", parse_manager, "",
          "a host and a port, as in 127.0.0.1:6666, or the absolute path of a socket" },
        { SECTION_FABRIC, "Partitions", parse_partitions, "", "hgx-a100, hgx-h100 or hgx-b200" },
        { SECTION_FABRIC, "Partition", parse_partition, "",
          "the id of a partition and the module ids of its GPUs, as in 3=1,3" },
        { SECTION_FABRIC, "Module", parse_module, "", "the address of a GPU and its module id, as in 0000:1b:00.0=5" },
        { SECTION_POOL, "Match", parse_pool_match, "", "terms" },
        { SECTION_POOL, "VirtualFunctions", parse_virtual_functions, "0", "a number from 0 to 65535, or external" },
        { SECTION_POOL, "PortTypes", parse_port_types, "", "ib, eth or auto, or two of them with a comma between" },
        { SECTION_POOL, "Bind", parse_bind, "allocate", "allocate or start" },
        { SECTION_POOL, "NumaPolicy", parse_numa_policy, "preferred", "preferred, legacy, socket, required or single" },
        { SECTION_POOL, "VfPlacement", parse_vf_placement, "spread", "spread or pack" },
        { SECTION_POOL, "Scheduler", parse_scheduler, "none", "none, placement, kubernetes or nova" },
        { SECTION_POOL, "OneTimeUse", parse_one_time_use, "no", "yes or no" },
        { SECTION_POOL, "ResetMethod", parse_reset_method, "default",
          "default, device_specific, acpi, flr, af_flr, pm, bus or cxl_bus" },
        { SECTION_POOL, "AllowNoReset", parse_allow_no_reset, "no", "yes or no" },
        { SECTION_POOL, "Fabric", parse_fabric, "no", "yes or no" },
        { SECTION_POOL, "ConfidentialMode", parse_confidential_mode, "off", "off, on, devtools or protected-pcie" },
        { SECTION_POOL, "StopServices", parse_stop_services, "",
          "names of systemd units with spaces between, as in nvidia-dcgm.service nvidia-persistenced.service" },
        { SECTION_POOL, "CleanerCommand", parse_cleaner, "",
          "an absolute path and at most 15 arguments with spaces between, without quotes, backslashes or $" },
        { SECTION_POOL, "VgpuType", parse_vgpu_type, "", "the name of a vGPU type, as in NVIDIA H100L-12C" },
        { SECTION_POOL, "VfAttributes", parse_vf_attributes, "", "attributes" },
        { SECTION_POOL, "VfIdentity", parse_vf_identity, "fresh", "fresh or stable" },
        { SECTION_SERVICE, "Kind", parse_kind, "custom", "rcuda, gvirtus, cricket, lupine or custom" },
        { SECTION_SERVICE, "Endpoint", parse_endpoint, "",
          "a host, a port and slots from 0 to 1024, as in gpu1.example.org:9999 slots=2" },
        { SECTION_SERVICE, "Health", parse_health, "none", "none or tcp" },
        { SECTION_SERVICE, "Via", parse_via, "", "the name of a pool, as in ib-vf" },
        { SECTION_SERVICE, "Variables", parse_variables, "",
          "NAME=VALUE with spaces between, without quotes, backslashes or $, as in SERVER=%h:%p" },
        { SECTION_EXCLUDE, "Match", parse_exclude_match, "", "terms" },
};

static const char *const section_names[_SECTION_MAX] = {
        [SECTION_DAEMON] = "[Daemon]",   [SECTION_FABRIC] = "[Fabric]",   [SECTION_POOL] = "[Pool]",
        [SECTION_SERVICE] = "[Service]", [SECTION_EXCLUDE] = "[Exclude]",
};

bool config_may_be_header(const char *text) {
        return strpbrk(text, "[]") || strcasestr(text, "exclude");
}

static int unknown_key(ConfigParser *p, const char *name) {
        _cleanup_free_ char *known = NULL;

        if (config_may_be_header(name) && parser_hold_back_header(p) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (keys[i].section == p->section &&
                    string_replace(&known, "%s%s%s=", known ? known : "", known ? ", " : "", keys[i].name) < 0)
                        return -ENOMEM;
        return parser_problem(p, "Unknown key '%s=' in %s; known: %s.", name, section_names[p->section], known);
}

/* Handles a key in an ignored section, whose header was reported already. */
static int ignored_key(ConfigParser *p, const char *name) {
        if (!p->suspect || !streq(name, "Match"))
                return 0;
        return parser_hold_back(p, "A Match= line under an unknown header, perhaps a misspelt [Exclude], could not be "
                                   "read");
}

static int key_without_section(ConfigParser *p, const char *name) {
        if (streq(name, "Match") && parser_hold_back(p, "A Match= line before any section, perhaps of an [Exclude] "
                                                        "that was lost, could not be read") < 0)
                return -ENOMEM;
        return parser_problem(
                p,
                "'%s=' is outside any section; expected [Daemon], [Fabric], [Pool NAME], [Service NAME] or [Exclude] "
                "first.",
                name);
}

int config_parse_key(ConfigParser *p, const char *name, const char *value) {
        if (p->section == SECTION_IGNORED)
                return ignored_key(p, name);
        if (p->section == SECTION_NONE)
                return key_without_section(p, name);

        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                int r;

                if (keys[i].section != p->section || !streq(keys[i].name, name))
                        continue;
                r = keys[i].parse(p, *value ? value : keys[i].fallback);
                if (r < 0 && r != -ENOMEM)
                        return parser_problem(p, "%s=%s is not understood: expected %s.", name, value,
                                              keys[i].expected);
                return r;
        }
        return unknown_key(p, name);
}
