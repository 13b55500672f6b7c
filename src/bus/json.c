/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Refusals and the whole host as JSON. If memory for a value runs out, the value is null (model/json-value.h). */

#include "json.h"

#include "bus/capacity.h"
#include "json-internal.h"
#include "util/strings.h"

json_object *json_refusal(const Refusal *r) {
        json_object *o = json_object_new_object();

        json_object_object_add(o, "verdict", json_string_or_null(verdict_to_string(r->verdict)));
        json_object_object_add(o, "device", r->has_device ? json_address(r->device) : NULL);
        json_object_object_add(o, "message", json_string_or_null(r->message));
        json_object_object_add(o, "remedy", json_string_or_null(r->remedy));
        json_object_object_add(o, "nearest", json_string_or_null(r->nearest));
        return o;
}

static const char *group_role_text(GroupRole role) {
        switch (role) {
        case GROUP_ROLE_COMPANION:
                return "is assigned too, as another function of the card";
        case GROUP_ROLE_HOLD:
                return "is held on the driver for guests";
        case GROUP_ROLE_BLOCK:
                return "blocks the group";
        default:
                return "is left alone";
        }
}

/* Returns the role that `member`, another device of dev's IOMMU group, has in the allocation of dev or, if dev is not
 * allocated, would have in one. A member that another allocation has blocks the group. NULL if neither an allocation
 * nor the pool of dev decides the role. */
static const char *member_role(const HostView *view, const PciDevice *dev, const PciDevice *member) {
        const Allocation *holder = ledger_holder(view->ledger, dev->address),
                         *other = ledger_holder(view->ledger, member->address);

        if (other && other != holder)
                return group_role_text(GROUP_ROLE_BLOCK);
        if (other && allocation_find_device(holder, member->address)->role == DEVICE_ROLE_HELD)
                return group_role_text(GROUP_ROLE_HOLD);
        if (holder && !other)
                return group_role_text(pci_device_driver_is_harmless(member) ? GROUP_ROLE_LEAVE : GROUP_ROLE_BLOCK);
        /* Without a pool, dev will not be allocated. */
        return policy_pool(view->policy, dev) ? group_role_text(policy_group_role(view->policy, dev, member)) : NULL;
}

json_object *json_explain(const HostView *view, const PciDevice *dev) {
        json_object *o = json_device(view, dev), *group = json_object_new_array();
        const IommuGroup *g = inventory_find_group(view->inventory, dev->iommu_group);
        const PciDevice *port = NULL;

        for (size_t i = 0; g && i < g->n_members; i++) {
                const PciDevice *m = &view->inventory->devices[g->members[i]];
                json_object *member;

                if (m == dev)
                        continue;
                member = json_object_new_object();
                json_object_object_add(member, "address", json_address(m->address));
                json_object_object_add(member, "driver", json_string_or_null(m->driver));
                json_object_object_add(member, "role", json_string_or_null(member_role(view, dev, m)));
                (void) json_object_array_add(group, member);
        }
        json_object_object_add(o, "group", group);
        (void) inventory_path_is_isolated(view->inventory, dev, &port);
        json_object_object_add(o, "open_port", port ? json_address(port->address) : NULL);
        json_object_object_add(o, "read_only", json_string_or_null(view->ledger->read_only));
        return o;
}

static json_object *json_node(const HostView *view, const NumaNode *node) {
        json_object *o = json_object_new_object(), *pages = json_object_new_array(),
                    *distances = json_object_new_array();
        uint64_t memory_free = ledger_memory_offered(view->ledger, view->inventory, view->config, node, 0);
        CpuSet free_cpus;

        ledger_cpus_free(view->ledger, view->inventory, view->config, node, &free_cpus);
        json_object_object_add(o, "id", json_object_new_int(node->id));
        json_object_object_add(o, "cpus", json_cpus(&node->cpus));
        json_object_object_add(o, "cpus_free", json_cpus(&free_cpus));
        json_object_object_add(o, "memory", json_object_new_uint64(node->memory));
        json_object_object_add(o, "memory_free", json_object_new_uint64(memory_free));
        for (size_t i = 0; i < node->n_pages; i++) {
                json_object *p = json_object_new_object();
                uint64_t size = node->pages[i].size;
                uint64_t bytes = ledger_memory_offered(view->ledger, view->inventory, view->config, node, size);

                json_object_object_add(p, "size", json_object_new_uint64(size));
                json_object_object_add(p, "total", json_object_new_uint64(node->pages[i].total));
                json_object_object_add(p, "free", json_object_new_uint64(bytes / size));
                (void) json_object_array_add(pages, p);
        }
        for (size_t i = 0; i < view->inventory->n_nodes; i++)
                (void) json_object_array_add(distances, json_object_new_int64(node->distance[i]));
        json_object_object_add(o, "pages", pages);
        json_object_object_add(o, "distances", distances);
        return o;
}

