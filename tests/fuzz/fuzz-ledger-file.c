/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Files of the ledger: a parsed file is a complete allocation, is written identically, and can be used. */

#include "fuzz.h"

#include "../unit/ledger-verify.h"

#include "bus/json.h"
#include "guest/domxml.h"
#include "guest/xlcfg.h"
#include "ledger/ledger-file.h"
#include "ledger/ledger.h"
#include "model/json-parse.h"

static void check_bounds(const Allocation *a) {
        assert_true(allocation_name_is_valid(a->name));
        assert_int_equal(strlen(a->id), sizeof(a->id) - 1);
        assert_non_null(allocation_state_to_string(a->state));
        assert_non_null(a->vfio_driver);
        assert_true(a->n_cells <= ALLOCATION_CELLS_MAX);
        assert_true(a->n_pins <= ALLOCATION_CPUS_MAX);
        assert_true(a->n_regions <= ALLOCATION_REGIONS_MAX);
        for (size_t i = 0; i < a->n_services; i++) {
                assert_non_null(remote_kind_to_string(a->services[i].kind));
                assert_true(endpoint_is_valid(a->services[i].endpoint));
                assert_true(a->services[i].slots > 0 && a->services[i].slots <= ENDPOINT_SLOTS_MAX);
        }
        for (size_t i = 0; i < a->n_devices; i++) {
                assert_non_null(device_role_to_string(a->devices[i].role));
                assert_true(a->devices[i].slot || a->devices[i].role == DEVICE_ROLE_HELD);
        }
}

/* Members with several spellings: lists of CPUs, and attributes. */
static bool is_free_text(const char *key) {
        static const char *const keys[] = { "cpus", "vcpus", "attributes", "generated", "baseline" };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (streq(key, keys[i]))
                        return true;
        return false;
}

/* Every written member was in the file. */
static void check_members(json_object *written, json_object *read) {
        json_object_object_foreach(written, key, value) {
                json_object *before = NULL;

                assert_true(json_object_object_get_ex(read, key, &before));
                if (is_free_text(key))
                        continue;
                if (streq(key, "version")) {
                        assert_true(json_object_get_int(value) >= 2 &&
                                    json_object_get_int(value) <= LEDGER_FILE_VERSION);
                        continue;
                }
                if (!streq(key, "devices") && !streq(key, "cells") && !streq(key, "shared_memory") &&
                    !streq(key, "services")) {
                        assert_true(json_object_equal(value, before));
                        continue;
                }
                assert_int_equal(json_object_array_length(value), json_object_array_length(before));
                for (size_t i = 0; i < json_object_array_length(value); i++)
                        check_members(json_object_array_get_idx(value, i), json_object_array_get_idx(before, i));
        }
}

static void check_written(const char *text, const uint8_t *data, size_t size) {
        _cleanup_json_ json_object *written = NULL, *read = NULL;

        assert_true(text_is_ascii(text, strlen(text)));
        assert_int_equal(json_parse(text, strlen(text), &written), 0);
        assert_int_equal(json_parse((const char *) data, size, &read), 0);
        check_members(written, read);
}

/* The daemon can show the allocation, even if its hardware is gone. */
static void check_use(const Inventory *inv, const Config *config, const Allocation *a) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_json_ json_object *o = NULL;
        _cleanup_free_ char *text = NULL, *document = NULL;
        Verdict v;

        o = json_allocation(&(HostView) { .inventory = inv, .config = config }, a, 0);
        text = json_text(o);
        assert_non_null(text);
        v = domxml_make(inv, config, a, NULL, GUEST_INFO_GUEST, &document, &refusal);
        assert_int_equal(v == VERDICT_NONE, document != NULL);
        if (v != VERDICT_NONE)
                fuzz_check_refusal(v, &refusal);
}

/* So can a daemon on a node with Xen. */
static void check_xen(const Inventory *inv, Config *config, const Allocation *a) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_free_ char *text = NULL;
        Verdict v;

        config->hypervisor = HYPERVISOR_XEN;
        v = xl_config_make(inv, config, a, GUEST_INFO_GUEST, &text, &refusal);
        assert_int_equal(v == VERDICT_NONE, text != NULL);
        if (v != VERDICT_NONE)
                fuzz_check_refusal(v, &refusal);
}

/* The ledger adopts the allocation, or gives a reason. */
static void check_ledger(Allocation *a) {
        _cleanup_(cleanup_ledger_free) Ledger *l = ledger_new();
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        _cleanup_(cleanup_config_free) Config *config = config_new();
        _cleanup_refusal_ Refusal refusal = { 0 };
        Verdict v;

        assert_true(l && inv && config && inventory_finish(inv) == 0);
        v = ledger_adopt(l, a, &refusal);
        if (v != VERDICT_NONE) {
                fuzz_check_refusal(v, &refusal);
                return;
        }
        assert_true(ledger_verify(l, inv, config));
        check_use(inv, config, a);
        check_xen(inv, config, a);
        assert_true(ledger_remove(l, a->name) == a);
        assert_int_equal(l->n_claims + l->n_pf_uses + l->n_slots, 0);
        assert_true(cpuset_is_empty(&l->cpus));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL, *b = NULL;
        _cleanup_free_ char *message = NULL, *first = NULL, *second = NULL;
        LedgerFileResult result = ledger_file_parse((const char *) data, size, &a, &message);

        assert_int_equal(result == LEDGER_FILE_OK, a != NULL);
        if (result != LEDGER_FILE_OK) {
                fuzz_check_sentence(message);
                return 0;
        }
        assert_null(message);
        check_bounds(a);
        first = ledger_file_format(a);
        assert_non_null(first);
        check_written(first, data, size);
        if (strlen(first) > LEDGER_FILE_MAX)
                return 0;
        assert_int_equal(ledger_file_parse(first, strlen(first), &b, &message), LEDGER_FILE_OK);
        second = ledger_file_format(b);
        assert_non_null(second);
        assert_string_equal(first, second);
        check_ledger(a);
        return 0;
}
