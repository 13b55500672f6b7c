/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The D-Bus interface org.passthroughd1.Allocation. */

#include <errno.h>

#include "server-internal.h"

static void *find_allocation(Server *s, const char *label) {
        return ledger_find(server_view(s).ledger, label);
}

static int append_devices(sd_bus_message *reply, const Allocation *a) {
        int r = sd_bus_message_open_container(reply, 'a', "(ss)");

        for (size_t i = 0; r >= 0 && i < a->n_devices; i++)
                r = sd_bus_message_append(reply, "(ss)", a->devices[i].slot ?: "",
                                          PCI_ADDRESS_STR(a->devices[i].address));
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_memory(sd_bus_message *reply, const Allocation *a) {
        int r = sd_bus_message_open_container(reply, 'a', "(it)");

        for (size_t i = 0; r >= 0 && i < a->n_cells; i++)
                r = sd_bus_message_append(reply, "(it)", cell_memory_node(&a->cells[i]), a->cells[i].memory);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Appends the structure (name, bytes, NUMA node, names of all allocations that share the region). */
static int append_region(sd_bus_message *reply, const Region *r, const SharedRegion *shared) {
        int k = sd_bus_message_open_container(reply, 'r', "stias");

        if (k >= 0)
                k = sd_bus_message_append(reply, "sti", r->name, r->size, r->node);
        if (k >= 0)
                k = sd_bus_message_open_container(reply, 'a', "s");
        for (size_t i = 0; k >= 0 && shared && i < shared->n_members; i++)
                k = sd_bus_message_append(reply, "s", shared->members[i]->name);
        if (k >= 0)
                k = sd_bus_message_close_container(reply);
        return k < 0 ? k : sd_bus_message_close_container(reply);
}

static int append_regions(sd_bus_message *reply, const Allocation *a) {
        int r = sd_bus_message_open_container(reply, 'a', "(stias)");

        for (size_t i = 0; r >= 0 && i < a->n_regions; i++)
                r = append_region(reply, &a->regions[i], a->shared[i]);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Appends the array of structures (service, endpoint, slots). */
static int append_services(sd_bus_message *reply, const Allocation *a) {
        int r = sd_bus_message_open_container(reply, 'a', "(ssu)");

        for (size_t i = 0; r >= 0 && i < a->n_services; i++)
                r = sd_bus_message_append(reply, "(ssu)", a->services[i].name, a->services[i].endpoint,
                                          a->services[i].slots);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int property_get(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Allocation *a = userdata;
        _cleanup_free_ char *cpus = NULL;

        if (streq(property, "Owner"))
                return sd_bus_message_append(reply, "u", a->owner);
        if (streq(property, "LeaseEnd"))
                return sd_bus_message_append(reply, "t", a->lease_end);
        if (streq(property, "Generation"))
                return sd_bus_message_append(reply, "t", a->generation);
        if (streq(property, "Devices"))
                return append_devices(reply, a);
        if (streq(property, "Memory"))
                return append_memory(reply, a);
        if (streq(property, "SharedMemory"))
                return append_regions(reply, a);
        if (streq(property, "Services"))
                return append_services(reply, a);
        if (streq(property, "Cpus")) {
                cpus = cpuset_format(&a->cpus);
                return cpus ? sd_bus_message_append(reply, "s", cpus) : -ENOMEM;
        }
        return sd_bus_message_append(reply, "s",
                                     streq(property, "Name")     ? a->name
                                     : streq(property, "Domain") ? a->status.domain ?: ""
                                     : streq(property, "Id")    ? a->id
                                     : streq(property, "Tag")   ? a->tag ?: ""
                                     : streq(property, "State") ? allocation_state_to_string(allocation_shown_state(a))
                                                                : a->reason ?: "");
}

#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
#define CONST   SD_BUS_VTABLE_PROPERTY_CONST

static const sd_bus_vtable allocation_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Name", "s", property_get, 0, CONST),
        SD_BUS_PROPERTY("Id", "s", property_get, 0, CONST),
        SD_BUS_PROPERTY("Owner", "u", property_get, 0, CONST),
        SD_BUS_PROPERTY("Tag", "s", property_get, 0, CONST),
        SD_BUS_PROPERTY("LeaseEnd", "t", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Generation", "t", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("State", "s", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Reason", "s", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Domain", "s", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Devices", "a(ss)", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Cpus", "s", property_get, 0, CONST),
        SD_BUS_PROPERTY("Memory", "a(it)", property_get, 0, CONST),
        SD_BUS_PROPERTY("Services", "a(ssu)", property_get, 0, CONST),
        SD_BUS_PROPERTY("SharedMemory", "a(stias)", property_get, 0, CHANGES),
        SD_BUS_VTABLE_END,
};

static size_t count_allocations(Server *s) {
        return server_view(s).ledger->n_allocations;
}

static int path_of_allocation(Server *s, size_t i, char **ret) {
        return allocation_path(server_view(s).ledger->allocations[i]->name, ret);
}

const ObjectKind allocation_objects = { BUS_ALLOCATION_PREFIX,     BUS_ALLOCATION_INTERFACE, allocation_vtable,
                                        allocation_property_names, find_allocation,          count_allocations,
                                        path_of_allocation };
