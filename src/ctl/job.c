/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Follows a job: prints its steps until it has a result, the user presses Ctrl-C, or the daemon ends. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "bus/names.h"
#include "document.h"
#include "job.h"
#include "page.h"
#include "progress.h"
#include "reply.h"
#include "report.h"
#include "util/strings.h"

/* The most signals that are queued until the reply tells which job to follow. Later signals are dropped. So many arrive
 * only when other jobs flood the bus. */
#define BACKLOG_MAX 4096U

#define MATCH_STEPS                                                                                                    \
        "type='signal',sender='" BUS_NAME "',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"  \
        "path_namespace='" BUS_JOB_PREFIX "'"
#define MATCH_REMOVED                                                                                                  \
        "type='signal',sender='" BUS_NAME "',interface='" BUS_MANAGER_INTERFACE "',member='JobRemoved',"               \
        "path='" BUS_PATH "'"

struct Watch {
        Client *client; /* not owned */
        const char *verb, *subject;
        sd_bus_slot *slots[3];
        sd_bus_message **backlog;
        size_t n_backlog;
        const char *job;    /* object path of the job; NULL until it is known; not owned */
        const char *daemon; /* unique name of the daemon, from which signals must come; not owned */
        char *step, *message, *result;
        uint32_t done, total;
        uint64_t deadline; /* when the daemon gives the job up, in usec of CLOCK_REALTIME; 0: unknown */
        Progress progress;
        bool lost; /* the daemon left the bus */
};

static void watch_drop_backlog(Watch *w) {
        for (size_t i = 0; i < w->n_backlog; i++)
                sd_bus_message_unref(w->backlog[i]);
        free(w->backlog);
        w->backlog = NULL;
        w->n_backlog = 0;
}

Watch *watch_free(Watch *w) {
        if (!w)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(w->slots); i++)
                sd_bus_slot_unref(w->slots[i]);
        watch_drop_backlog(w);
        progress_done(&w->progress);
        free(w->step);
        free(w->message);
        free(w->result);
        free(w);
        return NULL;
}

/* Stores the properties of the job that a PropertiesChanged signal contains. */
static int take_properties(Watch *w, json_object *properties) {
        (void) JSON_READ_INTEGER(properties, "steps_done", UINT32_MAX, &w->done);
        (void) JSON_READ_INTEGER(properties, "steps_total", UINT32_MAX, &w->total);
        (void) json_read_number(properties, "deadline", UINT64_MAX, &w->deadline);
        if (json_object_object_get_ex(properties, "step", NULL) &&
            string_copy(&w->step, reply_text(properties, "step")) < 0)
                return -ENOMEM;
        if (!json_object_object_get_ex(properties, "message", NULL))
                return 0;
        return string_copy(&w->message, reply_text(properties, "message"));
}

#define STEP_INDENT 6 /* columns of "[1/9] " in front of the text */

/* Prints the running step, which the property Step describes. The property StepsDone counts the steps before it. */
static void print_step(Watch *w) {
        if (args_has(w->client->args, OPTION_JSON) || !w->step)
                return;
        page_print(stdout, STEP_INDENT, "[%u/%u] %s", MIN(w->done + 1, w->total), w->total, w->step);
        (void) fflush(stdout);
}

static int handle_step(Watch *w, sd_bus_message *m) {
        _cleanup_json_ json_object *properties = NULL;
        _cleanup_free_ char *before = NULL;
        const char *interface;
        int r;

        if (!streq_ptr(sd_bus_message_get_path(m), w->job))
                return 0;
        r = sd_bus_message_read(m, "s", &interface);
        if (r < 0 || !streq(interface, BUS_JOB_INTERFACE))
                return r;
        r = reply_read_properties(m, &properties);
        if (r < 0)
                return r;
        if (string_copy(&before, w->step) < 0 || take_properties(w, properties) < 0)
                return -ENOMEM;
        if (w->progress.shows)
                progress_set(&w->progress, member_object(properties, "device_steps"), w->step);
        else if (!streq_ptr(before, w->step))
                print_step(w);
        return 0;
}

static int handle_removed(Watch *w, sd_bus_message *m) {
        const char *job, *result;
        uint32_t id;
        int r;

        r = sd_bus_message_read(m, "uos", &id, &job, &result);
        return r < 0 || !streq(job, w->job) ? r : string_copy(&w->result, result);
}

static int handle_owner(Watch *w, sd_bus_message *m) {
        const char *name, *before, *after;
        int r;

        r = sd_bus_message_read(m, "sss", &name, &before, &after);
        if (r >= 0 && streq_ptr(before, w->daemon))
                w->lost = true;
        return r;
}

