/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "wanted.h"

#include <errno.h>
#include <stdio.h>

#include "model/inventory.h"
#include "model/json-parse.h"
#include "provider-name.h"
#include "util/strings.h"

#define MIB ((uint64_t) 1 << 20)

typedef struct Builder {
        const WantedOptions *options;
        json_object *nodes, *devices, *allocations, *pools; /* members of the daemon's document */
        Tree *tree;
} Builder;

static int add_trait(Provider *p, const char *kind, const char *value) {
        char trait[TREE_NAME_SIZE];

        (void) snprintf(trait, sizeof(trait), TRAIT_PREFIX "%s%s", kind, value);
        name_make_class(trait);
        return provider_add_trait(p, trait);
}

/* Adds a provider. Returns NULL when out of memory, also if name is NULL. */
static Provider *add_named(Builder *b, const char *name, const char *parent) {
        char uuid[TREE_UUID_SIZE];

        if (!name)
                return NULL;
        tree_provider_uuid(name, uuid);
        return tree_add_provider(b->tree, name, uuid, parent);
}

/* Adds the provider HOST_SUFFIX. */
static Provider *add_provider(Builder *b, const char *suffix, const char *parent) {
        _cleanup_free_ char *name = name_make(b->options->host, suffix);

        return add_named(b, name, parent);
}

/* Returns the uuid of the NUMA node's provider, for use as a parent; if the node is unknown, the uuid of the root. */
static const char *node_parent(Builder *b, json_object *id) {
        _cleanup_free_ char *name = NULL;
        const Provider *p;

        if (!id || !(name = string_format("%s_NUMA%d", b->options->host, json_object_get_int(id))))
                return b->options->root;
        p = tree_find_name(b->tree, name);
        return p ? p->uuid : b->options->root;
}

static int parse_cpus(json_object *o, const char *key, CpuSet *ret) {
        return cpuset_parse(member_text(o, key) ?: "", ret) < 0 ? -EBADMSG : 0;
}

/* Returns the page size of the allocation if it is one of the node's hugepage sizes, else 0. */
static uint64_t hugepage_size(json_object *allocation, json_object *pages) {
        uint64_t size = member_size(allocation, "page_size");

        for (size_t i = 0; i < json_length(pages); i++)
                if (member_size(json_at(pages, i), "size") == size)
                        return size;
        return 0;
}

static uint64_t memory_on(json_object *allocation, int node) {
        char key[16];

        (void) snprintf(key, sizeof(key), "%d", node);
        return member_size(member(allocation, "memory"), key);
}

static unsigned cpus_on(json_object *allocation, const CpuSet *node) {
        CpuSet cpus, others;

        if (parse_cpus(allocation, "cpus", &cpus) < 0)
                return 0;
        others = cpus;
        cpuset_subtract(&others, node);
        return cpuset_count(&cpus) - cpuset_count(&others);
}

/* Adds a class with this total to a provider. What is neither available nor used by allocations is reserved. */
static int add_counted(Provider *p, const char *class, uint64_t total, uint64_t available, uint64_t used) {
        Resource *r;

        if (total == 0)
                return 0;
        r = provider_add_resource(p, class);
        if (!r)
                return -ENOMEM;
        r->total = (int64_t) total;
        r->reserved = (int64_t) (total > available + used ? total - available - used : 0);
        return 0;
}

/* Adds an amount to the claim of the allocation. 0 or a negative errno. */
static int claim(Builder *b, json_object *allocation, const char *provider, const char *class, uint64_t amount) {
        const char *id = member_text(allocation, "id"), *consumer = member_text(allocation, "consumer");
        Claim *c;

        if (amount == 0)
                return 0;
        c = id && strlen(id) < TREE_UUID_SIZE ? tree_add_claim(b->tree, id) : NULL;
        if (!c)
                return -ENOMEM;
        if (consumer && strlen(consumer) < sizeof(c->covered_by))
                (void) strcpy(c->covered_by, consumer);
        return claim_add(c, provider, class, (int64_t) amount);
}

