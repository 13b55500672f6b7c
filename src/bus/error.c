/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends refusals as D-Bus error replies. */

#include "error.h"

#include <errno.h>

#include "bus/names.h"
#include "json.h"
#include "util/strings.h"

const char *bus_error_name(Verdict v) {
        static const char *const names[_VERDICT_MAX] = {
                [VERDICT_NO_SUCH_DEVICE] = BUS_ERROR_NO_SUCH_DEVICE,
                [VERDICT_INVALID_REQUEST] = BUS_ERROR_INVALID_REQUEST,
                [VERDICT_NO_SUCH_POOL] = BUS_ERROR_NO_SUCH_POOL,
                [VERDICT_INSUFFICIENT_DEVICES] = BUS_ERROR_INSUFFICIENT,
                [VERDICT_INSUFFICIENT_CPUS] = BUS_ERROR_INSUFFICIENT,
                [VERDICT_INSUFFICIENT_MEMORY] = BUS_ERROR_INSUFFICIENT,
                [VERDICT_INSUFFICIENT_SLOTS] = BUS_ERROR_INSUFFICIENT,
                [VERDICT_NUMA] = BUS_ERROR_INSUFFICIENT,
                [VERDICT_PROXIMITY] = BUS_ERROR_INSUFFICIENT,
                [VERDICT_NO_FREE_PORT] = BUS_ERROR_INSUFFICIENT,
                [VERDICT_NAME_TAKEN] = BUS_ERROR_NAME_TAKEN,
                [VERDICT_NO_SUCH_ALLOCATION] = BUS_ERROR_NO_SUCH_ALLOCATION,
                [VERDICT_STALE_GENERATION] = BUS_ERROR_STALE,
                [VERDICT_WRONG_STATE] = BUS_ERROR_WRONG_STATE,
                [VERDICT_LIMIT] = BUS_ERROR_LIMIT_EXCEEDED,
                [VERDICT_READ_ONLY] = BUS_ERROR_READ_ONLY,
                [VERDICT_NOT_SUPPORTED] = BUS_ERROR_NOT_SUPPORTED,
                [VERDICT_VFS_PRESENT] = BUS_ERROR_NOT_SUPPORTED,
                [VERDICT_INVALID_TEMPLATE] = BUS_ERROR_INVALID_TEMPLATE,
                [VERDICT_NOT_VALIDATED] = BUS_ERROR_NOT_VALIDATED,
                [VERDICT_NOT_ANSWERED] = BUS_ERROR_NOT_ANSWERED,
                [VERDICT_CONFIG_REFUSED] = BUS_ERROR_CONFIG_REFUSED,
                [VERDICT_SHARED_MEMORY_TAKEN] = BUS_ERROR_SHARED_MEMORY_TAKEN,
        };

        /* Most verdicts without a name above are about the state of one device. */
        return (size_t) v < _VERDICT_MAX && names[v] ? names[v] : BUS_ERROR_UNAVAILABLE;
}

int bus_reply_verdict(sd_bus_message *call, Verdict v, const char *message, const char *json) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        sd_bus_error_set(&error, bus_error_name(v), message);
        r = sd_bus_message_new_method_error(call, &reply, &error);
        if (r < 0)
                return r;
        r = sd_bus_message_append(reply, "s", json);
        return r < 0 ? r : sd_bus_send(sd_bus_message_get_bus(call), reply, NULL);
}

int bus_reply_refusal(sd_bus_message *call, const Refusal *r) {
        _cleanup_json_ json_object *o = json_refusal(r);
        _cleanup_free_ char *json = json_text(o), *message = refusal_text(r);

        return message && json ? bus_reply_verdict(call, r->verdict, message, json) : -ENOMEM;
}