static int handle(Watch *w, sd_bus_message *m) {
        /* Check the sender. Any peer can send a unicast signal, and sd-bus does not compare its sender with the match
         * rule. */
        if (sd_bus_message_is_signal(m, "org.freedesktop.DBus", "NameOwnerChanged"))
                return streq_ptr(sd_bus_message_get_sender(m), "org.freedesktop.DBus") ? handle_owner(w, m) : 0;
        if (!streq_ptr(sd_bus_message_get_sender(m), w->daemon))
                return 0;
        return sd_bus_message_is_signal(m, BUS_MANAGER_INTERFACE, "JobRemoved") ? handle_removed(w, m)
                                                                                : handle_step(w, m);
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *ret_error) {
        Watch *w = userdata;
        int r;

        /* Ignore a signal that cannot be parsed. Only the result of the job matters. */
        if (w->job) {
                (void) handle(w, m);
                return 0;
        }
        if (w->n_backlog >= BACKLOG_MAX)
                return 0;
        r = ARRAY_RESERVE(w->backlog, w->n_backlog);
        if (r < 0)
                return r;
        w->backlog[w->n_backlog++] = sd_bus_message_ref(m);
        return 0;
}

int watch_new(Client *c, const char *verb, const char *subject, Watch **ret) {
        static const char *const matches[] = { MATCH_STEPS, MATCH_REMOVED, CLIENT_MATCH_OWNER };
        _cleanup_(cleanup_watch_free) Watch *w = calloc(1, sizeof(*w));

        if (!w)
                return report_errno(c->args, -ENOMEM, "Cannot wait");
        w->client = c;
        w->verb = verb;
        w->subject = subject;
        w->progress = progress_new(!args_has(c->args, OPTION_JSON));
        for (size_t i = 0; i < ELEMENTSOF(matches); i++) {
                int r = sd_bus_add_match(c->bus, &w->slots[i], matches[i], on_signal, w);
                if (r < 0)
                        return client_lost(c, r);
        }
        client_catch_interrupt();
        *ret = TAKE_PTR(w);
        return 0;
}

int watch_interrupted(Watch *w) {
        char until[PROGRESS_TIME_MAX];

        progress_end(&w->progress);
        (void) report_failure(w->client->args, NULL,
                              "Stopped waiting; passthroughd continues the job to %s '%s'%s. 'passthroughctl monitor' "
                              "follows it, 'passthroughctl show %s' shows its result.",
                              w->verb, w->subject, progress_until(w->deadline, until), w->subject);
        return EXIT_INTERRUPTED;
}

static int report_result(const Watch *w) {
        const Args *args = w->client->args;

        if (streq(w->result, JOB_RESULT_DONE))
                return EXIT_SUCCESS;
        if (args_has(args, OPTION_JSON))
                return EXIT_FAILURE;
        if (w->message)
                return report_failure(args, NULL, "%s", w->message);
        return report_failure(args, NULL,
                              "The job to %s '%s' ended with result '%s'. See 'passthroughctl show %s' and 'journalctl "
                              "-u passthroughd'.",
                              w->verb, w->subject, w->result, w->subject);
}

int watch_wait(Watch *w, sd_bus_message *reply, const char *job) {
        int r = 0;

        w->job = job;
        w->daemon = sd_bus_message_get_sender(reply);
        for (size_t i = 0; i < w->n_backlog; i++)
                (void) handle(w, w->backlog[i]);
        watch_drop_backlog(w);
        while (r >= 0 && !w->result && !w->lost) {
                r = client_turn_until(w->client, progress_next(&w->progress));
                if (r >= 0 && !w->result)
                        progress_show(&w->progress, w->done, w->total, w->deadline);
        }
        progress_end(&w->progress);
        if (w->result)
                return report_result(w);
        if (r == -EINTR)
                return watch_interrupted(w);
        return report_failure(w->client->args, SD_BUS_ERROR_NO_REPLY,
                              "%s before the job to %s '%s' ended. Check later with 'passthroughctl show %s'.",
                              w->lost ? "passthroughd stopped" : "The connection was lost", w->verb, w->subject,
                              w->subject);
}

const char *watch_result(const Watch *w) {
        return w->result;
}

