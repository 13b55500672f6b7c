/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Emits signals when a job, an allocation or a device is added, changes or is removed: on the bus and to each peer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "server-internal.h"
#include "util/log.h"

typedef struct Signal {
        const char *path;        /* path of the object; NULL: out of memory */
        const char *interface;   /* interface of the object */
        const char *member;      /* member of the Manager's signal */
        const char *label;       /* the allocation's name, or the device's address */
        const char *result;      /* of a job */
        const char **properties; /* names of the changed properties */
        uint32_t id;             /* of a job */
} Signal;

typedef int (*Emit)(sd_bus *bus, const Signal *signal);

/* The most signals that the other side of a connection has not read. A connection with more is closed, because they
 * fill the daemon's memory. */
#define UNREAD_MAX 1024U

static void emit_to(Connection *c, const char *what, Emit function, const Signal *signal) {
        uint64_t unread;
        int r;

        if (!c->announced)
                return;
        if (sd_bus_get_n_queued_write(c->bus, &unread) >= 0 && unread > UNREAD_MAX) {
                c->lost(c, "its signals are not read");
                return;
        }
        r = function(c->bus, signal);
        /* The other side has closed the connection, but the event loop has not noticed it yet. */
        if (r == -ECONNRESET || r == -ENOTCONN || r == -EPIPE)
                return;
        if (r < 0)
                log_warning_errno(r, "Failed to emit the signal for %s, ignoring: %m", what);
}

static void emit(Server *s, const char *what, Emit function, const Signal *signal) {
        if (!signal->path) {
                log_warning("Failed to emit the signal for %s, ignoring: out of memory.", what);
                return;
        }
        emit_to(&s->system_bus.connection, what, function, signal);
        for (size_t i = 0; i < PEERS_MAX; i++)
                emit_to(&s->peers[i], what, function, signal);
}

/* Emits InterfacesRemoved with explicit interfaces, because sd-bus cannot find those of an object that no longer
 * exists. */
static int emit_object_removed(sd_bus *bus, const Signal *signal) {
        const char *const interfaces[] = { "org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable",
                                           "org.freedesktop.DBus.Properties", signal->interface, NULL };

        return sd_bus_emit_interfaces_removed_strv(bus, signal->path, (char **) interfaces);
}

static int emit_changed(sd_bus *bus, const Signal *signal) {
        return sd_bus_emit_properties_changed_strv(bus, signal->path, signal->interface, (char **) signal->properties);
}

static int emit_job_new(sd_bus *bus, const Signal *signal) {
        int r = sd_bus_emit_object_added(bus, signal->path);

        return r < 0 ? r
                     : sd_bus_emit_signal(bus, BUS_PATH, BUS_MANAGER_INTERFACE, "JobNew", "uo", signal->id,
                                          signal->path);
}

static int emit_job_removed(sd_bus *bus, const Signal *signal) {
        int r = sd_bus_emit_signal(bus, BUS_PATH, BUS_MANAGER_INTERFACE, "JobRemoved", "uos", signal->id, signal->path,
                                   signal->result);

        return r < 0 ? r : emit_object_removed(bus, signal);
}

static void signal_job(Server *s, uint32_t id, const char *result, const char **properties, const char *what,
                       Emit function) {
        _cleanup_free_ char *path = NULL;

        (void) job_path(id, &path);
        emit(s, what, function,
             &(Signal) { .path = path,
                         .interface = BUS_JOB_INTERFACE,
                         .id = id,
                         .result = result,
                         .properties = properties });
}

void server_job_new(Server *s, uint32_t id) {
        (void) job_note_shown(s, id);
        signal_job(s, id, NULL, NULL, "a new job", emit_job_new);
}

void server_job_changed(Server *s, uint32_t id) {
        const char *names[_JOB_PROPERTY_MAX + 1] = { NULL };
        unsigned properties = job_note_shown(s, id);
        size_t n = 0;

        for (unsigned i = 0; i < _JOB_PROPERTY_MAX; i++)
                if (properties & 1U << i)
                        names[n++] = job_property_to_string((JobProperty) i);
        if (n > 0)
                signal_job(s, id, NULL, names, "the progress of a job", emit_changed);
}

void server_job_removed(Server *s, uint32_t id, const char *result) {
        job_forget_shown(s, id);
        signal_job(s, id, result, NULL, "a removed job", emit_job_removed);
}

/* Emits the ObjectManager's signal for an object, and the Manager's signal. */
static int emit_added(sd_bus *bus, const Signal *signal) {
        int r = sd_bus_emit_object_added(bus, signal->path);

        return r < 0 ? r
                     : sd_bus_emit_signal(bus, BUS_PATH, BUS_MANAGER_INTERFACE, signal->member, "so", signal->label,
                                          signal->path);
}

static int emit_removed(sd_bus *bus, const Signal *signal) {
        int r = emit_object_removed(bus, signal);

        return r < 0 ? r
                     : sd_bus_emit_signal(bus, BUS_PATH, BUS_MANAGER_INTERFACE, signal->member, "so", signal->label,
                                          signal->path);
}

static void signal_allocation(Server *s, const char *name, const char *member, const char **properties, Emit function) {
        _cleanup_free_ char *path = NULL;

        s->epoch++;
        (void) allocation_path(name, &path);
        emit(s, member, function,
             &(Signal) { .path = path,
                         .interface = BUS_ALLOCATION_INTERFACE,
                         .member = member,
                         .label = name,
                         .properties = properties });
}

