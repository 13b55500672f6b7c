/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The properties of the manager that say what is wrong with the daemon or its configuration. Describe has the same. */

#include <errno.h>

#include "json.h"
#include "server-internal.h"
#include "util/digest.h"
#include "util/strings.h"
#include "util/stringtable.h"

static const char *const problem_property_table[_PROBLEM_PROPERTY_MAX] = {
        [PROBLEM_PROPERTY_READ_ONLY] = "ReadOnly",    [PROBLEM_PROPERTY_LIBVIRT] = "LibvirtProblem",
        [PROBLEM_PROPERTY_CONFIG] = "ConfigProblems", [PROBLEM_PROPERTY_NONE_OFFERED] = "NoneOffered",
        [PROBLEM_PROPERTY_WITHDRAWN] = "Withdrawn",   [PROBLEM_PROPERTY_ENDPOINTS] = "EndpointProblems",
};
DEFINE_STRING_TABLE(problem_property, ProblemProperty, _PROBLEM_PROPERTY_MAX)

static const char *problem_text(const HostView *view, ProblemProperty p) {
        const LibvirtStatus *l = view->libvirt;

        if (p == PROBLEM_PROPERTY_READ_ONLY)
                return ledger_problem(view->ledger) ?: "";
        if (p == PROBLEM_PROPERTY_NONE_OFFERED)
                return view->config->block_reason ?: "";
        /* It is no problem that libvirt has not answered yet. */
        return l && l->configured && l->logged && l->reason ? l->reason : "";
}

int problem_property_get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
                              sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        HostView view = server_view(userdata);

        return sd_bus_message_append(reply, "s", problem_text(&view, problem_property_from_string(property)));
}

/* NULL: the property is a text. */
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

int problem_property_get_list(sd_bus *bus, const char *path, const char *interface, const char *property,
                              sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        HostView view = server_view(userdata);
        _cleanup_json_ json_object *list = problem_list(&view, problem_property_from_string(property));
        int r = list ? sd_bus_message_open_container(reply, 'a', "s") : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < json_object_array_length(list); i++)
                r = sd_bus_message_append(reply, "s", json_object_get_string(json_object_array_get_idx(list, i)));
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

int problem_property_get_withdrawn(sd_bus *bus, const char *path, const char *interface, const char *property,
                                   sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        HostView view = server_view(userdata);
        _cleanup_json_ json_object *list = json_withdrawn(&view);
        int r = list ? sd_bus_message_open_container(reply, 'a', "(ss)") : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < json_object_array_length(list); i++) {
                json_object *device = json_object_array_get_idx(list, i);

                r = sd_bus_message_append(reply, "(ss)",
                                          json_object_get_string(json_object_object_get(device, "address")),
                                          json_object_get_string(json_object_object_get(device, "pool")));
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
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
