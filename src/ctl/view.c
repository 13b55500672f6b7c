/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints devices, allocations and plans as lines of "Key: value". */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>

#include "page.h"
#include "table.h"
#include "util/strings.h"
#include "view.h"

#define KEY_WIDTH  18
#define SLOT_WIDTH 9

static void view_indented(const char *key, size_t indent, const char *text) {
        char left[32];

        snprintf(left, sizeof(left), "%s%s", key, *key ? ":" : "");
        printf("%-*s", KEY_WIDTH, left);
        page_wrap(stdout, text ?: "Out of memory.", KEY_WIDTH, indent);
}

void view_field(const char *key, const char *format, ...) {
        _cleanup_free_ char *text = FORMAT_ARGUMENTS(format);

        view_indented(key, KEY_WIDTH, text);
}

/* Prints a line about the device in a slot. The text must begin with the name of the slot, padded to SLOT_WIDTH. */
static _printf_(2, 3) void view_slot(const char *key, const char *format, ...) {
        _cleanup_free_ char *text = FORMAT_ARGUMENTS(format);

        view_indented(key, KEY_WIDTH + SLOT_WIDTH, text);
}

void view_member(const char *key, json_object *o, const char *member) {
        const char *s = reply_text(o, member);

        if (s)
                view_field(key, "%s", s);
}

char *view_join(json_object *o, const char *key, const char *separator) {
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < member_length(o, key); i++)
                if (string_append(&text, separator, "%s", reply_element_cell(o, key, i)) < 0)
                        return NULL;
        return TAKE_PTR(text);
}

#define KERNEL_NAMES_MAX 3U

char *view_kernel_names(json_object *device) {
        const char *key = "kernel_names";
        size_t n = member_length(device, key), shown = n;
        _cleanup_free_ char *text = NULL;

        if (n == 0) /* no names; or the row of several VFs, which has a text instead of the array */
                return strdup(json_object_is_type(member(device, key), json_type_string) ? reply_cell(device, key)
                                                                                         : "-");
        if (n > KERNEL_NAMES_MAX && table_is_narrow())
                shown = KERNEL_NAMES_MAX - 1;
        for (size_t i = 0; i < shown; i++)
                if (string_append(&text, " ", "%s", reply_element_cell(device, key, i)) < 0)
                        return NULL;
        if (string_append(&text, "", "%s", AND_MORE(n - shown)) < 0)
                return NULL;
        return TAKE_PTR(text);
}

static bool is_held(json_object *allocation_device) {
        return streq_ptr(reply_text(allocation_device, "role"), "held");
}

static char *join_addresses(json_object *allocation, const char *separator, bool held) {
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < member_length(allocation, "devices"); i++) {
                json_object *d = member_at(allocation, "devices", i);

                if (is_held(d) == held && string_append(&text, separator, "%s", reply_cell(d, "address")) < 0)
                        return NULL;
        }
        return TAKE_PTR(text);
}

char *view_addresses(json_object *allocation, const char *separator) {
        return join_addresses(allocation, separator, false);
}

char *view_held(json_object *allocation, const char *separator) {
        return join_addresses(allocation, separator, true);
}

size_t view_count_held(json_object *allocation) {
        size_t n = 0;

        for (size_t i = 0; i < member_length(allocation, "devices"); i++)
                n += is_held(member_at(allocation, "devices", i));
        return n;
}

char *view_memory(json_object *allocation) {
        json_object *nodes = member_object(allocation, "memory");
        _cleanup_free_ char *text = NULL;

        if (nodes) {
                json_object_object_foreach(nodes, node, bytes) {
                        if (string_append(&text, ", ", "%s on node %s", FORMAT_SIZE(json_object_get_uint64(bytes)),
                                          node) < 0)
                                return NULL;
                }
        }
        return TAKE_PTR(text);
}

char *view_owner(json_object *o) {
        const struct passwd *user;
        int64_t uid;

        if (JSON_READ_INTEGER(o, "owner", INT64_MAX, &uid) < 0)
                return strdup("-");
        /* cppcheck-suppress getpwuidCalled ; passthroughctl has one thread */
        user = getpwuid((uid_t) uid);
        return user && text_is_clean(user->pw_name) ? strdup(user->pw_name) : string_format("%" PRId64, uid);
}

unsigned view_count_cpus(json_object *o, const char *key) {
        const char *text = reply_text(o, key) ?: "";
        unsigned long first, last, n = 0;
        char *end;

        for (; *text; text = *end ? end + 1 : end) {
                first = last = strtoul(text, &end, 10);
                if (*end == '-')
                        last = strtoul(end + 1, &end, 10);
                n += last - first + 1;
        }
        return (unsigned) n;
}

