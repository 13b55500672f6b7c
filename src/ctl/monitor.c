/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl monitor: prints a line for each change that the daemon signals, and when the daemon starts or ends. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "bus/names.h"
#include "document.h"
#include "reply.h"
#include "report.h"
#include "util/clock.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

#define MATCH_DAEMON "type='signal',sender='" BUS_NAME "',path_namespace='" BUS_PATH "'"

#define WHAT_STEP "step"

typedef struct Monitor {
        Client *client; /* not owned */
        sd_bus_slot *slots[2];
        char *daemon; /* unique name of the daemon, from which signals must come; NULL: it does not run */
        bool failed;  /* standard output cannot be written */
} Monitor;

/* A kind of object that a line can be about. */
typedef struct Kind {
        const char *prefix, *interface; /* prefix of object paths, D-Bus interface; NULL for a kind without objects */
        const char *name;
        const char *key;      /* key of the label in JSON */
        const char *made;     /* the word for a new object: "added" or "new" */
        const char *shown[5]; /* the properties that are printed of a new object */
} Kind;

static const Kind kind_device = {
        BUS_DEVICE_PREFIX, BUS_DEVICE_INTERFACE,
        "device",          "address",
        "added",           { "pool", "state", "driver", "kernel_names", "name" },
};
static const Kind kind_allocation = {
        BUS_ALLOCATION_PREFIX, BUS_ALLOCATION_INTERFACE, "allocation", "name", "new", { "state" },
};
static const Kind kind_job = { BUS_JOB_PREFIX, BUS_JOB_INTERFACE, "job", "id", "new", { "verb", "subject" } };
static const Kind kind_daemon = { .name = "daemon" };

typedef struct Line {
        const Kind *kind;
        const char *label;       /* name of the object; NULL for kind_daemon */
        const char *what;        /* what happened: "added", "changed", ... */
        json_object *properties; /* or NULL */
        const char *result;      /* or NULL */
} Line;

static void monitor_done(Monitor *m) {
        for (size_t i = 0; i < ELEMENTSOF(m->slots); i++)
                sd_bus_slot_unref(m->slots[i]);
        free(m->daemon);
}

/* The lines on standard output. */

static bool is_empty_list(json_object *properties, const char *key) {
        return member_array(properties, key) && member_length(properties, key) == 0;
}

static void print_property(json_object *properties, const char *key, const char *separator) {
        _cleanup_free_ char *words = view_join(properties, key, " ");
        const char *s = words
                                ?: is_empty_list(properties, key) ? "-"
                                                                  : reply_cell(properties, key),
                   *quote = strchr(s, ' ') ? "\"" : "";

        printf("%s %s %s%s%s", separator, key, quote, s, quote);
}

static void print_shown(const Kind *kind, json_object *properties) {
        const char *separator = ":";

        for (size_t i = 0; i < ELEMENTSOF(kind->shown); i++)
                if (kind->shown[i] && reply_text(properties, kind->shown[i]) &&
                    !is_empty_list(properties, kind->shown[i])) {
                        print_property(properties, kind->shown[i], separator);
                        separator = ",";
                }
}

static void print_changed(json_object *properties) {
        const char *separator = ":";

        json_object_object_foreach(properties, key, value) {
                (void) value;
                print_property(properties, key, separator);
                separator = ",";
        }
}

static void print_step(json_object *properties) {
        const char *message = reply_text(properties, "message");
        int64_t done = member_number(properties, "steps_done"), total = member_number(properties, "steps_total");

        printf(" %" PRId64 "/%" PRId64 ": %s", MIN(done + 1, total), total,
               message ? message : reply_cell(properties, "step"));
}

static void print_text(const Line *line) {
        const char *label = line->label;
        char now[DOCUMENT_TIME_MAX];

        document_time(clock_usec(CLOCK_REALTIME), true, now);
        printf("%s %s%s%s %s", now, line->kind->name, label ? " " : "",
               !label || text_is_clean(label) ? label ?: "" : "(unprintable)", line->what);
        if (line->properties && streq(line->what, WHAT_STEP))
                print_step(line->properties);
        else if (line->properties && streq_ptr(line->what, line->kind->made))
                print_shown(line->kind, line->properties);
        else if (line->properties)
                print_changed(line->properties);
        printf("%s%s\n", line->result ? ": " : "", line->result ?: "");
}

static json_object *label_value(const Line *line) {
        uint64_t id;

        return line->kind == &kind_job && parse_unsigned(line->label, UINT32_MAX, &id) == 0
                       ? json_object_new_uint64(id)
                       : json_object_new_string(line->label);
}

