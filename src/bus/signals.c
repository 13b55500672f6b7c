/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Emits signals on the bus and to each peer: when a job, an allocation, a device, a pool or a NUMA node is added,
 * changes or is removed, and when problems or the epoch change. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "server-internal.h"
#include "util/log.h"

typedef struct Signal {
        const char *path;      /* path of the object; NULL when memory for it ran out */
        const char *interface; /* interface of the object */
        const char *member; /* name of the Manager's signal that emit_added() and emit_removed() emit too; NULL: none */
        const char *label;  /* label of the object before encoding: the allocation's name or the device's address, for
                               example */
        const char *result; /* result of the job; only for a job that was removed */
        const char *const *names; /* names of all properties of the object that change */
        unsigned properties;      /* a bit for each property that has changed */
        uint32_t id;              /* id of the job; only for a job that was added or removed */
} Signal;

typedef int (*Emit)(sd_bus *bus, const Signal *signal);

/* The most messages that may wait for the other side of a connection when a signal is emitted. A connection with more
 * is closed, because the signals would fill the daemon's memory. */
#define UNREAD_MAX 1024U

/* The id as the label of an object. LABEL() is valid until the end of the expression. */
typedef struct Label {
        char text[16];
} Label;
#define LABEL(id) (label_of(id).text)
static Label label_of(uint32_t id) {
        Label label;

        (void) snprintf(label.text, sizeof(label.text), "%" PRIu32, id);
        return label;
}

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
        /* The other side has closed the connection. The event loop is about to notice it. */
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

/* Emits InterfacesRemoved with a list of interfaces, because sd-bus does not know the interfaces of an object that no
 * longer exists. */
static int emit_object_removed(sd_bus *bus, const Signal *signal) {
        const char *const interfaces[] = { "org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable",
                                           "org.freedesktop.DBus.Properties", signal->interface, NULL };

        return sd_bus_emit_interfaces_removed_strv(bus, signal->path, (char **) interfaces);
}

