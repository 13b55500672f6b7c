/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The D-Bus interface org.passthroughd1.Manager. */
#include <errno.h>

#include "error.h"
#include "json.h"
#include "request.h"
#include "server-internal.h"
#include "util/digest.h"
#include "util/strings.h"
#include "util/stringtable.h"

/* Runs in the child that computes an answer: writes the text to the daemon. text is NULL when memory for it ran out. */
static Verdict write_text(const char *text) {
        if (text)
                answer_write(text, strlen(text));
        return text ? VERDICT_NONE : _VERDICT_INVALID;
}

/* Runs in the child that computes an answer: writes the object as text. o is NULL when memory for it ran out. Takes
 * ownership of o. */
static Verdict write_json(json_object *o) {
        _cleanup_free_ char *text = o ? json_text(o) : NULL;

        (void) json_object_put(o);
        return write_text(text);
}

const Allocation *bus_find_allocation(const HostView *view, const char *name, Refusal *ret) {
        const Allocation *a = ledger_find(view->ledger, name);

        if (!a)
                (void) refuse(ret, VERDICT_NO_SUCH_ALLOCATION, NULL, "'passthroughctl allocations' lists them.",
                              "There is no allocation '%s'.", QUOTABLE(name));
        return a;
}

typedef int (*AppendRow)(sd_bus_message *reply, Server *s, size_t i, const char *path);

/* Replies with an array that has a row for each object of the kind. type: the D-Bus type of a row. */
static int reply_list(sd_bus_message *call, Server *s, const ObjectKind *kind, const char *type, AppendRow append) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        size_t n = kind->count(s);
        int r = sd_bus_message_new_method_return(call, &reply);

        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', type);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                _cleanup_free_ char *path = NULL;

                r = kind->path(s, i, &path);
                if (r >= 0)
                        r = append(reply, s, i, path);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int append_device(sd_bus_message *reply, Server *s, size_t i, const char *path) {
        HostView view = server_view(s);
        const PciDevice *dev = &view.inventory->devices[i];
        const Pool *pool = policy_pool(view.policy, dev);
        const Allocation *holder = ledger_holder(view.ledger, dev->address);

        return sd_bus_message_append(reply, "(sssiisso)", PCI_ADDRESS_STR(dev->address), pool ? pool->name : "",
                                     device_state_to_string(device_state(&view, dev, NULL)), dev->numa_node,
                                     dev->iommu_group, dev->driver ?: "", holder ? holder->name : "", path);
}

static int list_devices(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        int r = caller_charge_list(s, call);

        return r != 0 ? r : reply_list(call, s, &device_objects, "(sssiisso)", append_device);
}

static int method_get_device(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        HostView view = server_view(userdata);
        _cleanup_free_ char *path = NULL;
        const PciDevice *dev;
        const char *text;
        int r = sd_bus_message_read(call, "s", &text);

        if (r < 0)
                return r;
        dev = bus_find_device(call, &view, text, &r);
        if (!dev)
                return r;
        r = device_path(dev->address, &path);
        return r < 0 ? r : sd_bus_reply_method_return(call, "o", path);
}

static int append_allocation(sd_bus_message *reply, Server *s, size_t i, const char *path) {
        const Allocation *a = server_view(s).ledger->allocations[i];

        return sd_bus_message_append(reply, "(sstuo)", a->name, allocation_state_to_string(allocation_shown_state(a)),
                                     a->generation, a->owner, path);
}

static int list_allocations(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        int r = caller_charge_list(s, call);

        return r != 0 ? r : reply_list(call, s, &allocation_objects, "(sstuo)", append_allocation);
}

static int method_get_allocation(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        HostView view = server_view(userdata);
        _cleanup_free_ char *path = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };
        const Allocation *a;
        const char *name;
        int r = sd_bus_message_read(call, "s", &name);

        if (r < 0)
                return r;
        a = bus_find_allocation(&view, name, &refusal);
        if (!a)
                return bus_reply_refusal(call, &refusal);
        r = allocation_path(a->name, &path);
        return r < 0 ? r : sd_bus_reply_method_return(call, "o", path);
}

static int append_pool(sd_bus_message *reply, Server *s, size_t i, const char *path) {
        const PoolCapacity *pool = &server_capacity(s)->pools[i];
        const uint32_t *n = pool->counts.n;

        return sd_bus_message_append(reply, "(suuuuuo)", pool->name, n[DEVICE_COUNT_TOTAL], n[DEVICE_COUNT_AVAILABLE],
                                     n[DEVICE_COUNT_ALLOCATED], n[DEVICE_COUNT_RESERVED],
                                     n[DEVICE_COUNT_OUT_OF_SERVICE], path);
}