static int print_line_json(const Monitor *m, const Line *line) {
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_free_ char *event = NULL;
        char now[DOCUMENT_TIME_MAX];

        document_time(clock_usec(CLOCK_REALTIME), false, now);
        if (!o || string_replace(&event, "%s-%s", line->kind->name, line->what) < 0 || !document_add(o, "time", now) ||
            !document_add(o, "event", event))
                return -ENOMEM;
        if (line->label && json_object_object_add(o, line->kind->key, label_value(line)) < 0)
                return -ENOMEM;
        if (line->properties && json_object_object_add(o, "properties", json_object_get(line->properties)) < 0)
                return -ENOMEM;
        if (line->result && !document_add(o, "result", line->result))
                return -ENOMEM;
        return document_print(m->client->args, TAKE_PTR(o));
}

static int print_line(Monitor *m, const Line *line) {
        int r = 0;

        if (args_has(m->client->args, OPTION_JSON))
                r = print_line_json(m, line);
        else
                print_text(line);
        m->failed = fflush(stdout) != 0;
        return r;
}

/* The signals of the daemon. */

static const Kind *kind_of(const char *path, char **ret_label) {
        static const Kind *const kinds[] = { &kind_device, &kind_allocation, &kind_job };

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (sd_bus_path_decode(path, kinds[i]->prefix, ret_label) > 0)
                        return kinds[i];
        return NULL;
}

/* Reads the object path at the beginning of a signal. *ret is NULL for an object of another kind, and on failure.
 * Returns 0 or a negative errno. */
static int read_kind(sd_bus_message *msg, const Kind **ret, char **ret_label) {
        const char *path;
        int r = sd_bus_message_read(msg, "o", &path);

        *ret = r < 0 ? NULL : kind_of(path, ret_label);
        return MIN(r, 0);
}

/* Reads the properties of the kind's interface from an a{sa{sv}}. *ret is NULL when the interface is not in it. Returns
 * 0 or a negative errno. */
static int read_interfaces(sd_bus_message *msg, const Kind *kind, json_object **ret) {
        _cleanup_json_ json_object *properties = NULL;
        const char *interface;
        int r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_ARRAY, "{sa{sv}}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(msg, SD_BUS_TYPE_DICT_ENTRY, "sa{sv}")) > 0) {
                r = sd_bus_message_read(msg, "s", &interface);
                if (r < 0)
                        return r;
                r = streq(interface, kind->interface) && !properties ? reply_read_properties(msg, &properties)
                                                                     : sd_bus_message_skip(msg, "a{sv}");
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(msg);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(properties);
        return 0;
}

static int handle_added(Monitor *m, sd_bus_message *msg) {
        _cleanup_json_ json_object *properties = NULL;
        _cleanup_free_ char *label = NULL;
        const Kind *kind;
        int r = read_kind(msg, &kind, &label);

        if (!kind)
                return r;
        r = read_interfaces(msg, kind, &properties);
        if (r < 0 || !properties)
                return r;
        return print_line(m, &(Line) { kind, label, kind->made, properties });
}

/* Handles InterfacesRemoved. Prints nothing for a job: handle_job_removed() prints that line, because JobRemoved has
 * the result. */
static int handle_removed(Monitor *m, sd_bus_message *msg) {
        _cleanup_free_ char *label = NULL;
        const Kind *kind;
        int r = read_kind(msg, &kind, &label);

        return kind && kind != &kind_job ? print_line(m, &(Line) { kind, label, "removed" }) : r;
}

static int handle_job_removed(Monitor *m, sd_bus_message *msg) {
        _cleanup_free_ char *label = NULL;
        const char *path, *result;
        int r;

        r = sd_bus_message_read(msg, "uos", NULL, &path, &result);
        if (r < 0 || kind_of(path, &label) != &kind_job)
                return r;
        return print_line(m, &(Line) { &kind_job, label, "removed", .result = result });
}

/* Returns true when the changed properties of a job are printed as a step: a step begins, or the job has a message. The
 * change at the end of the last step is not printed, because JobRemoved follows. */
static bool is_step(json_object *properties) {
        return reply_text(properties, "message") ||
               (reply_text(properties, "step") && member(properties, "steps_done") &&
                member_number(properties, "steps_done") < member_number(properties, "steps_total"));
}

static int handle_changed(Monitor *m, sd_bus_message *msg) {
        _cleanup_json_ json_object *properties = NULL;
        _cleanup_free_ char *label = NULL;
        const char *interface;
        const Kind *kind = kind_of(sd_bus_message_get_path(msg), &label);
        int r;

        r = sd_bus_message_read(msg, "s", &interface);
        if (r < 0 || !kind || !streq(interface, kind->interface))
                return r;
        r = reply_read_properties(msg, &properties);
        if (r < 0 || json_object_object_length(properties) == 0 || (kind == &kind_job && !is_step(properties)))
                return r;
        return print_line(m, &(Line) { kind, label, kind == &kind_job ? WHAT_STEP : "changed", properties });
}

