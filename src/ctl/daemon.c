/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the daemon for its state by Describe, and finds the problems in the reply. */

#include "daemon.h"

#include <errno.h>
#include <stdlib.h>

#include "report.h"
#include "util/strings.h"
#include "view.h"

static _printf_(2, 3) int add_problem(DaemonReport *d, const char *format, ...) {
        char *text;

        if (d->n_problems >= DAEMON_PROBLEMS_MAX - 1 && d->n_unlisted++ > 0)
                return string_replace(&d->problems[d->n_problems - 1], "%zu more problems are not listed.",
                                      d->n_unlisted);
        text = FORMAT_ARGUMENTS(format);
        if (!text)
                return -ENOMEM;
        d->problems[d->n_problems++] = text;
        return 0;
}

/* Adds a problem that counts the devices in this state, and gives the reason of the first one. Returns 0 or -ENOMEM. */
static int add_devices(DaemonReport *d, json_object *node, const char *state) {
        json_object *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < member_length(node, "devices"); i++) {
                json_object *device = member_at(node, "devices", i);

                if (streq_ptr(reply_text(device, "state"), state)) {
                        first = first ?: device;
                        n++;
                }
        }
        if (!first)
                return 0;
        return add_problem(d, "%s%s %s %s. %s", reply_cell(first, "address"), AND_MORE(n - 1), ARE(n), state,
                           reply_text(first, "reason") ?: "");
}

static int add_allocations(DaemonReport *d, json_object *node) {
        int r = 0;

        for (size_t i = 0; i < member_length(node, "allocations"); i++) {
                json_object *a = member_at(node, "allocations", i);
                const char *reason = reply_text(a, "reason");

                if (reason)
                        r = add_problem(d, "Allocation '%s' is %s: %s", reply_cell(a, "name"), reply_cell(a, "state"),
                                        reason);
                if (r < 0)
                        return r;
        }
        return r;
}

/* Adds a problem for each endpoint of the pool with the health "down". Returns 0 or -ENOMEM. */
static int add_endpoints(DaemonReport *d, json_object *pool) {
        int r = 0;

        for (size_t i = 0; i < member_length(pool, "endpoints"); i++) {
                json_object *endpoint = member_at(pool, "endpoints", i);

                if (streq_ptr(reply_text(endpoint, "health"), "down"))
                        r = add_problem(d, "Endpoint %s of service '%s': %s", reply_cell(endpoint, "endpoint"),
                                        reply_cell(pool, "name"), reply_cell(endpoint, "reason"));
                if (r < 0)
                        return r;
        }
        return r;
}

/* Adds the sentence of view_withdrawn(), and why no device is offered, if none is. add_problems() adds the broken lines
 * of the configuration last. */
static int add_withdrawn(DaemonReport *d, json_object *node) {
        _cleanup_free_ char *withdrawn = view_withdrawn(node);
        const char *none = reply_text(node, "none_offered");
        int r = withdrawn ? add_problem(d, "%s", withdrawn) : 0;

        return r >= 0 && none ? add_problem(d, "%s", none) : r;
}

static int add_problems(DaemonReport *d, json_object *node) {
        static const char *const states[] = { "stuck",     "quarantined",      "unhealthy",
                                              "contested", "hardware-changed", "missing" };
        int r;

        r = add_withdrawn(d, node);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(states); i++)
                r = add_devices(d, node, states[i]);
        if (r < 0)
                return r;
        r = add_allocations(d, node);
        for (size_t i = 0; r >= 0 && i < member_length(node, "pools"); i++)
                r = add_endpoints(d, member_at(node, "pools", i));
        for (size_t i = 0; r >= 0 && i < member_length(node, "config_problems"); i++)
                r = add_problem(d, "%s", reply_element_cell(node, "config_problems", i));
        return r;
}

static int read_libvirt(DaemonReport *d, json_object *libvirt) {
        d->asks_libvirt = libvirt;
        if (!libvirt)
                return 0;
        d->libvirt_features = view_join(libvirt, "features", " ");
        if (string_copy(&d->libvirt_reason, reply_text(libvirt, "reason")) < 0 ||
            string_copy(&d->libvirt_version, reply_text(libvirt, "version")) < 0)
                return -ENOMEM;
        return string_copy(&d->qemu_version, reply_text(libvirt, "qemu_version"));
}

int daemon_ask(const Args *args, DaemonReport *ret, json_object **ret_node) {
        Args quiet = *args;
        int r;

        quiet.problem = &ret->unreachable;
        r = reply_ask_once(&quiet, "Describe", NULL, NULL, ret_node);
        if (r < 0)
                return ret->unreachable ? 0 : report_errno(args, -ENOMEM, "Cannot ask the daemon");
        if (string_copy(&ret->read_only, reply_text(*ret_node, "read_only")) < 0 ||
            string_copy(&ret->sysroot, reply_text(*ret_node, "sysroot")) < 0 ||
            string_copy(&ret->config_file, reply_text(*ret_node, "config_file")) < 0 ||
            add_problems(ret, *ret_node) < 0 || read_libvirt(ret, member_object(*ret_node, "libvirt")) < 0)
                return report_errno(args, -ENOMEM, "Cannot read the reply");
        return 0;
}

const char *daemon_node(const Args *args, const DaemonReport *report) {
        if (args_has(args, OPTION_NODE))
                return args->text[OPTION_NODE];
        return report->sysroot ?: secure_getenv("PASSTHROUGH_SYSROOT") ?: "/";
}

const char *daemon_config(const Args *args, const DaemonReport *report) {
        return args_has(args, OPTION_NODE) ? args->text[OPTION_CONFIG] : report->config_file;
}
