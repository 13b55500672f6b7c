/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices, refusals and the node as JSON. Out of memory shows as null, see model/json-value.h. */

#include "json.h"

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

/* "flr bus" -> ["flr","bus"] */
static json_object *json_words(const char *words) {
        json_object *array = json_object_new_array();

        for (const char *w = words; w && *w; w += strspn(w, " \n")) {
                size_t n = strcspn(w, " \n");

                if (n > 0)
                        (void) json_object_array_add(array, json_object_new_string_len(w, (int) n));
                w += n;
        }
        return array;
}

static void add_ids(json_object *o, const PciDevice *dev) {
        json_put(o, "address", json_address(dev->address));
        json_put(o, "vendor", json_hex(dev->vendor, 4));
        json_put(o, "device", json_hex(dev->device, 4));
        json_put(o, "subsystem_vendor", json_hex(dev->subsystem_vendor, 4));
        json_put(o, "subsystem_device", json_hex(dev->subsystem_device, 4));
        json_put(o, "class", json_hex(dev->class, 6));
        json_put(o, "name", json_string_or_null(dev->name));
        json_put(o, "type", json_string_or_null(pci_type_to_string(dev->type)));
        json_put(o, "path", json_string_or_null(dev->path));
}

static void add_standing(json_object *o, const PlanContext *c, const PciDevice *dev) {
        _cleanup_refusal_ Refusal why = { 0 };
        DeviceState state = device_state(c, dev, &why);
        const Pool *pool = policy_pool(c->policy, dev);
        const Allocation *holder = ledger_holder(c->ledger, dev->address);

        json_put(o, "pool", json_string_or_null(pool ? pool->name : NULL));
        json_put(o, "state", json_string_or_null(device_state_to_string(state)));
        json_put(o, "verdict", json_string_or_null(verdict_to_string(why.verdict)));
        json_put(o, "reason", json_string_or_null(why.message));
        json_put(o, "remedy", json_string_or_null(why.remedy));
        json_put(o, "allocation", json_string_or_null(holder ? holder->name : NULL));
}

/* Index as the guest and lspci count them; the last one is the expansion ROM. */
static json_object *json_bars(const PciDevice *dev) {
        json_object *array = json_object_new_array();

        for (size_t i = 0; i < PCI_BARS_MAX; i++) {
                json_object *o;

                if (dev->bar_size[i] == 0)
                        continue;
                o = json_object_new_object();
                json_put(o, "index", json_object_new_int((int) i));
                json_put(o, "size", json_object_new_uint64(dev->bar_size[i]));
                (void) json_object_array_add(array, o);
        }
        return array;
}

static void add_facts(json_object *o, const PlanContext *c, const PciDevice *dev) {
        EswitchMode mode = eswitch_mode_of(c->eswitches, dev);
        const Health *health = health_list_find(c->health, dev);
        json_object *vfs = json_object_new_array();

        for (size_t i = 0; i < dev->n_vfs; i++)
                (void) json_object_array_add(vfs, json_address(dev->vfs[i]));
        json_put(o, "numa_node", json_known_or_null(dev->numa_node));
        json_put(o, "iommu_group", json_known_or_null(dev->iommu_group));
        json_put(o, "driver", json_string_or_null(dev->driver));
        json_put(o, "driver_override", json_string_or_null(dev->driver_override));
        json_put(o, "physical_function", dev->type == PCI_TYPE_VF ? json_address(dev->physfn) : NULL);
        json_put(o, "virtual_functions", vfs);
        json_put(o, "total_vfs", json_object_new_int64(dev->total_vfs));
        json_put(o, "eswitch_mode", json_string_or_null(eswitch_mode_to_string(mode)));
        json_put(o, "reset_methods", json_words(dev->reset_methods));
        json_put(o, "power_state", json_string_or_null(dev->power_state));
        json_put(o, "link", health ? json_link(&health->last.link) : NULL);
        json_put(o, "aer", health ? json_errors(&health->last.errors) : NULL);
        json_put(o, "bars", json_bars(dev));
        json_put(o, "acs", json_string_or_null(pci_acs_to_string(dev->acs)));
        json_put(o, "isolated", json_object_new_boolean(inventory_path_is_isolated(c->inventory, dev, NULL)));
        json_put(o, "fault", json_string_or_null(dev->fault));
}

json_object *json_device(const PlanContext *c, const PciDevice *dev) {
        json_object *o = json_object_new_object();

        add_ids(o, dev);
        add_standing(o, c, dev);
        add_facts(o, c, dev);
        return o;
}

static const char *group_role_text(GroupRole role) {
        switch (role) {
        case GROUP_ROLE_COMPANION:
                return "goes along as another function of the card";
        case GROUP_ROLE_HOLD:
                return "is held on the VFIO driver";
        case GROUP_ROLE_BLOCK:
                return "blocks the group";
        default:
                return "is left alone";
        }
}