static int method_list_pools(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return reply_list(call, userdata, &pool_objects, "(suuuuuo)", append_pool);
}

static int append_node(sd_bus_message *reply, Server *s, size_t i, const char *path) {
        const NodeCapacity *node = &server_capacity(s)->nodes[i];

        return sd_bus_message_append(reply, "(iuutto)", node->id, node->cpus, node->cpus_free, node->memory,
                                     node->memory_free, path);
}

static int method_list_nodes(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return reply_list(call, userdata, &node_objects, "(iuutto)", append_node);
}

static int method_explain(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        HostView view = server_view(userdata);
        _cleanup_json_ json_object *o = NULL;
        _cleanup_free_ char *text = NULL;
        const PciDevice *dev;
        const char *address;
        int r = sd_bus_message_read(call, "s", &address);

        if (r < 0)
                return r;
        dev = bus_find_device(call, &view, address, &r);
        if (!dev)
                return r;
        o = json_explain(&view, dev);
        text = o ? json_text(o) : NULL;
        return text ? sd_bus_reply_method_return(call, "s", text) : -ENOMEM;
}

static Verdict make_repeat(const HostView *view, const Request *request, Refusal *ret) {
        _cleanup_repeat_ Repeat repeat = { 0 };
        Verdict v = plan_repeat(view, request, &repeat, ret);

        return v == VERDICT_NONE ? write_json(json_repeat(&repeat)) : v;
}

static Verdict make_plan(const HostView *view, const Answer *a, Refusal *ret) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Verdict v;

        if (a->request.repeat)
                return make_repeat(view, &a->request, ret);
        v = plan_make(view, &a->request, &plan, ret);
        return v == VERDICT_NONE ? write_json(json_plan(view, plan)) : v;
}

