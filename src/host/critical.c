/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Marks the PCI functions that the host uses for storage, memory, network and display. */

#include <errno.h>

#include "critical-internal.h"
#include "util/strings.h"

int critical_mark(const Sysfs *fs, const Config *config, Inventory *inv) {
        static int (*const marks[])(const Critical *c) = { critical_mark_storage, critical_mark_exports,
                                                           critical_mark_memory,  critical_mark_peers,
                                                           critical_mark_network, critical_mark_display };
        _cleanup_(cleanup_critical_peers_free) Peers *peers = critical_peers_new();
        const Critical c = { .fs = fs, .config = config, .inv = inv, .peers = peers };

        if (!peers)
                return -ENOMEM;
        (void) string_copy(&inv->critical_error, NULL);
        for (size_t i = 0; i < inv->n_devices; i++) {
                (void) string_copy(&inv->devices[i].critical, NULL);
                inv->devices[i].critical_remedy = NULL;
                (void) string_copy(&inv->devices[i].console, NULL);
        }
        for (size_t i = 0; i < ELEMENTSOF(marks); i++) {
                int r = marks[i](&c);

                if (r < 0)
                        return r;
        }
        return 0;
}