/* What an allocation of dev does, or did, with another member of its group. */
static const char *member_role(const PlanContext *c, const PciDevice *dev, const PciDevice *member) {
        const Allocation *holder = ledger_holder(c->ledger, dev->address),
                         *other = ledger_holder(c->ledger, member->address);

        if (other && other != holder)
                return group_role_text(GROUP_ROLE_BLOCK);
        if (other && allocation_find_device(holder, member->address)->role == DEVICE_ROLE_HELD)
                return group_role_text(GROUP_ROLE_HOLD);
        if (holder && !other)
                return group_role_text(pci_device_driver_is_harmless(member) ? GROUP_ROLE_LEAVE : GROUP_ROLE_BLOCK);
        /* What would become of it is a question only where the device itself may be given away. */
        return policy_pool(c->policy, dev) ? group_role_text(policy_group_role(c->policy, dev, member)) : NULL;
}

json_object *json_explain(const PlanContext *c, const PciDevice *dev) {
        json_object *o = json_device(c, dev), *group = json_object_new_array();
        const IommuGroup *g = inventory_find_group(c->inventory, dev->iommu_group);
        const PciDevice *port = NULL;

        for (size_t i = 0; g && i < g->n_members; i++) {
                const PciDevice *m = &c->inventory->devices[g->members[i]];
                json_object *member;

                if (m == dev)
                        continue;
                member = json_object_new_object();
                json_object_object_add(member, "address", json_address(m->address));
                json_object_object_add(member, "driver", json_string_or_null(m->driver));
                json_object_object_add(member, "role", json_string_or_null(member_role(c, dev, m)));
                (void) json_object_array_add(group, member);
        }
        json_object_object_add(o, "group", group);
        (void) inventory_path_is_isolated(c->inventory, dev, &port);
        json_object_object_add(o, "open_port", port ? json_address(port->address) : NULL);
        json_object_object_add(o, "read_only", json_string_or_null(c->ledger->read_only));
        return o;
}

static json_object *json_node(const PlanContext *c, const NumaNode *node) {
        json_object *o = json_object_new_object(), *pages = json_object_new_array(),
                    *distances = json_object_new_array();
        CpuSet free_cpus;

        ledger_cpus_free(c->ledger, c->inventory, c->config, node, &free_cpus);
        json_object_object_add(o, "id", json_object_new_int(node->id));
        json_object_object_add(o, "cpus", json_cpus(&node->cpus));
        json_object_object_add(o, "cpus_free", json_cpus(&free_cpus));
        json_object_object_add(o, "memory", json_object_new_uint64(node->memory));
        json_object_object_add(o, "memory_free",
                               json_object_new_uint64(ledger_memory_free(c->ledger, c->inventory, c->config, node, 0)));
        for (size_t i = 0; i < node->n_pages; i++) {
                json_object *p = json_object_new_object();
                uint64_t size = node->pages[i].size;
                uint64_t bytes = ledger_memory_free(c->ledger, c->inventory, c->config, node, size);

                json_object_object_add(p, "size", json_object_new_uint64(size));
                json_object_object_add(p, "total", json_object_new_uint64(node->pages[i].total));
                json_object_object_add(p, "free", json_object_new_uint64(bytes / size));
                (void) json_object_array_add(pages, p);
        }
        for (size_t i = 0; i < c->inventory->n_nodes; i++)
                (void) json_object_array_add(distances, json_object_new_int64(node->distance[i]));
        json_object_object_add(o, "pages", pages);
        json_object_object_add(o, "distances", distances);
        return o;
}

static json_object *json_pools(const PlanContext *c) {
        json_object *array = json_object_new_array();

        for (size_t p = 0; p < c->config->n_pools; p++) {
                const Pool *pool = &c->config->pools[p];
                json_object *o = json_object_new_object();
                int total = 0, available = 0;

                for (size_t i = 0; i < c->inventory->n_devices; i++)
                        if (policy_pool(c->policy, &c->inventory->devices[i]) == pool) {
                                total++;
                                available += device_state(c, &c->inventory->devices[i], NULL) == DEVICE_STATE_AVAILABLE;
                        }
                json_object_object_add(o, "name", json_object_new_string(pool->name));
                json_object_object_add(o, "total", json_object_new_int(total));
                json_object_object_add(o, "available", json_object_new_int(available));
                (void) json_object_array_add(array, o);
        }
        return array;
}

