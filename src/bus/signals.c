/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Emits signals when a job, an allocation or a device is added, changes or is removed. */

#include <errno.h>

#include "server-internal.h"
#include "util/log.h"

static void check(int r, const char *what) {
        if (r < 0)
                log_warning_errno(r, "Failed to emit the signal for %s, ignoring: %m", what);
}

void server_job_new(Server *s, uint32_t id) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (!s->announced)
                return;
        r = job_path(id, &path);
        if (r >= 0)
                r = sd_bus_emit_object_added(s->bus, path);
        if (r >= 0)
                r = sd_bus_emit_signal(s->bus, BUS_PATH, BUS_MANAGER_INTERFACE, "JobNew", "uo", id, path);
        check(r, "a new job");
}

void server_job_changed(Server *s, uint32_t id) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (!s->announced)
                return;
        r = job_path(id, &path);
        if (r >= 0)
                r = sd_bus_emit_properties_changed(s->bus, path, BUS_JOB_INTERFACE, "Step", "StepsDone", "StepsTotal",
                                                   "Message", NULL);
        check(r, "the progress of a job");
}

void server_job_removed(Server *s, uint32_t id, const char *result) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (!s->announced)
                return;
        r = job_path(id, &path);
        if (r >= 0)
                r = sd_bus_emit_signal(s->bus, BUS_PATH, BUS_MANAGER_INTERFACE, "JobRemoved", "uos", id, path, result);
        if (r >= 0)
                r = sd_bus_emit_object_removed(s->bus, path);
        check(r, "a removed job");
}

/* Emits the Manager's signal and the ObjectManager's signal. A removed object must still exist during the call. */
static void signal_object(Server *s, const char *signal, const char *label, const char *path, bool added) {
        int r;

        if (!s->announced)
                return;
        r = added ? sd_bus_emit_object_added(s->bus, path) : sd_bus_emit_object_removed(s->bus, path);
        if (r >= 0)
                r = sd_bus_emit_signal(s->bus, BUS_PATH, BUS_MANAGER_INTERFACE, signal, "so", label, path);
        check(r, signal);
}

static void signal_allocation(Server *s, const char *signal, const char *name, bool added) {
        _cleanup_free_ char *path = NULL;

        if (allocation_path(name, &path) >= 0)
                signal_object(s, signal, name, path, added);
}

static void signal_device(Server *s, const char *signal, PciAddress address, bool added) {
        _cleanup_free_ char *path = NULL;

        if (device_path(address, &path) >= 0)
                signal_object(s, signal, PCI_ADDRESS_STR(address), path, added);
}

void server_allocation_new(Server *s, const char *name) {
        signal_allocation(s, "AllocationNew", name, true);
}

void server_allocation_removed(Server *s, const char *name) {
        signal_allocation(s, "AllocationRemoved", name, false);
}

void server_allocation_changed(Server *s, const char *name) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (!s->announced)
                return;
        r = allocation_path(name, &path);
        if (r >= 0)
                r = sd_bus_emit_properties_changed(s->bus, path, BUS_ALLOCATION_INTERFACE, "State", "Reason", NULL);
        check(r, "a change of an allocation");
}

void server_device_added(Server *s, PciAddress address) {
        signal_device(s, "DeviceAdded", address, true);
}

void server_device_removed(Server *s, PciAddress address) {
        signal_device(s, "DeviceRemoved", address, false);
}

void server_device_changed(Server *s, PciAddress address, unsigned properties) {
        const char *names[_DEVICE_PROPERTY_MAX + 1] = { NULL };
        _cleanup_free_ char *path = NULL;
        int r;

        if (!s->announced)
                return;
        r = device_path(address, &path);
        size_t n = 0;

        for (unsigned i = 0; i < _DEVICE_PROPERTY_MAX; i++)
                if (properties & 1U << i)
                        names[n++] = device_property_to_string((DeviceProperty) i);
        if (r >= 0)
                r = sd_bus_emit_properties_changed_strv(s->bus, path, BUS_DEVICE_INTERFACE, (char **) names);
        check(r, "a change of a device");
}
