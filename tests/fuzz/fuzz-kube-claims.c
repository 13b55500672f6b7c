/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Messages of the kubelet with claims, and of the registration. Parsed claims have names fit for URLs and file names.
 * Written and parsed again, they are the same.
 */

#include "fuzz.h"

#include <errno.h>

#include "kube/messages.h"

static void check_claims(const ClaimRef *claims, size_t n) {
        _cleanup_(wire_done) WireBuffer again = { 0 };
        _cleanup_free_ ClaimRef *read = NULL;
        size_t n_read;

        assert_true(n <= CLAIMS_MAX);
        for (size_t i = 0; i < n; i++) {
                _cleanup_(wire_done) WireBuffer one = { 0 };

                assert_true(name_is_valid(claims[i].namespace) && name_is_valid(claims[i].name));
                assert_true(text_is_uuid(claims[i].uid));
                assert_null(strpbrk(claims[i].name, "/%?# "));
                wire_put_text(&one, 1, claims[i].namespace);
                wire_put_text(&one, 2, claims[i].uid);
                wire_put_text(&one, 3, claims[i].name);
                wire_put_message(&again, 1, &one);
        }
        assert_int_equal(message_parse_claims(again.data, again.size, &read, &n_read), 0);
        assert_int_equal(n_read, n);
        for (size_t i = 0; i < n; i++) {
                assert_string_equal(read[i].namespace, claims[i].namespace);
                assert_string_equal(read[i].uid, claims[i].uid);
                assert_string_equal(read[i].name, claims[i].name);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ ClaimRef *claims = NULL;
        bool registered = false;
        char error[32];
        size_t n = 0;
        int r = message_parse_claims(data, size, &claims, &n);

        assert_true(r == 0 || r == -EBADMSG || r == -EINVAL || r == -E2BIG);
        if (r == 0)
                check_claims(claims, n);
        r = message_parse_status(data, size, &registered, error, sizeof(error));
        assert_true((r == 0 || r == -EBADMSG) && strlen(error) < sizeof(error));
        return 0;
}
