/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Records of passthroughd-libvirt, a letter for the kind and the text, separated by NUL: a malformed one changes
 * nothing, and the list keeps its limits. */

#include "fuzz.h"

#include <errno.h>

#include "guest/guest-list.h"

static void check(const GuestList *l) {
        assert_true(l->n <= GUESTS_MAX);
        for (size_t i = 0; i < l->n; i++) {
                const Guest *g = &l->guests[i];

                assert_int_equal(strlen(g->uuid), GUEST_UUID_SIZE - 1);
                assert_true(guest_list_find(l, g->uuid) == g);
                assert_true(*g->domain && g->n_devices <= GUEST_DEVICES_MAX);
                for (size_t j = 0; j < g->n_devices; j++)
                        assert_non_null(guest_list_find_device(l, g->devices[j]));
        }
        if (l->reason)
                assert_true(text_is_clean(l->reason));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *record = (const char *) data, *end = record + size;
        GuestList list = { 0 };

        while (record < end) {
                size_t n = strnlen(record, (size_t) (end - record)), before = list.n;
                _cleanup_free_ char *copy = strndup(record, n);
                int kind = copy ? guest_list_apply(&list, *record - 'a', n > 0 ? copy + 1 : copy) : -EBADMSG;

                if (kind < 0)
                        assert_true(kind == -EBADMSG && list.n == before);
                if (kind == GUEST_RECORD_COMPLETE)
                        for (size_t i = 0; i < list.n; i++)
                                assert_true(list.guests[i].listed);
                check(&list);
                record += n + 1;
        }
        guest_list_done(&list);
        return 0;
}