/* Formats the version number of libvirt or QEMU as "11.3.0". NULL when unknown. */
static json_object *json_version(unsigned version) {
        _cleanup_free_ char *text = string_format("%u.%u.%u", version / 1000000, version / 1000 % 1000, version % 1000);

        return version > 0 ? json_string_or_null(text) : NULL;
}

static json_object *json_features(const LibvirtFeatures *f) {
        const struct {
                const char *name;
                bool has;
        } features[] = {
                { "maxphysaddr", f->maxphysaddr },
                { "driver-model", f->driver_model },
                { "iommufd", f->iommufd },
                { "acpi-nodeset", f->acpi_nodeset },
                { "fwcfg", f->fwcfg },
        };
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < ELEMENTSOF(features); i++)
                if (features[i].has)
                        (void) json_object_array_add(array, json_object_new_string(features[i].name));
        for (Confidential c = CONFIDENTIAL_NONE + 1; c < _CONFIDENTIAL_MAX; c++) {
                const char *name = confidential_libvirt_name(c);
                _cleanup_free_ char *firmware = string_format("%s" FIRMWARE_SUFFIX, name);

                if (f->security[c])
                        (void) json_object_array_add(array, json_object_new_string(name));
                if (f->firmware[c])
                        (void) json_object_array_add(array, json_string_or_null(firmware));
        }
        return array;
}

/* Returns what is known of libvirt. NULL when Libvirt= is empty, and for a recorded node. */
static json_object *json_libvirt(const LibvirtStatus *l, const LibvirtFeatures *f) {
        json_object *o;

        if (!l || !l->configured)
                return NULL;
        o = json_object_new_object();
        json_object_object_add(o, "unknown_since", l->reason ? json_object_new_uint64(l->since) : NULL);
        json_object_object_add(o, "reason", json_string_or_null(l->reason));
        json_object_object_add(o, "version", json_version(f->libvirt));
        json_object_object_add(o, "qemu_version", json_version(f->qemu));
        json_object_object_add(o, "features", json_features(f));
        return o;
}

static void add_counts(json_object *o, const DeviceCounts *counts) {
        const uint32_t *n = counts->n;

        json_object_object_add(o, "total", json_object_new_int64(n[DEVICE_COUNT_TOTAL]));
        json_object_object_add(o, "available", json_object_new_int64(n[DEVICE_COUNT_AVAILABLE]));
        json_object_object_add(o, "allocated", json_object_new_int64(n[DEVICE_COUNT_ALLOCATED]));
        json_object_object_add(o, "reserved", json_object_new_int64(n[DEVICE_COUNT_RESERVED]));
        json_object_object_add(o, "out_of_service", json_object_new_int64(n[DEVICE_COUNT_OUT_OF_SERVICE]));
}

static json_object *json_pool_nodes(const PoolCapacity *pool) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < pool->n_nodes; i++) {
                json_object *o = json_object_new_object();

                json_object_object_add(o, "id", pool->nodes[i].id < 0 ? NULL : json_object_new_int(pool->nodes[i].id));
                add_counts(o, &pool->nodes[i].counts);
                (void) json_object_array_add(array, o);
        }
        return array;
}

static json_object *json_models(const PoolCapacity *pool) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < pool->n_models; i++) {
                json_object *o = json_object_new_object();

                json_object_object_add(o, "vendor", json_hex(pool->models[i].vendor, 4));
                json_object_object_add(o, "device", json_hex(pool->models[i].device, 4));
                json_object_object_add(o, "total", json_object_new_int64(pool->models[i].n));
                (void) json_object_array_add(array, o);
        }
        return array;
}

static json_object *json_traits(const PoolCapacity *pool) {
        json_object *array = json_object_new_array();

        for (unsigned i = 0; i < _POOL_TRAIT_MAX; i++)
                if (pool->traits & 1U << i)
                        (void) json_object_array_add(array,
                                                     json_object_new_string(pool_trait_to_string((PoolTrait) i)));
        return array;
}

