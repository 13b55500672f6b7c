/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Marks the PCI functions that the host uses for storage, memory, network and display. */

#include <errno.h>

#include "critical-internal.h"
#include "util/strings.h"

int critical_mark(const Sysfs *fs, const Config *config, Inventory *inv) {
        _cleanup_(cleanup_critical_peers_free) Peers *peers = critical_peers_new();
        const Critical c = { .fs = fs, .config = config, .inv = inv, .peers = peers };
        int r;

        if (!peers)
                return -ENOMEM;
        (void) string_copy(&inv->critical_error, NULL);
        for (size_t i = 0; i < inv->n_devices; i++) {
                (void) string_copy(&inv->devices[i].critical, NULL);
                inv->devices[i].critical_remedy = NULL;
                (void) string_copy(&inv->devices[i].console, NULL);
        }
        r = critical_mark_storage(&c);
        if (r < 0)
                return r;
        r = critical_mark_exports(&c);
        if (r < 0)
                return r;
        r = critical_mark_memory(&c);
        if (r < 0)
                return r;
        r = critical_mark_peers(&c);
        if (r < 0)
                return r;
        r = critical_mark_network(&c);
        return r < 0 ? r : critical_mark_display(&c);
}