int watch_print_json(const Args *args, const Watch *w, const char *name, const char *allocation, const char *job,
                     json_object *devices) {
        json_object *o = json_object_new_object();
        bool done = !w || streq_ptr(w->result, JOB_RESULT_DONE);

        if (!o || !document_add(o, "name", name) || (allocation && !document_add(o, "allocation", allocation)) ||
            !document_add(o, "job", job) || !document_add(o, "result", w ? w->result : NULL) ||
            ((!done || (w && w->message)) && !document_add(o, "message", w->message)) ||
            (devices && json_object_object_add(o, "devices", json_object_get(devices)) < 0)) {
                json_object_put(o);
                return report_errno(args, -ENOMEM, "Cannot print");
        }
        (void) document_print(args, o);
        return done ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print_sentence(const Args *args, const char *subject, const char *sentence, json_object *devices) {
        _cleanup_free_ char *list = NULL;

        for (size_t i = 0; i < json_length(devices); i++) {
                json_object *d = json_at(devices, i);

                if (string_append(&list, ", ", "%s %s", reply_cell(d, "slot"), reply_cell(d, "address")) < 0)
                        return report_errno(args, -ENOMEM, "Cannot print");
        }
        page_print(stdout, 0, "%s %s%s%s", subject, sentence, list ? ": " : "", list ?: "");
        return EXIT_SUCCESS;
}

/* Returns the array of call->list_devices(), which the caller frees; NULL if the devices cannot be read. The verb does
 * not fail then, because the daemon has accepted the call. */
static json_object *list_devices(Client *c, const JobCall *call, const char *subject) {
        const Args *args = c->args;
        _cleanup_free_ char *problem = NULL;
        json_object *devices = NULL;
        Args quiet = *args;

        /* Store the sentence of a failure instead of printing it, because with --json it would be a second document. */
        quiet.problem = &problem;
        c->args = &quiet;
        (void) call->list_devices(c, call, subject, &devices);
        c->args = args;
        return devices;
}

static int follow(Client *c, Watch *w, const JobCall *call, const char *subject, sd_bus_message *reply) {
        _cleanup_json_ json_object *devices = NULL;
        const char *job;
        int r = sd_bus_message_read(reply, "o", &job);

        if (r < 0)
                return client_bad_reply(c, r);
        /* Without a job, the work is done already. */
        if (streq(job, JOB_NONE))
                w = NULL;
        r = w ? watch_wait(w, reply, job) : EXIT_SUCCESS;
        if (r == EXIT_SUCCESS && call->list_devices && (!w || streq_ptr(w->result, JOB_RESULT_DONE)))
                devices = list_devices(c, call, subject);
        if (r < 0)
                return r;
        if (args_has(c->args, OPTION_JSON))
                return !w || w->result ? watch_print_json(c->args, w, subject, NULL, job, devices) : r;
        if (r == EXIT_SUCCESS && w && w->message)
                page_print(stdout, 0, "%s", w->message);
        return r == EXIT_SUCCESS
                       ? print_sentence(c->args, subject, w || streq(job, JOB_NONE) ? call->done : call->begun, devices)
                       : r;
}

int watch_allocation(Client *c, const char *name, json_object **ret) {
        _cleanup_json_ json_object *node = NULL;
        int r = reply_ask(c, "Describe", NULL, NULL, &node);

        if (r >= 0)
                *ret = json_object_get(json_find(member(node, "allocations"), "name", name));
        return r;
}

int watch_generation(Client *c, const char *name, uint64_t *ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *found, *state, *path;
        uint64_t generation;
        uint32_t owner;
        int r;

        *ret = c->args->number[OPTION_GENERATION];
        if (args_has(c->args, OPTION_GENERATION))
                return 0;
        r = client_ask(c, "ListAllocations", &reply, "");
        if (r < 0)
                return r;
        r = sd_bus_message_enter_container(reply, SD_BUS_TYPE_ARRAY, "(sstuo)");
        while (r >= 0 && (r = sd_bus_message_read(reply, "(sstuo)", &found, &state, &generation, &owner, &path)) > 0)
                if (streq(found, name))
                        *ret = generation;
        return r < 0 ? client_bad_reply(c, r) : 0;
}

int watch_send(Client *c, const JobCall *call, const char *subject, sd_bus_message *message) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(cleanup_watch_free) Watch *w = NULL;
        int r = args_has(c->args, OPTION_NO_WAIT) ? 0 : watch_new(c, call->verb, subject, &w);

        if (r < 0)
                return r;
        r = client_call(c, message, &reply);
        if (r == -EINTR && w)
                return watch_interrupted(w);
        return r < 0 ? r : follow(c, w, call, subject, reply);
}

int watch_call(Client *c, const JobCall *call, const char *subject, const char *types, ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        va_list ap;
        int r = client_method(c, call->method, &message);

        if (r < 0)
                return r;
        va_start(ap, types);
        r = sd_bus_message_appendv(message, types, ap);
        va_end(ap);
        if (r < 0)
                return report_errno(c->args, r, "Cannot build the D-Bus call");
        return watch_send(c, call, subject, message);
}