static int plan(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_(cleanup_answer_free) Answer *a = NULL;
        int r;

        a = answer_new(s, call, uid, make_plan, &r);
        if (!a)
                return r;
        if (bus_read_request(call, &a->request, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        /* A plan needs an owner only for shared memory: allocations share a region only if they have the same owner. */
        if (a->request.n_regions > 0 && !a->request.has_owner) {
                a->request.owner = uid;
                a->request.has_owner = true;
        }
        return answer_queue(TAKE_PTR(a));
}

static Verdict make_describe(const HostView *view, const Answer *a, Refusal *ret) {
        _cleanup_free_ char *text = json_describe(view, VERSION, caller_is_root(a->uid) ? 0 : a->uid);

        return write_text(text);
}

static int describe(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        int r;
        Answer *a = answer_new(s, call, uid, make_describe, &r);

        return a ? answer_queue(a) : r;
}

static Verdict make_topology(const HostView *view, const Answer *a, Refusal *ret) {
        return write_json(json_topology(view));
}

static int describe_topology(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        int r;
        Answer *a = answer_new(s, call, uid, make_topology, &r);

        return a ? answer_queue(a) : r;
}

/* Methods whose replies are charged to the caller. */
static const struct {
        const char *member;
        CallerMethod method;
} counted[] = {
        { "ListDevices", list_devices },
        { "ListAllocations", list_allocations },
        { "Plan", plan },
        { "Describe", describe },
        { "DescribeTopology", describe_topology },
        { "GetDomainXML", bus_get_domain_xml },
        { "GetNcclTopology", bus_get_nccl_topology },
};

static int method_counted(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        const char *member = sd_bus_message_get_member(call);
        size_t i = 0;

        while (!streq(counted[i].member, member))
                i++;
        return caller_identify(userdata, call, counted[i].method, error);
}

static int property_get_version(sd_bus *bus, const char *path, const char *interface, const char *property,
                                sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", VERSION);
}

static int property_get_epoch(sd_bus *bus, const char *path, const char *interface, const char *property,
                              sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Server *s = userdata;

        (void) server_capacity(s);
        return sd_bus_message_append(reply, "t", s->epoch);
}

static int property_get_job_times(sd_bus *bus, const char *path, const char *interface, const char *property,
                                  sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Server *s = userdata;
        size_t n;
        const JobTime *times = s->callbacks->list_job_times(s->userdata, &n);
        int r = sd_bus_message_open_container(reply, 'a', "(ssut)");

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sd_bus_message_append(reply, "(ssut)", times[i].verb, times[i].result, times[i].n, times[i].usec);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* The properties of the Manager that tell problems of the daemon or its configuration. Describe tells the same. */

const char *const problem_property_names[_PROBLEM_PROPERTY_MAX] = {
        [PROBLEM_PROPERTY_READ_ONLY] = "ReadOnly",    [PROBLEM_PROPERTY_LIBVIRT] = "LibvirtProblem",
        [PROBLEM_PROPERTY_CONFIG] = "ConfigProblems", [PROBLEM_PROPERTY_NONE_OFFERED] = "NoneOffered",
        [PROBLEM_PROPERTY_WITHDRAWN] = "Withdrawn",   [PROBLEM_PROPERTY_ENDPOINTS] = "EndpointProblems",
};

static ProblemProperty find_problem_property(const char *name) {
        return (ProblemProperty) string_table_find(problem_property_names, _PROBLEM_PROPERTY_MAX, name);
}

static const char *problem_text(const HostView *view, ProblemProperty p) {
        const LibvirtStatus *l = view->libvirt;

        if (p == PROBLEM_PROPERTY_READ_ONLY)
                return ledger_problem(view->ledger) ?: "";
        if (p == PROBLEM_PROPERTY_NONE_OFFERED)
                return view->config->block_reason ?: "";
        /* While libvirt has not answered yet, there is no problem to tell. */
        return l && l->configured && l->logged && l->reason ? l->reason : "";
}

static int problem_property_get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
                                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        HostView view = server_view(userdata);

        return sd_bus_message_append(reply, "s", problem_text(&view, find_problem_property(property)));
}

/* Returns the value of a property that is a list. NULL: the property is one text, or out of memory. */
static json_object *problem_list(const HostView *view, ProblemProperty p) {
        switch (p) {
        case PROBLEM_PROPERTY_CONFIG:
                return json_config_problems(view);
        case PROBLEM_PROPERTY_ENDPOINTS:
                return json_endpoint_problems(view);
        case PROBLEM_PROPERTY_WITHDRAWN:
                return json_withdrawn(view);
        default:
                return NULL;
        }
}

static int problem_property_get_list(sd_bus *bus, const char *path, const char *interface, const char *property,
                                     sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        HostView view = server_view(userdata);
        _cleanup_json_ json_object *list = problem_list(&view, find_problem_property(property));
        int r = list ? sd_bus_message_open_container(reply, 'a', "s") : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < json_length(list); i++)
                r = sd_bus_message_append(reply, "s", json_object_get_string(json_at(list, i)));
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int problem_property_get_withdrawn(sd_bus *bus, const char *path, const char *interface, const char *property,
                                          sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        HostView view = server_view(userdata);
        _cleanup_json_ json_object *list = json_withdrawn(&view);
        int r = list ? sd_bus_message_open_container(reply, 'a', "(ss)") : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < json_length(list); i++)
                r = sd_bus_message_append(reply, "(ss)", member_text(json_at(list, i), "address"),
                                          member_text(json_at(list, i), "pool"));
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

#define NO_ARGS SD_BUS_NO_ARGS
/* The flag of all methods. Without it sd-bus itself would ask the bus for the caller's credentials, and block the event
 * loop until the bus replies. Instead admission_check() decides who may read, and authorize() who may change
 * something. */
#define OPEN    SD_BUS_VTABLE_UNPRIVILEGED
#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("ListDevices", NO_ARGS, SD_BUS_RESULT("a(sssiisso)", devices), method_counted, OPEN),
        SD_BUS_METHOD_WITH_ARGS("GetDevice", SD_BUS_ARGS("s", address), SD_BUS_RESULT("o", device), method_get_device,
                                OPEN),
        SD_BUS_METHOD_WITH_ARGS("ListAllocations", NO_ARGS, SD_BUS_RESULT("a(sstuo)", allocations), method_counted,
                                OPEN),
        SD_BUS_METHOD_WITH_ARGS("GetAllocation", SD_BUS_ARGS("s", name), SD_BUS_RESULT("o", allocation),
                                method_get_allocation, OPEN),
        SD_BUS_METHOD_WITH_ARGS("ListPools", NO_ARGS, SD_BUS_RESULT("a(suuuuuo)", pools), method_list_pools, OPEN),
        SD_BUS_METHOD_WITH_ARGS("ListNodes", NO_ARGS, SD_BUS_RESULT("a(iuutto)", nodes), method_list_nodes, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Explain", SD_BUS_ARGS("s", device), SD_BUS_RESULT("s", json), method_explain, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Plan", SD_BUS_ARGS("a{sv}", request), SD_BUS_RESULT("v", json), method_counted, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Allocate", SD_BUS_ARGS("s", name, "a{sv}", request),
                                SD_BUS_RESULT("o", allocation, "o", job), bus_method_change, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Release", SD_BUS_ARGS("s", name, "t", generation), SD_BUS_RESULT("o", job),
                                bus_method_change, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Prepare", SD_BUS_ARGS("s", name, "t", generation), SD_BUS_RESULT("o", job),
                                bus_method_change, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Renew", SD_BUS_ARGS("s", name, "t", generation, "u", seconds), SD_BUS_NO_RESULT,
                                bus_method_change, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Attach", SD_BUS_ARGS("s", name, "t", generation, "a{sv}", request),
                                SD_BUS_RESULT("o", job), bus_method_change, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Detach", SD_BUS_ARGS("s", name, "t", generation, "s", slot), SD_BUS_RESULT("o", job),
                                bus_method_change, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Accept", SD_BUS_ARGS("s", name, "t", generation), SD_BUS_RESULT("o", job),
                                bus_method_change, OPEN),
        SD_BUS_METHOD_WITH_ARGS("GetDomainXML", SD_BUS_ARGS("s", name, "a{sv}", options), SD_BUS_RESULT("v", xml),
                                method_counted, OPEN),
        SD_BUS_METHOD_WITH_ARGS("GetNcclTopology", SD_BUS_ARGS("s", name, "a{sv}", options), SD_BUS_RESULT("v", xml),
                                method_counted, OPEN),
        SD_BUS_METHOD_WITH_ARGS("SetVirtualFunctions", SD_BUS_ARGS("s", pf, "u", count), SD_BUS_RESULT("o", job),
                                bus_method_change, OPEN),
        SD_BUS_METHOD_WITH_ARGS("ClearQuarantine", SD_BUS_ARGS("s", device), SD_BUS_RESULT("o", job), bus_method_change,
                                OPEN),
        SD_BUS_METHOD_WITH_ARGS("Rescan", NO_ARGS, SD_BUS_NO_RESULT, bus_method_change, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Reload", NO_ARGS, SD_BUS_NO_RESULT, bus_method_change, OPEN),
        SD_BUS_METHOD_WITH_ARGS("Describe", NO_ARGS, SD_BUS_RESULT("v", json), method_counted, OPEN),
        SD_BUS_METHOD_WITH_ARGS("DescribeTopology", NO_ARGS, SD_BUS_RESULT("v", json), method_counted, OPEN),
        SD_BUS_PROPERTY("Version", "s", property_get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("ReadOnly", "s", problem_property_get_text, 0, CHANGES),
        SD_BUS_PROPERTY("LibvirtProblem", "s", problem_property_get_text, 0, CHANGES),
        SD_BUS_PROPERTY("ConfigProblems", "as", problem_property_get_list, 0, CHANGES),
        SD_BUS_PROPERTY("NoneOffered", "s", problem_property_get_text, 0, CHANGES),
        SD_BUS_PROPERTY("Withdrawn", "a(ss)", problem_property_get_withdrawn, 0, CHANGES),
        SD_BUS_PROPERTY("EndpointProblems", "as", problem_property_get_list, 0, CHANGES),
        SD_BUS_PROPERTY("JobTimes", "a(ssut)", property_get_job_times, 0, 0),
        SD_BUS_PROPERTY("Epoch", "t", property_get_epoch, 0, CHANGES),
        SD_BUS_SIGNAL_WITH_ARGS("DeviceAdded", SD_BUS_ARGS("s", address, "o", device), 0),
        SD_BUS_SIGNAL_WITH_ARGS("DeviceRemoved", SD_BUS_ARGS("s", address, "o", device), 0),
        SD_BUS_SIGNAL_WITH_ARGS("AllocationNew", SD_BUS_ARGS("s", name, "o", allocation), 0),
        SD_BUS_SIGNAL_WITH_ARGS("AllocationRemoved", SD_BUS_ARGS("s", name, "o", allocation), 0),
        SD_BUS_SIGNAL_WITH_ARGS("JobNew", SD_BUS_ARGS("u", id, "o", job), 0),
        SD_BUS_SIGNAL_WITH_ARGS("JobRemoved", SD_BUS_ARGS("u", id, "o", job, "s", result), 0),
        SD_BUS_VTABLE_END,
};

int manager_object_add(sd_bus *bus, Server *s) {
        return sd_bus_add_object_vtable(bus, NULL, BUS_PATH, BUS_MANAGER_INTERFACE, manager_vtable, s);
}

static uint64_t problem_digest(const HostView *view, ProblemProperty p) {
        _cleanup_json_ json_object *list = problem_list(view, p);
        _cleanup_free_ char *text = list ? json_text(list) : NULL;

        return digest_string(DIGEST_START, list ? text : problem_text(view, p));
}

unsigned problems_note_shown(Server *s) {
        HostView view = server_view(s);
        unsigned properties = 0;

        for (unsigned i = 0; i < _PROBLEM_PROPERTY_MAX; i++) {
                uint64_t now = problem_digest(&view, (ProblemProperty) i);

                if (s->problems[i] != now)
                        properties |= 1U << i;
                s->problems[i] = now;
        }
        return properties;
}