uint64_t view_memory_total(json_object *allocation) {
        json_object *nodes = member_object(allocation, "memory");
        uint64_t total = 0;

        if (nodes) {
                json_object_object_foreach(nodes, node, bytes) {
                        (void) node;
                        total += json_object_get_uint64(bytes);
                }
        }
        return total;
}

static void view_list(const char *key, json_object *o, const char *member) {
        _cleanup_free_ char *text = view_join(o, member, " ");

        if (text)
                view_field(key, "%s", text);
}

static void view_bars(json_object *device) {
        for (size_t i = 0; i < member_length(device, "bars"); i++) {
                json_object *bar = member_at(device, "bars", i);
                char key[16];
                int64_t index, size;

                if (JSON_READ_INTEGER(bar, "index", INT64_MAX, &index) < 0 ||
                    JSON_READ_INTEGER(bar, "size", INT64_MAX, &size) < 0)
                        continue;
                (void) snprintf(key, sizeof(key), "BAR %" PRId64, index);
                view_field(key, "%s", FORMAT_SIZE((uint64_t) size));
        }
}

void view_read_only(json_object *node) {
        const char *why = reply_text(node, "read_only");

        if (why)
                page_wrap(stderr, why, 0, 0);
}

/* Adds the withdrawn devices of one pool, of which the device with index `first` is the first: "0000:83:00.1 and 3 more
 * of pool 'ib-vf'". Returns 0 or -ENOMEM. */
static int add_pool(char **text, json_object *node, size_t first) {
        json_object *d = member_at(node, "withdrawn", first);
        const char *pool = reply_cell(d, "pool");
        size_t others = 0;

        for (size_t i = first + 1; i < member_length(node, "withdrawn"); i++)
                others += streq(reply_cell(member_at(node, "withdrawn", i), "pool"), pool);
        if (string_append(text, ", ", "%s", reply_cell(d, "address")) < 0 ||
            string_append(text, "", "%s of pool '%s'", AND_MORE(others), pool) < 0)
                return -ENOMEM;
        return 0;
}

static bool is_first_of_pool(json_object *node, size_t i) {
        const char *pool = reply_cell(member_at(node, "withdrawn", i), "pool");

        for (size_t j = 0; j < i; j++)
                if (streq(reply_cell(member_at(node, "withdrawn", j), "pool"), pool))
                        return false;
        return true;
}

char *view_withdrawn(json_object *node) {
        _cleanup_free_ char *text = NULL;
        size_t n = member_length(node, "withdrawn");

        for (size_t i = 0; i < n; i++)
                if (is_first_of_pool(node, i) && add_pool(&text, node, i) < 0)
                        return NULL;
        return n > 0 ? string_format("%zu device%s %s no longer offered while the configuration %s: %s.", n, PLURAL(n),
                                     ARE(n),
                                     member_length(node, "config_problems") > 0 ? "has broken lines" : "has no file",
                                     text)
                     : NULL;
}

bool view_not_offered(json_object *node) {
        _cleanup_free_ char *withdrawn = view_withdrawn(node);
        const char *none = reply_text(node, "none_offered");

        if (withdrawn)
                page_wrap(stderr, withdrawn, 0, 0);
        if (none)
                page_wrap(stderr, none, 0, 0);
        return withdrawn || none;
}

/* Returns words that tell whether peers can reach the device. The member "acs" is about the device's own ACS, towards
 * the functions of its card; the member "isolated" is about the ports above the device. */
static const char *isolation(json_object *d) {
        const char *acs = reply_cell(d, "acs");

        if (streq(acs, "open") || !streq_ptr(reply_text(d, "isolated"), "true"))
                return "peers can reach it";
        return streq(acs, "unknown") ? "peers may reach it" : "isolated from its peers";
}

static void view_link(json_object *d) {
        json_object *link = member_object(d, "link");

        if (!link)
                return;
        if (reply_text(link, "generation") || reply_text(link, "width"))
                view_field("PCIe link", "generation %s x%s, at most generation %s x%s", reply_cell(link, "generation"),
                           reply_cell(link, "width"), reply_cell(link, "max_generation"),
                           reply_cell(link, "max_width"));
        else
                view_field("PCIe link", "at most generation %s x%s", reply_cell(link, "max_generation"),
                           reply_cell(link, "max_width"));
}