static int add_cpus(Builder *b, Provider *p, json_object *node) {
        CpuSet all, available;
        uint64_t used = 0;
        int r = 0;

        if (parse_cpus(node, "cpus", &all) < 0 || parse_cpus(node, "cpus_free", &available) < 0)
                return -EBADMSG;
        for (size_t i = 0; r >= 0 && i < json_length(b->allocations); i++) {
                unsigned n = cpus_on(json_at(b->allocations, i), &all);

                used += n;
                r = claim(b, json_at(b->allocations, i), p->uuid, "PCPU", n);
        }
        return r < 0 ? r : add_counted(p, "PCPU", cpuset_count(&all), cpuset_count(&available), used);
}

/* Adds the memory of a node to its provider: ordinary memory in MiB (page_size 0), or a number of hugepages of this
 * size. */
static int add_memory(Builder *b, Provider *p, json_object *node, uint64_t page_size, uint64_t total,
                      uint64_t available) {
        char class[TREE_NAME_SIZE] = "MEMORY_MB";
        uint64_t unit = page_size ?: MIB, used = 0;
        int r = 0;

        if (page_size > 0)
                (void) snprintf(class, sizeof(class), "CUSTOM_HUGEPAGES_%juKB", (uintmax_t) page_size / 1024);
        for (size_t i = 0; r >= 0 && i < json_length(b->allocations); i++) {
                json_object *a = json_at(b->allocations, i);
                uint64_t bytes = memory_on(a, (int) member_number(node, "id"));
                uint64_t n = hugepage_size(a, member(node, "pages")) == page_size ? (bytes + unit - 1) / unit : 0;

                used += n;
                r = claim(b, a, p->uuid, class, n);
        }
        return r < 0 ? r : add_counted(p, class, total, available, used);
}

static int add_node(Builder *b, json_object *node) {
        json_object *pages = member(node, "pages");
        char suffix[32];
        Provider *p;
        int r;

        if (!json_object_is_type(pages, json_type_array))
                return -EBADMSG;
        (void) snprintf(suffix, sizeof(suffix), "NUMA%d", (int) member_number(node, "id"));
        p = add_provider(b, suffix, b->options->root);
        if (!p || provider_add_trait(p, TRAIT_NUMA) < 0 || add_trait(p, "", "") < 0)
                return -ENOMEM;
        if (b->options->devices_only)
                return 0;
        r = add_cpus(b, p, node);
        if (r < 0)
                return r;
        r = add_memory(b, p, node, 0, member_size(node, "memory") / MIB, member_size(node, "memory_free") / MIB);
        for (size_t i = 0; r >= 0 && i < json_length(pages); i++) {
                json_object *o = json_at(pages, i);

                r = add_memory(b, p, node, member_size(o, "size"), member_size(o, "total"), member_size(o, "free"));
        }
        return r;
}

/*
 * Finds the upstream port of the first switch on the path from the root port to the device. The path must be "/", the
 * root port, an upstream and a downstream port for each switch, and the device. Returns false if there is no switch.
 */
static bool find_switch(const char *path, char *ret, size_t size) {
        const char *port = *path ? strchr(path + 1, '/') : NULL; /* the slash after the root port */
        const char *end = port ? strchr(port + 1, '/') : NULL;   /* the slash after the upstream port */

        if (!end || !strchr(end + 1, '/') || (size_t) (end - port) > size)
                return false;
        memcpy(ret, port + 1, (size_t) (end - port - 1));
        ret[end - port - 1] = '\0';
        return true;
}

static json_object *find_device(const Builder *b, const char *address) {
        for (size_t i = 0; address && i < json_length(b->devices); i++)
                if (streq_ptr(member_text(json_at(b->devices, i), "address"), address))
                        return json_at(b->devices, i);
        return NULL;
}

/* Adds the trait of the root bus, whose name ends the first n bytes of the path. Other names may precede it there. */
static int add_root(Provider *p, const char *path, size_t n) {
        const char *slash = memrchr(path, '/', n), *name = slash ? slash + 1 : path;
        char root[64];

        (void) snprintf(root, sizeof(root), "%.*s", (int) (path + n - name), name);
        return add_trait(p, "_ROOT_", root);
}

/* Adds the provider of a card (for a VF, of its PF) and, before it, the provider of the switch above the card. Without
 * a switch, the NUMA node's provider is the parent. */
