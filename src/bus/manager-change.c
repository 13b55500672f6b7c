/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The methods of the manager that change something. */

#include <unistd.h>

#include "bus/error.h"
#include "bus/request.h"
#include "bus/server-internal.h"

/* Who called last is known: a bus gives a unique name but once. */
int bus_sender_uid(Server *s, sd_bus_message *call, uint32_t *ret) {
        _cleanup_(sd_bus_creds_unrefp) sd_bus_creds *creds = NULL;
        const char *sender = sd_bus_message_get_sender(call);
        uid_t uid;
        int r;

        if (sender && streq(sender, s->last_caller)) {
                *ret = s->last_uid;
                return 0;
        }
        r = sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID, &creds);
        if (r >= 0)
                r = sd_bus_creds_get_euid(creds, &uid);
        if (r < 0)
                return r;
        if (sender && strlen(sender) < sizeof(s->last_caller)) {
                strcpy(s->last_caller, sender);
                s->last_uid = uid;
        }
        *ret = uid;
        return 0;
}

static int reply_job(sd_bus_message *call, uint32_t job) {
        _cleanup_free_ char *path = NULL;
        int r = job_path(job, &path);

        return r < 0 ? r : sd_bus_reply_method_return(call, "o", path);
}

int bus_method_allocate(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        Server *s = userdata;
        _cleanup_free_ char *path = NULL, *job = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_request_ Request request = { 0 };
        uint32_t owner, id;
        const char *name;
        int r = sd_bus_message_read(call, "s", &name);

        if (r >= 0)
                r = bus_sender_uid(s, call, &owner);
        if (r < 0)
                return r;
        /* What sd-bus asks for the other methods, without asking the bus twice who is calling. */
        if (owner != 0 && owner != getuid())
                return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED, "Access to %s.Allocate() not permitted.",
                                         BUS_MANAGER_INTERFACE);
        request_init(&request);
        if (bus_read_request(call, &request, &refusal) == VERDICT_NONE && request.repeat)
                (void) refuse_request(&refusal, "Ask Plan.", "How often a request fits is not for an allocation.");
        if (refusal.verdict != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        if (!request.has_owner)
                request.owner = owner;
        request.has_owner = true;
        if (s->callbacks->allocate(s->userdata, name, &request, request.owner, &id, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        r = allocation_path(name, &path);
        if (r >= 0)
                r = job_path(id, &job);
        return r < 0 ? r : sd_bus_reply_method_return(call, "oo", path, job);
}

/* Release and Accept: of an allocation, as long as it is the one of that generation. */
static int call_tenancy(sd_bus_message *call, Server *s,
                        Verdict (*function)(void *userdata, const char *name, uint64_t generation, uint32_t *ret_job,
                                            Refusal *ret)) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        uint64_t generation;
        const char *name;
        uint32_t id;
        int r = sd_bus_message_read(call, "st", &name, &generation);

        if (r < 0)
                return r;
        if (function(s->userdata, name, generation, &id, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return reply_job(call, id);
}

int bus_method_release(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        Server *s = userdata;

        return call_tenancy(call, s, s->callbacks->release);
}

int bus_method_accept(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        Server *s = userdata;

        return call_tenancy(call, s, s->callbacks->accept);
}

int bus_method_set_virtual_functions(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        Server *s = userdata;
        PlanContext c = server_context(s);
        _cleanup_refusal_ Refusal refusal = { 0 };
        const PciDevice *pf;
        const char *text;
        uint32_t count, id;
        int r = sd_bus_message_read(call, "su", &text, &count);

        if (r < 0)
                return r;
        pf = bus_find_device(call, &c, text, &r);
        if (!pf)
                return r;
        if (s->callbacks->set_virtual_functions(s->userdata, pf->address, count, &id, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return reply_job(call, id);
}

/* A device in quarantine need not be there any more. */
int bus_method_clear_quarantine(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        Server *s = userdata;
        _cleanup_refusal_ Refusal refusal = { 0 };
        PciAddress device;
        const char *text;
        uint32_t id;
        int r = sd_bus_message_read(call, "s", &text);

        if (r < 0)
                return r;
        if (bus_read_address(text, &device, &refusal) != VERDICT_NONE ||
            s->callbacks->clear_quarantine(s->userdata, device, &id, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return reply_job(call, id);
}

int bus_method_rescan(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        Server *s = userdata;
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (s->callbacks->rescan(s->userdata, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return sd_bus_reply_method_return(call, NULL);
}

int bus_method_reload(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        Server *s = userdata;
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (s->callbacks->reload(s->userdata, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return sd_bus_reply_method_return(call, NULL);
}