/* Returns a sentence: why the endpoint offers no slot. NULL if it offers its free slots. */
static char *endpoint_reason(const HostView *view, const RemoteService *s, const RemoteEndpoint *e, unsigned taken) {
        const char *down = endpoint_status_reason(view->endpoints, e->name), *via = config_via_problem(view->config, s);

        if (via)
                return string_format("It is out of service: Via= of its service names the pool '%s', %s.", s->via, via);
        if (e->slots == 0)
                return strdup("It is out of service: it has 0 slots.");
        if (down)
                return string_format("It is out of service: %s.", down);
        if (taken > e->slots)
                return string_format("%u slots are allocated, but it has %u: it offers none until allocations are "
                                     "released.",
                                     taken, e->slots);
        return NULL;
}

/* Lists the endpoints of a service. s NULL: a pool of devices, for which the list is NULL. */
static json_object *json_endpoints(const HostView *view, const RemoteService *s) {
        json_object *array = s ? json_object_new_array() : NULL;

        for (size_t i = 0; s && i < s->n_endpoints; i++) {
                const RemoteEndpoint *e = &s->endpoints[i];
                unsigned taken = ledger_slots(view->ledger, e->name);
                const char *health =
                        s->health == REMOTE_HEALTH_NONE
                                ? NULL
                                : endpoint_state_to_string(endpoint_status_state(view->endpoints, e->name));
                _cleanup_free_ char *reason = endpoint_reason(view, s, e, taken);
                json_object *o = json_object_new_object();

                json_object_object_add(o, "endpoint", json_object_new_string(e->name));
                json_object_object_add(o, "slots", json_object_new_int64(e->slots));
                json_object_object_add(o, "allocated", json_object_new_int64(taken));
                json_object_object_add(o, "health", json_string_or_null(health));
                json_object_object_add(o, "reason", json_string_or_null(reason));
                (void) json_object_array_add(array, o);
        }
        return array;
}

static json_object *json_pools(const HostView *view) {
        _cleanup_(cleanup_capacity_free) Capacity *c = capacity_new(view, NULL);
        json_object *array = c ? json_object_new_array() : NULL;

        for (size_t i = 0; c && i < c->n_pools; i++) {
                const Pool *pool = i < view->config->n_pools ? &view->config->pools[i] : NULL;
                const RemoteService *service = pool ? NULL : &view->config->services[i - view->config->n_pools];
                const char *scheduler = pool_scheduler_to_string(pool ? pool->scheduler : POOL_SCHEDULER_NONE);
                json_object *o = json_object_new_object();

                json_object_object_add(o, "name", json_object_new_string(c->pools[i].name));
                json_object_object_add(o, "scheduler", json_object_new_string(scheduler));
                json_object_object_add(o, "vgpu_type", json_string_or_null(pool ? pool->vgpu_type : NULL));
                add_counts(o, &c->pools[i].counts);
                json_object_object_add(o, "numa_nodes", json_pool_nodes(&c->pools[i]));
                json_object_object_add(o, "models", json_models(&c->pools[i]));
                json_object_object_add(o, "traits", json_traits(&c->pools[i]));
                json_object_object_add(o, "endpoints", json_endpoints(view, service));
                (void) json_object_array_add(array, o);
        }
        return array;
}

static json_object *json_quarantine(const Ledger *l) {
        json_object *list = json_object_new_array();

        for (size_t i = 0; i < l->n_quarantined; i++) {
                const Allocation *rest = l->quarantined[i];
                json_object *o = json_object_new_object();

                json_object_object_add(o, "address", json_address(rest->devices[0].address));
                json_object_object_add(o, "allocation", json_string_or_null(rest->name));
                json_object_object_add(o, "owner", json_object_new_int64(rest->owner));
                json_object_object_add(o, "generation", json_object_new_uint64(rest->generation));
                json_object_object_add(o, "reason", json_string_or_null(rest->reason));
                (void) json_object_array_add(list, o);
        }
        return list;
}

static json_object *json_nodes(const HostView *view) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < view->inventory->n_nodes; i++)
                (void) json_object_array_add(array, json_node(view, &view->inventory->nodes[i]));
        return array;
}

