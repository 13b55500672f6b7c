/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "agent/daemon.h"

#include <errno.h>
#include <signal.h>
#include <systemd/sd-daemon.h>

#include "bus/names.h"
#include "bus/reply-text.h"
#include "model/json-parse.h"
#include "util/log.h"

#define ACCURACY_USEC UINT64_C(1000)
#define DESCRIBE_USEC UINT64_C(120000000)

#define MATCH_EPOCH                                                                                                    \
        "type='signal',sender='" BUS_NAME "',path='" BUS_PATH "',interface='org.freedesktop.DBus.Properties',"         \
        "member='PropertiesChanged',arg0='" BUS_MANAGER_INTERFACE "'"
#define MATCH_OWNER                                                                                                    \
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"      \
        "path='/org/freedesktop/DBus',arg0='" BUS_NAME "'"

int agent_add_signal(sd_event *event, int number, sd_event_signal_handler_t on_signal, void *userdata) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, number);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        return sd_event_add_signal(event, NULL, number, on_signal, userdata);
}

int agent_loop_new(sd_bus *bus, sd_event_signal_handler_t on_reload, void *userdata, sd_event **ret) {
        int r = sd_event_default(ret);

        if (r < 0)
                return r;
        r = agent_add_signal(*ret, SIGHUP, on_reload, userdata);
        if (r < 0)
                return r;
        r = sd_bus_attach_event(bus, *ret, SD_EVENT_PRIORITY_NORMAL);
        return r < 0 ? r : sd_bus_set_exit_on_disconnect(bus, true);
}

int agent_add_idle(sd_event *event, sd_event_source **ret, sd_event_handler_t run, void *userdata) {
        int r = sd_event_add_defer(event, ret, run, userdata);

        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
        return r < 0 ? r : sd_event_source_set_priority(*ret, SD_EVENT_PRIORITY_IDLE);
}

int agent_add_timer(sd_event *event, sd_event_source **ret, sd_event_time_handler_t run, void *userdata) {
        int r = sd_event_add_time(event, ret, CLOCK_MONOTONIC, UINT64_MAX, ACCURACY_USEC, run, userdata);

        return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

int agent_set_timer(sd_event_source *timer, uint64_t usec) {
        int r = sd_event_source_set_time_relative(timer, usec);

        if (r >= 0)
                r = sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
        return r < 0 ? log_error_errno(r, "Failed to set a timer: %m") : 0;
}

int agent_loop_run(sd_event *event) {
        int r;

        (void) sd_notify(false, "READY=1");
        r = sd_event_loop(event);
        if (r > 0)
                return log_error_errno(-ECONNRESET, "The system bus has closed the connection.");
        return r < 0 ? log_error_errno(r, "The loop failed: %m") : 0;
}

int daemon_watch(sd_bus *bus, sd_bus_message_handler_t on_change, sd_bus_message_handler_t on_owner, void *userdata) {
        int r = sd_bus_add_match(bus, NULL, MATCH_EPOCH, on_change, userdata);

        return r < 0 ? r : sd_bus_add_match(bus, NULL, MATCH_OWNER, on_owner, userdata);
}

int daemon_new_call(sd_bus *bus, const char *member, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r = sd_bus_message_new_method_call(bus, &m, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, member);

        if (r < 0)
                return r;
        r = sd_bus_message_set_auto_start(m, false);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

static int log_refusal(const sd_bus_error *error, int r) {
        if (sd_bus_error_has_names(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER, SD_BUS_ERROR_SERVICE_UNKNOWN))
                return log_warning_errno(-ESRCH, "passthroughd does not run. Start passthroughd.service.");
        return log_warning_errno(r, "Failed to ask passthroughd: %s",
                                 error && error->message ? error->message : strerror(-r));
}

int daemon_read(sd_bus_message *reply, json_object **ret) {
        _cleanup_free_ char *text = NULL;
        int r;

        if (sd_bus_message_is_method_error(reply, NULL) > 0)
                return log_refusal(sd_bus_message_get_error(reply), -sd_bus_message_get_errno(reply));
        r = bus_read_reply_text(reply, &text);
        if (r >= 0)
                r = json_parse(text, strlen(text), ret);
        return r < 0 ? log_warning_errno(
                               r, "Failed to read the reply of passthroughd: %m. After an upgrade, restart both.")
                     : 0;
}

int daemon_describe(sd_bus *bus, json_object **ret) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        int r = daemon_new_call(bus, "Describe", &call);

        if (r >= 0)
                r = sd_bus_call(bus, call, DESCRIBE_USEC, &error, &reply);
        return r < 0 ? log_refusal(&error, r) : daemon_read(reply, ret);
}

int daemon_ask(sd_bus *bus, sd_bus_slot **ret_slot, sd_bus_message_handler_t on_reply, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        int r = daemon_new_call(bus, "Describe", &call);

        if (r >= 0)
                r = sd_bus_call_async(bus, ret_slot, call, on_reply, userdata, DESCRIBE_USEC);
        return r < 0 ? log_refusal(NULL, r) : 0;
}
