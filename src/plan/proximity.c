/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How far devices of a request may be apart. */

#include "plan/proximity.h"

#include <errno.h>

#include "config/config.h"
#include "util/strings.h"

#define FORM "Say switch, root-complex, node or any, or POOL:POOL= and one of these."

static Verdict refuse_proximity_text(const char *text, Refusal *ret) {
        return refuse_request(ret, FORM, "There is no proximity '%s'.", QUOTABLE(text));
}

static Verdict parse_general(const char *text, Request *r, bool *seen, Refusal *ret) {
        Proximity limit = proximity_from_string(text);

        if (limit == _PROXIMITY_INVALID)
                return refuse_proximity_text(text, ret);
        if (*seen)
                return refuse_request(ret, "Give one.", "There is more than one proximity of GPUs and NICs.");
        *seen = true;
        r->proximity = limit;
        return VERDICT_NONE;
}

/* Parses one limit between two pools, "gpu:disk=node". Modifies text. */
static Verdict parse_between(char *text, Request *r, Refusal *ret) {
        char *value = strchr(text, '='), *second = strchr(text, ':');
        _cleanup_free_ char *whole = strdup(text);
        Proximity limit;
        int k;

        if (!whole)
                return refuse_no_memory(ret);
        limit = proximity_from_string(value + 1);
        if (!second || second > value || limit == _PROXIMITY_INVALID)
                return refuse_proximity_text(whole, ret);
        *second++ = *value = '\0';
        k = request_add_limit(r, text, second, limit);
        if (k == -E2BIG)
                return refuse_request(ret, NULL, "A request can limit the proximity of at most %u pairs of pools.",
                                      REQUEST_LIMITS_MAX);
        return k < 0 ? refuse_no_memory(ret) : VERDICT_NONE;
}

Verdict proximity_parse(const char *text, Request *r, Refusal *ret) {
        Verdict v = VERDICT_NONE;
        bool general = false;

        for (const char *at = text; v == VERDICT_NONE && at; at = *at ? at + 1 : NULL) {
                size_t n = strcspn(at, ",");
                _cleanup_free_ char *word = strndup(at, n);

                if (!word)
                        return refuse_no_memory(ret);
                v = strchr(word, '=') ? parse_between(word, r, ret) : parse_general(word, r, &general, ret);
                at += n;
        }
        return v;
}

char *request_limit_format(const RequestLimit *l) {
        return string_format("%s:%s=%s", l->pools[0], l->pools[1], proximity_to_string(l->limit));
}

char *request_proximity_format(const Request *r) {
        char *text = NULL;

        if (r->proximity != PROXIMITY_ANY || r->n_limits == 0)
                (void) string_replace(&text, "%s", proximity_to_string(r->proximity));
        for (size_t i = 0; i < r->n_limits; i++) {
                _cleanup_free_ char *before = TAKE_PTR(text), *limit = request_limit_format(&r->limits[i]);

                if (!limit || string_replace(&text, "%s%s%s", before ?: "", before ? "," : "", limit) < 0)
                        return NULL;
        }
        return text;
}

static bool same_pools(const RequestLimit *a, const RequestLimit *b) {
        return (streq(a->pools[0], b->pools[0]) && streq(a->pools[1], b->pools[1])) ||
               (streq(a->pools[0], b->pools[1]) && streq(a->pools[1], b->pools[0]));
}

Verdict request_check_limits(const Request *r, Refusal *ret) {
        for (size_t i = 0; i < r->n_limits; i++) {
                const RequestLimit *l = &r->limits[i];

                for (unsigned side = 0; side < 2; side++)
                        if (!request_find_pool(r, l->pools[side], NULL))
                                return refuse_request(
                                        ret, "Limit the proximity of pools that the request has.",
                                        "The proximity of pool '%s' is limited, but none of its devices is wanted.",
                                        QUOTABLE(l->pools[side]));
                for (size_t j = 0; j < i; j++)
                        if (same_pools(l, &r->limits[j]))
                                return refuse_request(ret, "Give one.",
                                                      "There is more than one proximity of the pools '%s' and '%s'.",
                                                      l->pools[0], l->pools[1]);
        }
        return VERDICT_NONE;
}
