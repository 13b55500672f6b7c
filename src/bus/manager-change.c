/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The methods of the Manager that change something. A method that starts a job does not wait for it: the reply has the
 * object path of the job. An allocation is on disk before the reply. */

#include "error.h"
#include "request.h"
#include "server-internal.h"
#include "util/strings.h"

/* Formats the object path of the job. For job 0 the path is "/": there is no job to wait for. */
static int path_of_job(uint32_t job, char **ret) {
        return job > 0 ? job_path(job, ret) : string_copy(ret, "/");
}

static int reply_job(sd_bus_message *call, uint32_t job) {
        _cleanup_free_ char *path = NULL;
        int r = path_of_job(job, &path);

        return r < 0 ? r : sd_bus_reply_method_return(call, "o", path);
}

static int allocate(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        _cleanup_free_ char *path = NULL, *job = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_request_ Request request = { 0 };
        const char *name;
        uint32_t id;
        int r = sd_bus_message_read(call, "s", &name);

        if (r < 0)
                return r;
        request_init(&request);
        if (bus_read_request(call, &request, &refusal) == VERDICT_NONE && request.repeat)
                (void) refuse_request(&refusal, "Call Plan with 'repeat'.", "Allocate does not take the key 'repeat'.");
        if (refusal.verdict != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        if (!request.has_owner)
                request.owner = uid;
        request.has_owner = true;
        if (s->callbacks->allocate(s->userdata, name, &request, request.owner, &id, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        r = allocation_path(name, &path);
        if (r < 0)
                return r;
        r = path_of_job(id, &job);
        return r < 0 ? r : sd_bus_reply_method_return(call, "oo", path, job);
}

/* Reads name and generation from the call, and calls `function` with them. The generation protects a newer allocation
 * with the same name from a call that was delayed. Returns what a method of a vtable returns. */
static int call_with_generation(sd_bus_message *call, Server *s,
                                Verdict (*function)(void *userdata, const char *name, uint64_t generation,
                                                    uint32_t *ret_job, Refusal *ret)) {
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

static int release_now(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        return call_with_generation(call, s, s->callbacks->release);
}

/* Serves Release. If a domain seems to run with the allocation, first asks libvirt, because the domain may just have
 * ended. */
static int release(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        const char *name;
        uint64_t ticket;
        int r = s->callbacks->ask_guests ? sd_bus_message_read(call, "s", &name) : 0;

        if (r < 0)
                return r;
        ticket = r > 0 ? s->callbacks->ask_guests(s->userdata, name) : 0;
        r = sd_bus_message_rewind(call, true);
        if (r < 0)
                return r;
        return ticket > 0 && parked_add(s, call, release_now, uid, ticket) ? 1 : release_now(s, call, uid, error);
}

static int prepare(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        return call_with_generation(call, s, s->callbacks->prepare);
}

static int renew(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        uint64_t generation;
        const char *name;
        uint32_t seconds;
        int r = sd_bus_message_read(call, "stu", &name, &generation, &seconds);

        if (r < 0)
                return r;
        if (s->callbacks->renew(s->userdata, name, generation, seconds, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return sd_bus_reply_method_return(call, NULL);
}

static int attach(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_request_ Request request = { 0 };
        uint64_t generation;
        const char *name;
        uint32_t id;
        int r = sd_bus_message_read(call, "st", &name, &generation);

        if (r < 0)
                return r;
        request_init(&request);
        if (bus_read_request(call, &request, &refusal) != VERDICT_NONE ||
            s->callbacks->attach(s->userdata, name, generation, &request, &id, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return reply_job(call, id);
}

static int detach(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        const char *name, *slot;
        uint64_t generation;
        uint32_t id;
        int r = sd_bus_message_read(call, "sts", &name, &generation, &slot);

        if (r < 0)
                return r;
        if (s->callbacks->detach(s->userdata, name, generation, slot, &id, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return reply_job(call, id);
}

static int accept(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        return call_with_generation(call, s, s->callbacks->accept);
}

static int set_virtual_functions(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        HostView view = server_view(s);
        _cleanup_refusal_ Refusal refusal = { 0 };
        const PciDevice *pf;
        const char *text;
        uint32_t count, id;
        int r = sd_bus_message_read(call, "su", &text, &count);

        if (r < 0)
                return r;
        pf = bus_find_device(call, &view, text, &r);
        if (!pf)
                return r;
        if (s->callbacks->set_virtual_functions(s->userdata, pf->address, count, &id, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return reply_job(call, id);
}

/* Serves ClearQuarantine. Does not look the device up in the inventory, because a quarantined device may be missing. */
static int clear_quarantine(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
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

static int rescan(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (s->callbacks->rescan(s->userdata, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return sd_bus_reply_method_return(call, NULL);
}

static int reload(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (s->callbacks->reload(s->userdata, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        return sd_bus_reply_method_return(call, NULL);
}

typedef struct Change {
        const char *member;
        CallerMethod method;
        IntentRead intent;
} Change;

static const Change changes[] = {
        { "Allocate", allocate, intent_to_allocate },
        { "Release", release, intent_on_allocation },
        { "Prepare", prepare, intent_on_allocation },
        { "Renew", renew, intent_on_allocation },
        { "Attach", attach, intent_to_attach },
        { "Detach", detach, intent_on_allocation },
        { "Accept", accept, intent_to_configure },
        { "SetVirtualFunctions", set_virtual_functions, intent_to_configure },
        { "ClearQuarantine", clear_quarantine, intent_to_configure },
        { "Rescan", rescan, intent_to_configure },
        { "Reload", reload, intent_to_configure },
};

static const Change *find_change(const char *member) {
        for (size_t i = 0; i < ELEMENTSOF(changes); i++)
                if (streq(member, changes[i].member))
                        return &changes[i];
        return NULL;
}

bool bus_is_change(const char *member) {
        return find_change(member);
}

static int change(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        const Change *c = find_change(sd_bus_message_get_member(call));

        return authorize(s, call, uid, c->intent, c->method, error);
}

int bus_method_change(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return caller_identify(userdata, call, change, error);
}