/* Handles a change of the owner of the daemon's bus name. If a new daemon replaces the old one, prints two lines,
 * "gone" and "running". */
static int handle_owner(Monitor *m, sd_bus_message *msg) {
        const char *name, *before, *after;
        int r;

        r = sd_bus_message_read(msg, "sss", &name, &before, &after);
        if (r < 0 || streq_ptr(*after ? after : NULL, m->daemon))
                return r;
        r = m->daemon ? print_line(m, &(Line) { &kind_daemon, NULL, "gone" }) : 0;
        if (r < 0)
                return r;
        r = string_copy(&m->daemon, *after ? after : NULL);
        return r >= 0 && m->daemon ? print_line(m, &(Line) { &kind_daemon, NULL, "running" }) : r;
}

static const struct {
        const char *interface, *member;
        int (*handle)(Monitor *m, sd_bus_message *msg);
} signals[] = {
        { "org.freedesktop.DBus.ObjectManager", "InterfacesAdded", handle_added },
        { "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved", handle_removed },
        { "org.freedesktop.DBus.Properties", "PropertiesChanged", handle_changed },
        { BUS_MANAGER_INTERFACE, "JobRemoved", handle_job_removed },
};

static int handle(Monitor *m, sd_bus_message *msg) {
        const char *sender = sd_bus_message_get_sender(msg);

        /* Check the sender. Any peer can send a unicast signal, and sd-bus does not compare its sender with the match
         * rule. */
        if (sd_bus_message_is_signal(msg, "org.freedesktop.DBus", "NameOwnerChanged"))
                return streq_ptr(sender, "org.freedesktop.DBus") ? handle_owner(m, msg) : 0;
        if (!m->daemon || !streq_ptr(sender, m->daemon))
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                if (sd_bus_message_is_signal(msg, signals[i].interface, signals[i].member))
                        return signals[i].handle(m, msg);
        return 0;
}

/* Handles a signal. Ignores all failures, such as a signal that cannot be parsed, except -ENOMEM. */
static int on_signal(sd_bus_message *msg, void *userdata, sd_bus_error *ret_error) {
        int r = handle(userdata, msg);

        return r == -ENOMEM ? r : 0;
}

/* Finds the unique name of the daemon, without having the bus start the daemon. Prints the line "running" or "gone". */
static int find_daemon(Monitor *m) {
        _cleanup_(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
        const char *name;
        int r;

        r = sd_bus_get_name_creds(m->client->bus, BUS_NAME, SD_BUS_CREDS_UNIQUE_NAME, &creds);
        if (r == -ENXIO)
                return print_line(m, &(Line) { &kind_daemon, NULL, "gone" });
        if (r < 0)
                return r;
        r = sd_bus_creds_get_unique_name(creds, &name);
        if (r < 0)
                return r;
        r = string_copy(&m->daemon, name);
        return r < 0 ? r : print_line(m, &(Line) { &kind_daemon, NULL, "running" });
}

static int monitor_start(Monitor *m) {
        static const char *const matches[] = { MATCH_DAEMON, CLIENT_MATCH_OWNER };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(matches); i++)
                r = sd_bus_add_match(m->client->bus, &m->slots[i], matches[i], on_signal, m);
        return r < 0 ? r : find_daemon(m);
}

/* Calls the daemon once, to find out whether the user may call it. A bus policy that refuses the call also hides the
 * daemon's signals. */
static int check_access(Monitor *m) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *ping = NULL;
        int r;

        if (!m->daemon)
                return 0;
        r = sd_bus_message_new_method_call(m->client->bus, &ping, m->daemon, BUS_PATH, "org.freedesktop.DBus.Peer",
                                           "Ping");
        return r < 0 ? report_errno(m->client->args, r, "Cannot build the D-Bus call")
                     : client_call(m->client, ping, NULL);
}

int verb_monitor(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(monitor_done) Monitor m = { 0 };
        int r;

        r = client_new_on_bus(args, &c);
        if (r < 0)
                return r;
        m.client = c;
        client_catch_interrupt();
        r = monitor_start(&m);
        if (r >= 0) {
                r = check_access(&m);
                if (r < 0)
                        return r == -EINTR ? EXIT_INTERRUPTED : EXIT_FAILURE;
        }
        while (r >= 0 && !m.failed)
                r = client_turn(c);
        if (r == -EINTR)
                return EXIT_INTERRUPTED;
        return r < 0 ? client_lost(c, r) : EXIT_FAILURE;
}