static Provider *add_card(Builder *b, json_object *card, const char *address) {
        char port[64], suffix[96];
        bool is_missing = !card || streq_ptr(member_text(card, "state"), "missing");
        const char *path = (is_missing ? NULL : member_text(card, "path")) ?: "";
        size_t n = pci_path_host_length(path);
        const char *parent = node_parent(b, card ? member(card, "cpu_node") : NULL);
        bool has_switch = n > 0 && find_switch(path + n, port, sizeof(port));
        Provider *p;

        if (has_switch) {
                (void) snprintf(suffix, sizeof(suffix), "SWITCH_%s", port);
                p = add_provider(b, suffix, parent);
                if (!p || add_trait(p, "", "") < 0 || add_trait(p, "_SWITCH", "") < 0)
                        return NULL;
                parent = p->uuid;
        }
        p = add_provider(b, address, parent);
        if (!p || add_trait(p, "", "") < 0 || (has_switch && add_trait(p, "_SWITCH_", port) < 0))
                return NULL;
        if (n > 0 && add_root(p, path, n) < 0)
                return NULL;
        p->is_missing = is_missing;
        return p;
}

/* Returns true when the device is available, or is allocated and not failed. */
static bool in_service(json_object *device) {
        const char *state = member_text(device, "state") ?: "";

        return streq(state, "available") ||
               (member_text(device, "allocation") && (streq(state, "allocated") || streq(state, "reserved")));
}

static json_object *find_allocation(const Builder *b, const char *name) {
        for (size_t i = 0; name && i < json_length(b->allocations); i++)
                if (streq_ptr(member_text(json_at(b->allocations, i), "name"), name))
                        return json_at(b->allocations, i);
        return NULL;
}

static json_object *find_pool(const Builder *b, json_object *device) {
        const char *pool = member_text(device, "pool");

        return pool ? json_find(b->pools, "name", pool) : NULL;
}

static const char *scheduler_of(const Builder *b, json_object *device) {
        return member_text(find_pool(b, device), "scheduler") ?: "none";
}

/* Returns true when the agent reports the device: it is in a pool, and no other scheduler reports that pool. */
static bool is_reported(const Builder *b, json_object *device) {
        const char *scheduler = scheduler_of(b, device);

        return member_text(device, "pool") && (streq(scheduler, "none") || streq(scheduler, "placement"));
}

static bool is_one_time_use(json_object *pool) {
        json_object *traits = member(pool, "traits");

        for (size_t i = 0; i < json_length(traits); i++)
                if (streq_ptr(json_object_get_string(json_at(traits, i)), "one-time-use"))
                        return true;
        return false;
}

/* Adds the name of Nova's provider to Tree.cleaned if the device is clean and available: it is a whole device (Nova has
 * no one-time use for VFs), is in a pool with Scheduler=nova and OneTimeUse=yes, and has the state "available". */
static int add_cleaned(Builder *b, json_object *device) {
        _cleanup_free_ char *name = NULL;

        if (!streq(scheduler_of(b, device), "nova") || !is_one_time_use(find_pool(b, device)) ||
            member_text(device, "physical_function") || !streq_ptr(member_text(device, "state"), "available"))
                return 0;
        name = name_make(b->options->host, member_text(device, "address"));
        return name ? tree_add_cleaned(b->tree, name) : -ENOMEM;
}

static int add_device(Builder *b, json_object *device) {
        const char *pool = member_text(device, "pool"), *address = member_text(device, "address");
        const char *pf = member_text(device, "physical_function");
        json_object *allocation = find_allocation(b, member_text(device, "allocation"));
        char class[TREE_NAME_SIZE];
        Provider *p;
        Resource *r;

        if (!is_reported(b, device) || !address)
                return 0;
        p = add_card(b, pf ? find_device(b, pf) : device, pf ?: address);
        if (!p || add_trait(p, "_POOL_", pool) < 0)
                return -ENOMEM;
        name_device_class(device, class);
        r = provider_add_resource(p, class);
        if (!r)
                return -ENOMEM;
        r->total++;
        r->reserved += !in_service(device);
        return allocation ? claim(b, allocation, p->uuid, class, 1) : 0;
}