char *view_link_short(json_object *device) {
        json_object *link = member_object(device, "link");
        const char *generation = reply_text(link, "generation"), *width = reply_text(link, "width"),
                   *max_generation = reply_cell(link, "max_generation"), *max_width = reply_cell(link, "max_width");

        if (!link)
                return strdup("-");
        if (!generation || !width)
                return string_format("max %sx%s", max_generation, max_width);
        if (streq(generation, max_generation) && streq(width, max_width))
                return string_format("%sx%s", generation, width);
        return string_format("%sx%s of %sx%s", generation, width, max_generation, max_width);
}

static void view_vgpu(json_object *d) {
        json_object *vgpu = member_object(d, "vgpu");

        if (!vgpu)
                return;
        view_field("vGPU", "%s%s", reply_text(vgpu, "type") ? "type " : "none",
                   reply_text(vgpu, "type") ? reply_text(vgpu, "type") : "");
        for (size_t i = 0; i < member_length(vgpu, "creatable"); i++)
                view_field(i ? "" : "vGPU types", "%s", reply_element_cell(vgpu, "creatable", i));
}

static void view_numa_node(json_object *d) {
        const char *node = reply_text(d, "numa_node"), *lender = reply_text(d, "cpu_node");

        if (node && lender && !streq(node, lender))
                view_field("NUMA node", "%s, which has no CPUs; node %s is the nearest", node, lender);
        else
                view_field("NUMA node", "%s", node ? node : "unknown");
}

void view_device(json_object *d) {
        view_field("Address", "%s", reply_cell(d, "address"));
        view_member("Name", d, "name");
        view_field("Id", "%s:%s, subsystem %s:%s, class %s", reply_cell(d, "vendor"), reply_cell(d, "device"),
                   reply_cell(d, "subsystem_vendor"), reply_cell(d, "subsystem_device"), reply_cell(d, "class"));
        view_field("Type", "%s", reply_cell(d, "type"));
        view_field("Pool", "%s", reply_cell(d, "pool"));
        view_field("State", "%s", reply_cell(d, "state"));
        view_member("Reason", d, "reason");
        view_member("Remedy", d, "remedy");
        view_member("Allocation", d, "allocation");
        view_field("Driver", "%s", reply_cell(d, "driver"));
        view_member("Driver override", d, "driver_override");
        view_list("Kernel names", d, "kernel_names");
        view_link(d);
        view_numa_node(d);
        view_field("IOMMU group", "%s", reply_cell(d, "iommu_group"));
        view_member("Module", d, "module");
        view_member("Partition", d, "partition");
        view_member("PF", d, "physical_function");
        if (streq_ptr(reply_text(d, "type"), "pf"))
                view_field("VFs", "%zu of %s", member_length(d, "virtual_functions"), reply_cell(d, "total_vfs"));
        view_list("", d, "virtual_functions");
        view_vgpu(d);
        view_list("Reset", d, "reset_methods");
        view_member("Power", d, "power_state");
        view_bars(d);
        view_field("ACS", "%s, %s", reply_cell(d, "acs"), isolation(d));
        view_member("Fault", d, "fault");
}

char *view_attributes(json_object *device) {
        json_object *attributes = member_object(device, "attributes");
        const char *vgpu = reply_text(device, "vgpu_type");
        _cleanup_free_ char *text = NULL;

        if (vgpu && string_append(&text, "", "vGPU '%s'", vgpu) < 0)
                return NULL;
        if (!attributes)
                return TAKE_PTR(text);
        json_object_object_foreach(attributes, key, value) {
                size_t begin = text ? strlen(text) : 0;
                const char *s = reply_cell(attributes, key);

                if (json_object_is_type(value, json_type_boolean))
                        s = json_object_get_boolean(value) ? "on" : "off";
                if (string_append(&text, " ", "%s=%s", key, s) < 0)
                        return NULL;
                for (char *c = text + begin; *c != '='; c++)
                        if (*c == '_')
                                *c = '-';
        }
        return TAKE_PTR(text);
}

static void view_devices(json_object *a) {
        _cleanup_free_ char *held = view_held(a, " ");
        size_t n = 0;

        for (size_t i = 0; i < member_length(a, "devices"); i++) {
                json_object *d = member_at(a, "devices", i);
                const char *slot = reply_cell(d, "slot"), *guest = reply_text(d, "guest_address");
                const char *pf = reply_text(d, "physical_function");
                _cleanup_free_ char *attributes = view_attributes(d);

                if (is_held(d))
                        continue;
                view_slot(n++ ? "" : "Devices", "%-8s %s%s%s%s%s%s", slot, reply_cell(d, "address"),
                          guest ? ", domain address " : "", guest ? guest : "", pf ? ", VF of " : "", pf ? pf : "",
                          streq_ptr(reply_text(d, "role"), "companion") ? ", companion" : "");
                if (attributes)
                        view_slot("", "%-8s %s", "", attributes);
        }
        if (held)
                view_field("Held with it", "%s", held);
}

