/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Configurations of any text: values are within their bounds, each problem is a sentence with an existing line, a
 * broken line hides nothing of the following lines, and devices that [Exclude] may have meant stay excluded.
 */

#include "fuzz-node.h"

#include "config/config.h"
#include "config/policy.h"

#define LATER_POOL "fuzz-later"
#define LATER      "\n[Exclude]\nMatch=address=0000:83:00.0\n[Pool " LATER_POOL "]\nMatch=class=ffffff\n"
#define FILE_END   '\f' /* begins another file in the input */

static Config *parse(const char *text, size_t size) {
        _cleanup_(cleanup_config_free) Config *c = config_new();
        const char *end = text + size;

        assert_non_null(c);
        for (unsigned n = 0; n == 0 || text < end; n++) {
                const char *next = text < end ? memchr(text, FILE_END, (size_t) (end - text)) : NULL;
                char name[32];

                (void) snprintf(name, sizeof(name), "%u.conf", n);
                assert_int_equal(config_read_text(c, name, text, (size_t) ((next ? next : end) - text)), 0);
                text = next ? next + 1 : end;
        }
        assert_int_equal(config_finish(c), 0);
        return TAKE_PTR(c);
}

static void check_problems(const Config *c, size_t lines) {
        assert_true(c->n_problems <= CONFIG_PROBLEMS_MAX);
        for (size_t i = 0; i < c->n_problems; i++) {
                assert_true(c->problems[i].line <= lines);
                assert_non_null(c->problems[i].file);
                fuzz_check_sentence(c->problems[i].message);
        }
        if (c->block_reason)
                fuzz_check_sentence(c->block_reason);
}

static void check_values(const Config *c) {
        assert_true(*c->vfio_driver && text_is_clean(c->vfio_driver) && !strchr(c->vfio_driver, '/'));
        assert_true(c->job_timeout >= 1 && c->job_timeout <= 3600);
        assert_non_null(after_release_to_string(c->after_release));
        assert_true(c->n_pools <= CONFIG_POOLS_MAX);
        assert_true(c->n_excludes <= CONFIG_MATCHES_MAX);
        for (size_t i = 0; i < c->n_pools; i++) {
                const Pool *pool = &c->pools[i];

                assert_true(pool_name_is_valid(pool->name));
                assert_true(config_find_pool(c, pool->name) == pool);
                assert_true(pool->n_matches <= CONFIG_MATCHES_MAX);
                assert_true(pool->virtual_functions <= UINT16_MAX);
                assert_non_null(pool_bind_to_string(pool->bind));
                assert_non_null(vf_identity_to_string(pool->identity));
                assert_non_null(numa_policy_to_string(pool->numa));
                assert_non_null(vf_placement_to_string(pool->placement));
                assert_false(pool->attributes.set & VF_IDENTITY_BITS);
        }
        assert_true(c->n_services <= REMOTE_SERVICES_MAX);
        for (size_t i = 0; i < c->n_services; i++) {
                const RemoteService *s = &c->services[i];

                assert_true(pool_name_is_valid(s->name) && !config_find_pool(c, s->name));
                assert_true(config_find_service(c, s->name) == s);
                assert_non_null(remote_kind_to_string(s->kind));
                assert_true(s->n_endpoints <= REMOTE_ENDPOINTS_MAX);
                for (size_t k = 0; k < s->n_endpoints; k++) {
                        assert_true(endpoint_is_valid(s->endpoints[k].name));
                        assert_true(s->endpoints[k].slots <= ENDPOINT_SLOTS_MAX);
                        assert_int_equal(config_endpoint_slots(c, s->endpoints[k].name), s->endpoints[k].slots);
                }
                assert_true(!s->via || pool_name_is_valid(s->via));
                assert_true(!s->variables || variables_are_valid(s->variables));
        }
}

/* Devices that are excluded, or may be meant to be, are not offered. */
static void check_policy(const Config *c) {
        const TestNode *t = fuzz_node();
        _cleanup_(cleanup_policy_free) Policy *policy = NULL;

        assert_int_equal(policy_new(c, t->inventory, &policy), 0);
        for (size_t i = 0; i < t->inventory->n_devices; i++) {
                const PciDevice *dev = &t->inventory->devices[i];
                _cleanup_refusal_ Refusal refusal = { 0 };
                Verdict v = policy_check(policy, dev, &refusal);

                assert_int_equal(policy_verdict(policy, dev), v);
                if (c->block_reason || match_any(c->excludes, c->n_excludes, dev) || !policy_pool(policy, dev))
                        assert_true(v != VERDICT_NONE);
                if (v != VERDICT_NONE)
                        fuzz_check_refusal(v, &refusal);
        }
        for (size_t i = 0; i < policy->n_problems; i++)
                fuzz_check_sentence(policy->problems[i]);
}

/* Parses the same text with more text after it. */
static Config *parse_with(const char *text, size_t size, const char *later) {
        _cleanup_free_ char *longer = malloc(size + strlen(later) + 1);

        assert_non_null(longer);
        if (size > 0)
                memcpy(longer, text, size);
        (void) stpcpy(longer + size, later);
        return parse(longer, size + strlen(later));
}

/* Later text, in the last file or in a further one, is read as if the earlier text had no errors. */
static void check_later(const Config *before, const char *text, size_t size, const char *later) {
        _cleanup_(cleanup_config_free) Config *c = parse_with(text, size, later);
        bool full = before->n_excludes == CONFIG_MATCHES_MAX;

        assert_true(c->block_reason || match_any(c->excludes, c->n_excludes, node_find(fuzz_node(), "0000:83:00.0")));
        assert_true(full || !c->block_reason == !before->block_reason);
        assert_true(config_find_pool(c, LATER_POOL) || before->n_pools == CONFIG_POOLS_MAX);
        for (size_t i = 0; i < before->n_pools; i++) {
                assert_string_equal(before->pools[i].name, c->pools[i].name);
                if (!streq(before->pools[i].name, LATER_POOL))
                        assert_int_equal(before->pools[i].n_matches, c->pools[i].n_matches);
        }
}

/* An unreadable line in [Exclude], or a possible misspelling of [Exclude], holds all devices back. */
static void check_held_back(const char *text, size_t size) {
        static const char *const broken[] = { "\n[Exclude]\nMatch=addr=*\n", "\n[Exclude\nMatch=address=*\n",
                                              "\n[Excluded]\nMatch=address=*\n" };
        _cleanup_(cleanup_config_free) Config *c = parse_with(text, size, broken[size % ELEMENTSOF(broken)]);

        assert_non_null(c->block_reason);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *text = (const char *) data;
        _cleanup_(cleanup_config_free) Config *c = parse(text, size);
        size_t lines = 1;

        for (size_t i = 0; i < size; i++)
                lines += text[i] == '\n';
        check_problems(c, lines);
        check_values(c);
        check_policy(c);
        check_later(c, text, size, LATER);
        check_later(c, text, size, "\f" LATER);
        check_held_back(text, size);
        return 0;
}