static void signal_device(Server *s, PciAddress address, const char *member, const char **properties, Emit function) {
        _cleanup_free_ char *path = NULL;

        s->epoch++;
        (void) device_path(address, &path);
        emit(s, member, function,
             &(Signal) { .path = path,
                         .interface = BUS_DEVICE_INTERFACE,
                         .member = member,
                         .label = PCI_ADDRESS_STR(address),
                         .properties = properties });
}

void server_allocation_new(Server *s, const char *name) {
        signal_allocation(s, name, "AllocationNew", NULL, emit_added);
}

void server_allocation_removed(Server *s, const char *name) {
        signal_allocation(s, name, "AllocationRemoved", NULL, emit_removed);
}

void server_allocation_changed(Server *s, const char *name, unsigned properties) {
        const char *names[_ALLOCATION_PROPERTY_MAX + 1] = { NULL };
        size_t n = 0;

        for (unsigned i = 0; i < _ALLOCATION_PROPERTY_MAX; i++)
                if (properties & 1U << i)
                        names[n++] = allocation_property_to_string((AllocationProperty) i);
        if (n > 0)
                signal_allocation(s, name, "a change of an allocation", names, emit_changed);
        else
                s->epoch++;
}

void server_device_added(Server *s, PciAddress address) {
        signal_device(s, address, "DeviceAdded", NULL, emit_added);
}

void server_device_removed(Server *s, PciAddress address) {
        signal_device(s, address, "DeviceRemoved", NULL, emit_removed);
}

void server_device_changed(Server *s, PciAddress address, unsigned properties) {
        const char *names[_DEVICE_PROPERTY_MAX + 1] = { NULL };
        size_t n = 0;

        for (unsigned i = 0; i < _DEVICE_PROPERTY_MAX; i++)
                if (properties & 1U << i)
                        names[n++] = device_property_to_string((DeviceProperty) i);
        signal_device(s, address, "a change of a device", names, emit_changed);
}

static int emit_object_added(sd_bus *bus, const Signal *signal) {
        return sd_bus_emit_object_added(bus, signal->path);
}

static void signal_pool(Server *s, const char *name, const char **properties, Emit function) {
        _cleanup_free_ char *path = NULL;

        s->epoch++;
        (void) pool_path(name, &path);
        emit(s, "a pool", function,
             &(Signal) { .path = path, .interface = BUS_POOL_INTERFACE, .properties = properties });
}

static void signal_node(Server *s, int id, const char **properties, Emit function) {
        _cleanup_free_ char *path = NULL;

        s->epoch++;
        (void) node_path(id, &path);
        emit(s, "a NUMA node", function,
             &(Signal) { .path = path, .interface = BUS_NODE_INTERFACE, .properties = properties });
}

void server_pool_added(Server *s, const char *name) {
        signal_pool(s, name, NULL, emit_object_added);
}

void server_pool_removed(Server *s, const char *name) {
        signal_pool(s, name, NULL, emit_object_removed);
}

void server_pool_changed(Server *s, const char *name, unsigned properties) {
        const char *names[_POOL_PROPERTY_MAX + 1] = { NULL };
        size_t n = 0;

        for (unsigned i = 0; i < _POOL_PROPERTY_MAX; i++)
                if (properties & 1U << i)
                        names[n++] = pool_property_to_string((PoolProperty) i);
        signal_pool(s, name, names, emit_changed);
}

void server_node_added(Server *s, int id) {
        signal_node(s, id, NULL, emit_object_added);
}

void server_node_removed(Server *s, int id) {
        signal_node(s, id, NULL, emit_object_removed);
}

void server_node_changed(Server *s, int id, unsigned properties) {
        const char *names[_NODE_PROPERTY_MAX + 1] = { NULL };
        size_t n = 0;

        for (unsigned i = 0; i < _NODE_PROPERTY_MAX; i++)
                if (properties & 1U << i)
                        names[n++] = node_property_to_string((NodeProperty) i);
        signal_node(s, id, names, emit_changed);
}

static void signal_manager(Server *s, const char **properties) {
        emit(s, "the manager", emit_changed,
             &(Signal) { .path = BUS_PATH, .interface = BUS_MANAGER_INTERFACE, .properties = properties });
}

void server_problems_changed(Server *s, unsigned properties) {
        const char *names[_PROBLEM_PROPERTY_MAX + 1] = { NULL };
        size_t n = 0;

        for (unsigned i = 0; i < _PROBLEM_PROPERTY_MAX; i++)
                if (properties & 1U << i)
                        names[n++] = problem_property_to_string((ProblemProperty) i);
        if (n > 0)
                signal_manager(s, names);
}

void server_epoch_changed(Server *s) {
        const char *names[] = { "Epoch", NULL };

        signal_manager(s, names);
}

/* The paths of D-Bus objects. */

int device_path(PciAddress address, char **ret) {
        return sd_bus_path_encode(BUS_DEVICE_PREFIX, PCI_ADDRESS_STR(address), ret);
}

int allocation_path(const char *name, char **ret) {
        return sd_bus_path_encode(BUS_ALLOCATION_PREFIX, name, ret);
}

int job_path(uint32_t id, char **ret) {
        char label[16];

        (void) snprintf(label, sizeof(label), "%" PRIu32, id);
        return sd_bus_path_encode(BUS_JOB_PREFIX, label, ret);
}

int pool_path(const char *name, char **ret) {
        return sd_bus_path_encode(BUS_POOL_PREFIX, name, ret);
}

int node_path(int id, char **ret) {
        char label[16];

        (void) snprintf(label, sizeof(label), "%d", id);
        return sd_bus_path_encode(BUS_NODE_PREFIX, label, ret);
}