static void view_pins(json_object *a) {
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < member_length(a, "pins"); i++) {
                json_object *pin = member_at(a, "pins", i);

                if (string_append(&text, " ", "%s:%s", reply_cell(pin, "vcpu"), reply_cell(pin, "cpu")) < 0)
                        return;
        }
        if (text)
                view_field("Pins", "%s", text);
}

static void view_cells(json_object *a) {
        for (size_t i = 0; i < member_length(a, "cells"); i++) {
                json_object *cell = member_at(a, "cells", i);
                uint64_t memory = member_size(cell, "memory");

                if (streq_ptr(reply_text(cell, "memory_node"), reply_text(cell, "node")))
                        view_field(i ? "" : "Guest cells", "%s: vCPUs %s and %s on node %s", reply_cell(cell, "id"),
                                   reply_cell(cell, "vcpus"), FORMAT_SIZE(memory), reply_cell(cell, "node"));
                else
                        view_field(i ? "" : "Guest cells", "%s: vCPUs %s on node %s and %s on node %s",
                                   reply_cell(cell, "id"), reply_cell(cell, "vcpus"), reply_cell(cell, "node"),
                                   FORMAT_SIZE(memory), reply_cell(cell, "memory_node"));
        }
}

void view_regions(json_object *a) {
        for (size_t i = 0; i < member_length(a, "shared_memory"); i++) {
                json_object *region = member_at(a, "shared_memory", i);
                _cleanup_free_ char *members = view_join(region, "members", " ");
                uint64_t page_size = member_size(region, "page_size");

                view_field(i ? "" : "Shared memory", "%s: %s on node %s%s%s%s%s", reply_cell(region, "name"),
                           FORMAT_SIZE(member_size(region, "size")), reply_cell(region, "numa_node"),
                           page_size > 0 ? ", pages of " : "", page_size > 0 ? FORMAT_SIZE(page_size) : "",
                           members ? ", shared by " : "", members ?: "");
        }
}

void view_services(json_object *a) {
        for (size_t i = 0; i < member_length(a, "services"); i++) {
                json_object *s = member_at(a, "services", i);
                const char *slots = reply_cell(s, "slots");

                view_field(i ? "" : "Remote GPUs", "%s: %s slot%s of %s", reply_cell(s, "pool"), slots,
                           streq(slots, "1") ? "" : "s", reply_cell(s, "endpoint"));
        }
}

/* Prints which guest NUMA nodes are for the memory of GPUs. Such a node has no CPUs and no other memory. */
static void view_memory_cells(json_object *a) {
        for (size_t i = 0; i < member_length(a, "devices"); i++) {
                json_object *d = member_at(a, "devices", i);

                if (reply_text(d, "memory_cells"))
                        view_field("", "%s: for the memory of %s", reply_text(d, "memory_cells"),
                                   reply_cell(d, "slot"));
        }
}

void view_allocation(json_object *a) {
        _cleanup_free_ char *memory = view_memory(a), *nodes = view_join(a, "numa_nodes", " "), *owner = view_owner(a);
        const char *cpus = reply_text(a, "cpus");
        int64_t page_size;

        view_member("Name", a, "name");
        view_member("Id", a, "id");
        view_field("State", "%s", reply_cell(a, "state"));
        view_member("Reason", a, "reason");
        view_member("Generation", a, "generation");
        view_field("Owner", "%s", owner ?: "-");
        view_member("Tag", a, "tag");
        view_member("Confidential", a, "confidential");
        view_devices(a);
        view_member("Partition", a, "partition");
        if (cpus && *cpus)
                view_field("CPUs", "%s", cpus);
        view_pins(a);
        if (nodes)
                view_field("NUMA nodes", "%s", nodes);
        if (memory)
                view_field("Memory", "%s", memory);
        if (JSON_READ_INTEGER(a, "page_size", INT64_MAX, &page_size) >= 0)
                view_field("Page size", "%s", FORMAT_SIZE((uint64_t) page_size));
        view_cells(a);
        view_memory_cells(a);
        view_regions(a);
        view_services(a);
        view_warnings(a);
}

void view_warnings(json_object *allocation) {
        for (size_t i = 0; i < member_length(allocation, "warnings"); i++)
                view_field(i ? "" : "Lacks", "%s", reply_element_cell(allocation, "warnings", i));
}