static json_object *json_allocations(const HostView *view, uint32_t reader) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < view->ledger->n_allocations; i++)
                (void) json_object_array_add(array, json_allocation(view, view->ledger->allocations[i], reader));
        return array;
}

static json_object *json_notes(const Inventory *inv) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < inv->n_notes; i++)
                (void) json_object_array_add(array, json_object_new_string(inv->notes[i]));
        return array;
}

json_object *json_config_problems(const HostView *view) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < view->config->n_problems; i++) {
                _cleanup_free_ char *text = NULL;

                if (config_problem_format(&view->config->problems[i], &text) >= 0)
                        (void) json_object_array_add(array, json_object_new_string(text));
        }
        for (size_t i = 0; i < view->policy->n_problems; i++)
                (void) json_object_array_add(array, json_object_new_string(view->policy->problems[i]));
        return array;
}

json_object *json_endpoint_problems(const HostView *view) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < view->config->n_services; i++) {
                const RemoteService *s = &view->config->services[i];

                for (size_t k = 0; k < s->n_endpoints; k++) {
                        const RemoteEndpoint *e = &s->endpoints[k];
                        _cleanup_free_ char *reason = NULL, *text = NULL;

                        if (endpoint_status_state(view->endpoints, e->name) != ENDPOINT_STATE_DOWN)
                                continue;
                        reason = endpoint_reason(view, s, e, ledger_slots(view->ledger, e->name));
                        text = string_format("Endpoint %s of service '%s': %s", e->name, s->name, reason ?: "");
                        (void) json_object_array_add(array, json_string_or_null(text));
                }
        }
        return array;
}

/* Leaves out a device that was unplugged, or that a pool offers again after the hardware changed. */
json_object *json_withdrawn(const HostView *view) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; view->withdrawn && i < view->withdrawn->n; i++) {
                const WithdrawnDevice *w = &view->withdrawn->devices[i];
                const PciDevice *dev = inventory_find(view->inventory, w->address);
                json_object *o;

                if (!dev || policy_offers(view->policy, dev))
                        continue;
                o = json_object_new_object();
                json_object_object_add(o, "address", json_address(w->address));
                json_object_object_add(o, "pool", json_string_or_null(w->pool));
                (void) json_object_array_add(array, o);
        }
        return array;
}

static json_object *json_partitions(const FabricTable *t) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < t->n; i++) {
                json_object *o = json_object_new_object(), *modules = json_object_new_array();

                for (unsigned m = 1; m <= FABRIC_MODULE_MAX; m++)
                        if (t->partitions[i].modules & fabric_bit(m))
                                (void) json_object_array_add(modules, json_object_new_int((int) m));
                json_object_object_add(o, "id", json_object_new_int((int) t->partitions[i].id));
                json_object_object_add(o, "modules", modules);
                (void) json_object_array_add(array, o);
        }
        return array;
}

char *json_describe(const HostView *view, const char *version, uint32_t reader) {
        JsonText t = json_text_new();

        json_text_first_member(&t, "version", string, version);
        json_text_member(&t, "read_only", string, ledger_problem(view->ledger));
        json_text_member(&t, "write_failed", boolean, !view->ledger->read_only && view->ledger->unwritable);
        json_text_member(&t, "libvirt", object, json_libvirt(view->libvirt, &view->inventory->libvirt));
        json_text_key(&t, "devices");
        json_text_devices(&t, view);
        json_text_member(&t, "iommufd", string, iommufd_mode_to_string(view->config->iommufd));
        json_text_member(&t, "pools", object, json_pools(view));
        json_text_member(&t, "nodes", object, json_nodes(view));
        json_text_member(&t, "partitions", object, json_partitions(&view->config->fabric));
        json_text_member(&t, "allocations", object, json_allocations(view, reader));
        json_text_member(&t, "quarantine", object, json_quarantine(view->ledger));
        json_text_member(&t, "notes", object, json_notes(view->inventory));
        json_text_member(&t, "config_problems", object, json_config_problems(view));
        json_text_member(&t, "none_offered", string, view->config->block_reason);
        json_text_member(&t, "withdrawn", object, json_withdrawn(view));
        json_text_member(&t, "sysroot", string, view->sysroot);
        json_text_member(&t, "config_file", string, view->config_path);
        json_text_literal(&t, "}");
        return json_text_finish(&t);
}
