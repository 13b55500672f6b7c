/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/endpoint-status.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "util/cleanup.h"
#include "util/strings.h"
#include "util/stringtable.h"

/* An endpoint that has accepted a connection before is down after this number of failed connects in a row. */
#define FAILED_MAX 2U

static const char *const endpoint_state_table[_ENDPOINT_STATE_MAX] = {
        [ENDPOINT_STATE_UNKNOWN] = "unknown",
        [ENDPOINT_STATE_UP] = "up",
        [ENDPOINT_STATE_DOWN] = "down",
};
DEFINE_STRING_TABLE_TO_STRING(endpoint_state, EndpointState, _ENDPOINT_STATE_MAX)

/* Why a connect failed, for messages. */
static const char *const reasons[_ENDPOINT_ANSWER_MAX] = {
        [ENDPOINT_REFUSES] = "it refuses connections",
        [ENDPOINT_SILENT] = "it does not answer",
        [ENDPOINT_UNREACHABLE] = "there is no route to it",
        [ENDPOINT_NAMELESS] = "its host name does not exist",
};

void endpoint_status_table_done(EndpointStatusTable *t) {
        free(t->endpoints);
        *t = (EndpointStatusTable) { 0 };
}

int endpoint_status_add(EndpointStatusTable *t, const char *name) {
        if (endpoint_status_find(t, name))
                return 0;
        if (ARRAY_RESERVE(t->endpoints, t->n) < 0)
                return -ENOMEM;
        t->endpoints[t->n] = (EndpointStatus) { 0 };
        (void) snprintf(t->endpoints[t->n++].name, sizeof(t->endpoints->name), "%s", name);
        return 0;
}

void endpoint_status_remove(EndpointStatusTable *t, size_t i) {
        assert(i < t->n);
        t->endpoints[i] = t->endpoints[--t->n];
}

bool endpoint_status_take(EndpointStatus *s, EndpointAnswer answer) {
        EndpointState before = s->state;

        s->unclear = answer == ENDPOINT_UNKNOWN;
        if (s->unclear)
                return false;
        s->answer = answer;
        s->failed = answer == ENDPOINT_ACCEPTS ? 0 : s->failed + 1;
        if (answer == ENDPOINT_ACCEPTS)
                s->state = ENDPOINT_STATE_UP;
        else if (s->state == ENDPOINT_STATE_UNKNOWN || s->failed >= FAILED_MAX)
                s->state = ENDPOINT_STATE_DOWN;
        return s->state != before;
}

EndpointStatus *endpoint_status_find(const EndpointStatusTable *t, const char *name) {
        for (size_t i = 0; t && i < t->n; i++)
                if (streq(t->endpoints[i].name, name))
                        return &t->endpoints[i];
        return NULL;
}

EndpointState endpoint_status_state(const EndpointStatusTable *t, const char *name) {
        const EndpointStatus *s = endpoint_status_find(t, name);

        return s ? s->state : ENDPOINT_STATE_UNKNOWN;
}

const char *endpoint_status_reason(const EndpointStatusTable *t, const char *name) {
        const EndpointStatus *s = endpoint_status_find(t, name);

        return s && s->state == ENDPOINT_STATE_DOWN ? reasons[s->answer] : NULL;
}
