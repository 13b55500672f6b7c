/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses slots of remote services from the fewest endpoints, in the order of the configuration. */

#include <stdio.h>

#include "plan-internal.h"
#include "util/strings.h"

/* The most allocations, and the most endpoints, that a refusal names. */
#define NAMED_MAX 3U

/* Returns how many free slots the k best endpoints from index `first` on have together. */
static unsigned best_of(const unsigned *n_free, size_t first, size_t n, size_t k) {
        bool taken[REMOTE_ENDPOINTS_MAX] = { 0 };
        unsigned sum = 0;

        for (; k > 0; k--) {
                size_t best = n;

                for (size_t i = first; i < n; i++)
                        if (!taken[i] && (best == n || n_free[i] > n_free[best]))
                                best = i;
                if (best == n)
                        break;
                taken[best] = true;
                sum += n_free[best];
        }
        return sum;
}

static int add_slots(Allocation *a, const RemoteService *s, const RemoteEndpoint *endpoint, unsigned slots) {
        AllocationService entry = { .kind = s->kind, .slots = slots };

        (void) snprintf(entry.name, sizeof(entry.name), "%s", s->name);
        (void) snprintf(entry.variables, sizeof(entry.variables), "%s", s->variables ?: "");
        memcpy(entry.endpoint, endpoint->name, sizeof(entry.endpoint));
        return allocation_add_service(a, &entry);
}

/* Lists some allocations with slots of the service: "'vm1' has 2 of gpu1:9999". */
static char *list_holders(const HostView *view, const RemoteService *s) {
        unsigned named = 0;
        char *text = NULL;

        for (size_t i = 0; i < view->ledger->n_allocations; i++) {
                const Allocation *a = view->ledger->allocations[i];

                for (size_t k = 0; k < a->n_services; k++)
                        if (streq(a->services[k].name, s->name) && named++ < NAMED_MAX)
                                (void) string_append(&text, ", ", "'%s' has %u of %s", a->name, a->services[k].slots,
                                                     a->services[k].endpoint);
        }
        if (named > NAMED_MAX)
                (void) string_append(&text, "", "%s", AND_MORE(named - NAMED_MAX));
        return text;
}

/* Formats sentences about some endpoints that are out of service: " gpu1:9999 is out of service: it refuses
 * connections." */
static char *list_down(const HostView *view, const RemoteService *s) {
        unsigned named = 0;
        char *text = NULL;

        for (size_t i = 0; i < s->n_endpoints; i++) {
                const char *reason = s->endpoints[i].slots == 0
                                             ? "it has 0 slots"
                                             : endpoint_status_reason(view->endpoints, s->endpoints[i].name);

                if (reason && named++ < NAMED_MAX)
                        (void) string_append(&text, "", " %s is out of service: %s.", s->endpoints[i].name, reason);
        }
        if (named > NAMED_MAX)
                (void) string_append(&text, "", " %u more %s out of service.", named - NAMED_MAX,
                                     ARE(named - NAMED_MAX));
        return text;
}

static const char *choose_remedy(bool held, bool down, bool offers) {
        if (!offers)
                return "Give the service an Endpoint= line with slots.";
        if (down)
                return held ? "Have the endpoint accept connections, release an allocation of these slots, or ask for "
                              "fewer."
                            : "Have the endpoint accept connections, or ask for fewer.";
        return held ? "Release an allocation of these slots, or ask for fewer." : "Ask for fewer.";
}

static Verdict refuse_slots(const HostView *view, const RemoteService *s, unsigned wanted, const unsigned *n_free,
                            Refusal *ret) {
        unsigned all = 0, most = best_of(n_free, 0, s->n_endpoints, 1);
        unsigned sum = best_of(n_free, 0, s->n_endpoints, s->n_endpoints);
        _cleanup_free_ char *holders = ret ? list_holders(view, s) : NULL, *down = ret ? list_down(view, s) : NULL;
        const char *remedy;
        bool refuses = false;

        for (size_t i = 0; i < s->n_endpoints; i++) {
                all += s->endpoints[i].slots;
                refuses = refuses ||
                          (s->endpoints[i].slots > 0 && endpoint_status_reason(view->endpoints, s->endpoints[i].name));
        }
        if (s->n_endpoints == 0)
                down = strdup(" It has no endpoint.");
        remedy = choose_remedy(holders, refuses, all > 0);
        if (sum >= wanted)
                return refuse(ret, VERDICT_INSUFFICIENT_SLOTS, NULL, remedy,
                              "Service '%s': %u slots of one endpoint wanted, at most %u free at one.%s%s%s%s", s->name,
                              wanted, most, holders ? " " : "", holders ?: "", holders ? "." : "", down ?: "");
        return refuse(ret, VERDICT_INSUFFICIENT_SLOTS, NULL, remedy,
                      "Service '%s': %u slot%s wanted, %u of %u free.%s%s%s%s", s->name, wanted, PLURAL(wanted), sum,
                      all, holders ? " " : "", holders ?: "", holders ? "." : "", down ?: "");
}

static Verdict pick(const HostView *view, const RemoteService *s, unsigned wanted, Allocation *a, Refusal *ret) {
        size_t most = remote_kind_spans(s->kind) ? s->n_endpoints : MIN(s->n_endpoints, 1U), k = 1;
        unsigned n_free[REMOTE_ENDPOINTS_MAX];

        for (size_t i = 0; i < s->n_endpoints; i++)
                n_free[i] = ledger_slots_free(view->ledger, view->config, view->endpoints, s->endpoints[i].name);
        while (k <= most && best_of(n_free, 0, s->n_endpoints, k) < wanted)
                k++;
        if (k > most)
                return refuse_slots(view, s, wanted, n_free, ret);
        for (size_t i = 0; i < s->n_endpoints && wanted > 0; i++) {
                unsigned take = MIN(n_free[i], wanted);

                /* Skip the endpoint if the best k - 1 later endpoints have too few slots for the rest. */
                if (take == 0 || take + best_of(n_free, i + 1, s->n_endpoints, k - 1) < wanted)
                        continue;
                if (add_slots(a, s, &s->endpoints[i], take) < 0)
                        return refuse_no_memory(ret);
                wanted -= take;
                k--;
        }
        return VERDICT_NONE;
}

/* Refuses two services of a kind whose client can only be told about one endpoint. */
static Verdict check_kind(const HostView *view, const Request *r, size_t i, Refusal *ret) {
        const RemoteService *s = config_find_service(view->config, r->services[i].pool);

        for (size_t k = 0; k < i; k++)
                if (config_find_service(view->config, r->services[k].pool)->kind == s->kind &&
                    s->kind != REMOTE_KIND_CUSTOM && !remote_kind_spans(s->kind))
                        return refuse_request(ret, "Ask for slots of one of them.",
                                              "'%s' and '%s' are both of kind %s, whose client has one endpoint.",
                                              r->services[k].pool, s->name, remote_kind_to_string(s->kind));
        return VERDICT_NONE;
}

Verdict planner_pick_slots(const HostView *view, const Request *r, Allocation *a, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < r->n_services; i++)
                v = check_kind(view, r, i, ret);
        for (size_t i = 0; v == VERDICT_NONE && i < r->n_services; i++)
                v = pick(view, config_find_service(view->config, r->services[i].pool), r->services[i].count, a, ret);
        return v;
}