/* The keys of any other device; what was not written down when it was allocated is null. */
static json_object *json_missing(const PlanContext *c, const Claim *claim) {
        static const char *const unknown[] = {
                "class", "virtual_functions", "total_vfs", "reset_methods", "bars", "acs", "isolated",
        };
        const Allocation *a = claim->allocation;
        const AllocationDevice *d = allocation_find_device(a, claim->address);
        PciDevice gone = {
                .address = claim->address, .parent = -1, .numa_node = -1, .iommu_group = -1, .vf_index = -1
        };
        json_object *o = json_object_new_object();

        if (d) {
                gone.vendor = d->vendor;
                gone.device = d->device;
                gone.subsystem_vendor = d->subsystem_vendor;
                gone.subsystem_device = d->subsystem_device;
                gone.type = d->is_vf ? PCI_TYPE_VF : PCI_TYPE_DEVICE;
                gone.physfn = d->physfn;
                gone.path = d->path;
        }
        add_ids(o, &gone);
        if (!d || !d->is_vf)
                json_object_object_add(o, "type", NULL); /* a PF, or none */
        json_object_object_add(o, "pool", json_string_or_null(d ? d->pool : NULL));
        json_object_object_add(o, "state", json_object_new_string(device_state_to_string(DEVICE_STATE_MISSING)));
        json_object_object_add(o, "verdict", json_object_new_string(verdict_to_string(VERDICT_MISSING)));
        json_object_object_add(o, "reason",
                               json_object_new_string("It is in an allocation, but not on this node any more."));
        json_object_object_add(o, "remedy", NULL);
        json_object_object_add(o, "allocation", json_string_or_null(a->name));
        add_facts(o, c, &gone);
        for (size_t i = 0; i < ELEMENTSOF(unknown); i++)
                json_object_object_add(o, unknown[i], NULL);
        return o;
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

/* The node with its devices, which it takes over. */
static json_object *describe_with(const PlanContext *c, const char *version, json_object *devices) {
        json_object *o = json_object_new_object(), *nodes = json_object_new_array();
        json_object *allocations = json_object_new_array(), *notes = json_object_new_array(),
                    *problems = json_object_new_array();

        for (size_t i = 0; i < c->inventory->n_nodes; i++)
                (void) json_object_array_add(nodes, json_node(c, &c->inventory->nodes[i]));
        for (size_t i = 0; i < c->ledger->n_allocations; i++)
                (void) json_object_array_add(allocations, json_allocation(c->inventory, c->ledger->allocations[i]));
        for (size_t i = 0; i < c->inventory->n_notes; i++)
                (void) json_object_array_add(notes, json_object_new_string(c->inventory->notes[i]));
        for (size_t i = 0; i < c->config->n_problems; i++) {
                _cleanup_free_ char *text = NULL;

                if (config_problem_format(&c->config->problems[i], &text) >= 0)
                        (void) json_object_array_add(problems, json_object_new_string(text));
        }
        for (size_t i = 0; i < c->policy->n_problems; i++)
                (void) json_object_array_add(problems, json_object_new_string(c->policy->problems[i]));
        json_object_object_add(o, "version", json_string_or_null(version));
        json_object_object_add(o, "read_only", json_string_or_null(ledger_problem(c->ledger)));
        json_object_object_add(o, "devices", devices);
        json_object_object_add(o, "pools", json_pools(c));
        json_object_object_add(o, "nodes", nodes);
        json_object_object_add(o, "allocations", allocations);
        json_object_object_add(o, "quarantine", json_quarantine(c->ledger));
        json_object_object_add(o, "notes", notes);
        json_object_object_add(o, "config_problems", problems);
        return o;
}

/* Takes o over. */
static int print_element(struct printbuf *out, json_object *o, int flags) {
        const char *text = json_object_to_json_string_ext(o, flags);
        int r = text && out->buf[out->bpos - 1] != '[' ? printbuf_memappend(out, ",", 1) : 0;

        if (r >= 0)
                r = text ? printbuf_memappend(out, text, (int) strlen(text)) : -1;
        (void) json_object_put(o);
        return r;
}

/* The array of devices, without ever having more than one of them. */
static int print_devices(json_object *devices, struct printbuf *out, int level, int flags) {
        const PlanContext *c = json_object_get_userdata(devices);
        int r = printbuf_memappend(out, "[", 1);

        for (size_t i = 0; r >= 0 && i < c->inventory->n_devices; i++)
                r = print_element(out, json_device(c, &c->inventory->devices[i]), flags);
        for (size_t i = 0; r >= 0 && i < c->ledger->n_claims; i++)
                if (!inventory_find(c->inventory, c->ledger->claims[i].address))
                        r = print_element(out, json_missing(c, &c->ledger->claims[i]), flags);
        return r >= 0 ? printbuf_memappend(out, "]", 1) : r;
}

char *json_describe(const PlanContext *c, const char *version) {
        json_object *devices = json_object_new_array(), *o;
        char *text;

        if (!devices)
                return NULL;
        json_object_set_serializer(devices, print_devices, (void *) c, NULL);
        o = describe_with(c, version, devices);
        text = json_text(o, false);
        (void) json_object_put(o);
        return text;
}
