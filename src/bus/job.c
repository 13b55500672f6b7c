/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The D-Bus interface org.passthroughd1.Job. */

#include <errno.h>

#include "server-internal.h"
#include "util/digest.h"
#include "util/strings.h"

static const char *const job_property_names[_JOB_PROPERTY_MAX] = {
        [JOB_PROPERTY_STEP] = "Step",
        [JOB_PROPERTY_STEPS_DONE] = "StepsDone",
        [JOB_PROPERTY_STEPS_TOTAL] = "StepsTotal",
        [JOB_PROPERTY_DEVICE_STEPS] = "DeviceSteps",
        [JOB_PROPERTY_DEADLINE] = "Deadline",
        [JOB_PROPERTY_MESSAGE] = "Message",
};

/* Finds the job of an object path. Returns the id of the job as userdata for the getters, because a JobView does not
 * last. */
static void *find_job(Server *s, const char *label) {
        JobView view;
        uint64_t id;

        return parse_unsigned(label, UINT32_MAX, &id) == 0 && s->callbacks->find_job(s->userdata, (uint32_t) id, &view)
                       ? (void *) (uintptr_t) id
                       : NULL;
}

void device_steps_free(DeviceStep *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(list[i].text);
        free(list);
}

static int append_device_steps(const Server *s, uint32_t id, sd_bus_message *reply) {
        DeviceStep *list = NULL;
        size_t n = 0;
        int r = s->callbacks->list_device_steps(s->userdata, id, &list, &n);

        if (r >= 0)
                r = sd_bus_message_open_container(reply, SD_BUS_TYPE_ARRAY, "{ss}");
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = sd_bus_message_append(reply, "{ss}", PCI_ADDRESS_STR(list[i].device), list[i].text);
        device_steps_free(list, n);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Properties that are always signalled together. */
#define PROGRESS                                                                                                       \
        (1U << JOB_PROPERTY_STEP | 1U << JOB_PROPERTY_STEPS_DONE | 1U << JOB_PROPERTY_STEPS_TOTAL |                    \
         1U << JOB_PROPERTY_DEADLINE)

static uint64_t device_steps_digest(const Server *s, uint32_t id) {
        uint64_t digest = DIGEST_START;
        DeviceStep *list = NULL;
        size_t n = 0;

        (void) s->callbacks->list_device_steps(s->userdata, id, &list, &n);
        for (size_t i = 0; i < n; i++) {
                digest = digest_number(digest, (int64_t) pci_address_key(list[i].device));
                digest = digest_string(digest, list[i].text);
        }
        device_steps_free(list, n);
        return digest;
}

static ShownJob *find_shown(Server *s, uint32_t id) {
        for (size_t i = 0; i < ELEMENTSOF(s->jobs); i++)
                if (s->jobs[i].id == id)
                        return &s->jobs[i];
        return NULL;
}

unsigned job_note_shown(Server *s, uint32_t id) {
        ShownJob *shown = find_shown(s, id) ?: find_shown(s, 0), now = { .id = id };
        unsigned properties = 0;
        JobView view;

        if (!shown || !s->callbacks->find_job(s->userdata, id, &view))
                return 0;
        now.values[JOB_PROPERTY_STEP] = digest_string(DIGEST_START, view.step);
        now.values[JOB_PROPERTY_STEPS_DONE] = view.steps_done;
        now.values[JOB_PROPERTY_STEPS_TOTAL] = view.steps_total;
        now.values[JOB_PROPERTY_DEVICE_STEPS] = device_steps_digest(s, id);
        now.values[JOB_PROPERTY_DEADLINE] = view.deadline;
        now.values[JOB_PROPERTY_MESSAGE] = digest_string(DIGEST_START, view.message);
        for (unsigned i = 0; i < _JOB_PROPERTY_MAX; i++)
                if (shown->id != id || shown->values[i] != now.values[i])
                        properties |= 1U << i;
        *shown = now;
        /* Clients that store no properties, such as passthroughctl of 0.4, print all properties of PROGRESS from one
         * signal. */
        return properties & (PROGRESS | 1U << JOB_PROPERTY_MESSAGE) ? properties | PROGRESS : properties;
}

void job_forget_shown(Server *s, uint32_t id) {
        ShownJob *shown = find_shown(s, id);

        if (shown)
                shown->id = 0;
}

static int property_get(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const Server *s = server_of_getter(bus);
        JobView view;

        if (!s->callbacks->find_job(s->userdata, (uint32_t) (uintptr_t) userdata, &view))
                return -ENOENT;
        if (streq(property, "Id"))
                return sd_bus_message_append(reply, "u", view.id);
        if (streq(property, "StepsDone"))
                return sd_bus_message_append(reply, "u", view.steps_done);
        if (streq(property, "StepsTotal"))
                return sd_bus_message_append(reply, "u", view.steps_total);
        if (streq(property, "DeviceSteps"))
                return append_device_steps(s, view.id, reply);
        if (streq(property, "Deadline"))
                return sd_bus_message_append(reply, "t", view.deadline);
        return sd_bus_message_append(reply, "s",
                                     streq(property, "Verb")      ? view.verb
                                     : streq(property, "Subject") ? view.subject
                                     : streq(property, "Step")    ? view.step
                                                                  : view.message);
}

#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
#define CONST   SD_BUS_VTABLE_PROPERTY_CONST

static const sd_bus_vtable job_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Id", "u", property_get, 0, CONST),
        SD_BUS_PROPERTY("Verb", "s", property_get, 0, CONST),
        SD_BUS_PROPERTY("Subject", "s", property_get, 0, CONST),
        SD_BUS_PROPERTY("Step", "s", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("StepsDone", "u", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("StepsTotal", "u", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("DeviceSteps", "a{ss}", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Deadline", "t", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Message", "s", property_get, 0, CHANGES),
        SD_BUS_VTABLE_END,
};

static size_t count_jobs(Server *s) {
        uint32_t ids[SERVER_JOBS_MAX];

        return s->callbacks->list_jobs(s->userdata, ids, SERVER_JOBS_MAX);
}

static int path_of_job(Server *s, size_t i, char **ret) {
        uint32_t ids[SERVER_JOBS_MAX];

        (void) s->callbacks->list_jobs(s->userdata, ids, SERVER_JOBS_MAX);
        return job_path(ids[i], ret);
}

const ObjectKind job_objects = { BUS_JOB_PREFIX, BUS_JOB_INTERFACE, job_vtable, job_property_names,
                                 find_job,       count_jobs,        path_of_job };