static int emit_changed(sd_bus *bus, const Signal *signal) {
        const char *names[CHAR_BIT * sizeof(unsigned) + 1] = { NULL };
        size_t n = 0;

        for (unsigned i = 0; signal->properties >> i; i++)
                if (signal->properties & 1U << i)
                        names[n++] = signal->names[i];
        return sd_bus_emit_properties_changed_strv(bus, signal->path, signal->interface, (char **) names);
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

/* Emits the signal of the ObjectManager for a new object, and then the signal of the Manager if signal->member names
 * one. */
static int emit_added(sd_bus *bus, const Signal *signal) {
        int r = sd_bus_emit_object_added(bus, signal->path);

        if (r < 0 || !signal->member)
                return r;
        return sd_bus_emit_signal(bus, BUS_PATH, BUS_MANAGER_INTERFACE, signal->member, "so", signal->label,
                                  signal->path);
}

static int emit_removed(sd_bus *bus, const Signal *signal) {
        int r = emit_object_removed(bus, signal);

        if (r < 0 || !signal->member)
                return r;
        return sd_bus_emit_signal(bus, BUS_PATH, BUS_MANAGER_INTERFACE, signal->member, "so", signal->label,
                                  signal->path);
}

/* Emits a signal about an object of the kind. what: names the signal in a message about a failure. signal: the values
 * that kind and label do not give. */
static void signal_object(Server *s, const ObjectKind *kind, const char *label, const char *what, Emit function,
                          Signal signal) {
        _cleanup_free_ char *path = NULL;

        if (kind != &job_objects)
                s->epoch++;
        (void) sd_bus_path_encode(kind->prefix, label, &path);
        signal.path = path;
        signal.interface = kind->interface;
        signal.label = label;
        signal.names = kind->properties;
        emit(s, what, function, &signal);
}

void server_job_new(Server *s, uint32_t id) {
        (void) job_note_shown(s, id);
        signal_object(s, &job_objects, LABEL(id), "a new job", emit_job_new, (Signal) { .id = id });
}

void server_job_changed(Server *s, uint32_t id) {
        unsigned properties = job_note_shown(s, id);

        if (properties != 0)
                signal_object(s, &job_objects, LABEL(id), "the progress of a job", emit_changed,
                              (Signal) { .properties = properties });
}

void server_job_removed(Server *s, uint32_t id, const char *result) {
        job_forget_shown(s, id);
        signal_object(s, &job_objects, LABEL(id), "a removed job", emit_job_removed,
                      (Signal) { .id = id, .result = result });
}

void server_allocation_new(Server *s, const char *name) {
        signal_object(s, &allocation_objects, name, "AllocationNew", emit_added,
                      (Signal) { .member = "AllocationNew" });
}

void server_allocation_removed(Server *s, const char *name) {
        signal_object(s, &allocation_objects, name, "AllocationRemoved", emit_removed,
                      (Signal) { .member = "AllocationRemoved" });
}

void server_allocation_changed(Server *s, const char *name, unsigned properties) {
        if (properties != 0)
                signal_object(s, &allocation_objects, name, "a change of an allocation", emit_changed,
                              (Signal) { .properties = properties });
        else
                s->epoch++;
}

void server_device_added(Server *s, PciAddress address) {
        signal_object(s, &device_objects, PCI_ADDRESS_STR(address), "DeviceAdded", emit_added,
                      (Signal) { .member = "DeviceAdded" });
}

void server_device_removed(Server *s, PciAddress address) {
        signal_object(s, &device_objects, PCI_ADDRESS_STR(address), "DeviceRemoved", emit_removed,
                      (Signal) { .member = "DeviceRemoved" });
}

void server_device_changed(Server *s, PciAddress address, unsigned properties) {
        signal_object(s, &device_objects, PCI_ADDRESS_STR(address), "a change of a device", emit_changed,
                      (Signal) { .properties = properties });
}

static void signal_pool(Server *s, const char *name, unsigned properties, Emit function) {
        signal_object(s, &pool_objects, name, "a pool", function, (Signal) { .properties = properties });
}

static void signal_node(Server *s, int id, unsigned properties, Emit function) {
        signal_object(s, &node_objects, LABEL((uint32_t) id), "a NUMA node", function,
                      (Signal) { .properties = properties });
}

void server_pool_added(Server *s, const char *name) {
        signal_pool(s, name, 0, emit_added);
}

void server_pool_removed(Server *s, const char *name) {
        signal_pool(s, name, 0, emit_removed);
}

void server_pool_changed(Server *s, const char *name, unsigned properties) {
        signal_pool(s, name, properties, emit_changed);
}

void server_node_added(Server *s, int id) {
        signal_node(s, id, 0, emit_added);
}

void server_node_removed(Server *s, int id) {
        signal_node(s, id, 0, emit_removed);
}

void server_node_changed(Server *s, int id, unsigned properties) {
        signal_node(s, id, properties, emit_changed);
}

static void signal_manager(Server *s, const char *const *names, unsigned properties) {
        emit(s, "the manager", emit_changed,
             &(Signal) {
                     .path = BUS_PATH, .interface = BUS_MANAGER_INTERFACE, .names = names, .properties = properties });
}

void server_problems_changed(Server *s, unsigned properties) {
        if (properties != 0)
                signal_manager(s, problem_property_names, properties);
}

void server_epoch_changed(Server *s) {
        signal_manager(s, (const char *const[]) { "Epoch" }, 1);
}

/* The paths of the D-Bus objects. */

int device_path(PciAddress address, char **ret) {
        return sd_bus_path_encode(BUS_DEVICE_PREFIX, PCI_ADDRESS_STR(address), ret);
}

int allocation_path(const char *name, char **ret) {
        return sd_bus_path_encode(BUS_ALLOCATION_PREFIX, name, ret);
}

int job_path(uint32_t id, char **ret) {
        return sd_bus_path_encode(BUS_JOB_PREFIX, LABEL(id), ret);
}

int pool_path(const char *name, char **ret) {
        return sd_bus_path_encode(BUS_POOL_PREFIX, name, ret);
}

int node_path(int id, char **ret) {
        return sd_bus_path_encode(BUS_NODE_PREFIX, LABEL((uint32_t) id), ret);
}