/*
 * Corrects the reserved amounts, in which each device out of service counts as 1. An allocated VF that is out of
 * service also counts in its claim; to count it twice would take a healthy VF of the same PF away. So this function
 * subtracts the VF from the reserved amount, unless all VFs of the PF are out of service.
 */
static void subtract_claimed(Builder *b) {
        for (size_t i = 0; i < json_length(b->devices); i++) {
                json_object *device = json_at(b->devices, i);
                const char *pf = member_text(device, "physical_function");
                char class[TREE_NAME_SIZE];
                Provider *p;
                Resource *r;

                if (!pf || !is_reported(b, device) || in_service(device) ||
                    !find_allocation(b, member_text(device, "allocation")))
                        continue;
                p = add_provider(b, pf, "");
                name_device_class(device, class);
                r = p ? provider_find_resource(p, class) : NULL;
                if (r && r->reserved < r->total)
                        r->reserved--;
        }
}

/* Adds to the allocation's claim the slots that the allocation has on this endpoint. */
static int claim_slots(Builder *b, json_object *allocation, const char *endpoint, const char *provider,
                       const char *class) {
        json_object *services = member(allocation, "services");
        int r = 0;

        for (size_t i = 0; r >= 0 && i < json_length(services); i++)
                if (streq_ptr(member_text(json_at(services, i), "endpoint"), endpoint))
                        r = claim(b, allocation, provider, class, member_size(json_at(services, i), "slots"));
        return r;
}

static int add_endpoint(Builder *b, const char *service, json_object *o) {
        const char *endpoint = member_text(o, "endpoint");
        uint64_t slots = member_size(o, "slots"), allocated = member_size(o, "allocated");
        _cleanup_free_ char *name = NULL;
        char class[TREE_NAME_SIZE];
        Provider *p;
        int r = 0;

        if (!endpoint)
                return -EBADMSG;
        name = name_make_endpoint(b->options->host, endpoint);
        name_slot_class(service, class);
        p = add_named(b, name, b->options->root);
        if (!p || add_trait(p, "", "") < 0 || add_trait(p, "_POOL_", service) < 0)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < json_length(b->allocations); i++)
                r = claim_slots(b, json_at(b->allocations, i), endpoint, p->uuid, class);
        if (r < 0)
                return r;
        /* An endpoint with a reason offers no slot: it is out of service, or more slots are allocated than it has now.
         * The total includes all allocated slots. */
        return add_counted(p, class, MAX(allocated, slots), member_text(o, "reason") ? 0 : slots, 0);
}

static int add_service(Builder *b, json_object *pool) {
        json_object *endpoints = member(pool, "endpoints");
        const char *name = member_text(pool, "name");
        int r = name ? 0 : -EBADMSG;

        for (size_t i = 0; r >= 0 && i < json_length(endpoints); i++)
                r = add_endpoint(b, name, json_at(endpoints, i));
        return r;
}

int tree_wanted(json_object *describe, const WantedOptions *options, Tree **ret) {
        _cleanup_(cleanup_tree_free) Tree *tree = calloc(1, sizeof(*tree));
        Builder b = {
                .options = options,
                .nodes = member_array(describe, "nodes"),
                .devices = member_array(describe, "devices"),
                .allocations = member_array(describe, "allocations"),
                .pools = member_array(describe, "pools"),
                .tree = tree,
        };
        int r = 0;

        if (!b.nodes || !b.devices || !b.allocations || !b.pools)
                return -EBADMSG;
        if (!tree || !tree_add_provider(tree, options->host, options->root, ""))
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < json_length(b.nodes); i++)
                r = add_node(&b, json_at(b.nodes, i));
        for (size_t i = 0; r >= 0 && i < json_length(b.devices); i++)
                r = add_device(&b, json_at(b.devices, i));
        for (size_t i = 0; r >= 0 && i < json_length(b.devices); i++)
                r = add_cleaned(&b, json_at(b.devices, i));
        for (size_t i = 0; r >= 0 && i < json_length(b.pools); i++)
                r = add_service(&b, json_at(b.pools, i));
        if (r < 0)
                return r;
        subtract_claimed(&b);
        *ret = TAKE_PTR(tree);
        return 0;
}
