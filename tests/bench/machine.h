/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A machine below a root directory, with its configuration and an empty ledger, for plans. */

#include <stdio.h>
#include <sys/stat.h>

#include "bus/json.h"
#include "host/critical.h"
#include "host/scan.h"
#include "util/fileio.h"

typedef struct Machine {
        Sysfs *fs;
        Inventory *inventory;
        Locality *locality;
        Config *config;
        Policy *policy;
        Ledger *ledger;
} Machine;

static inline void machine_done(Machine *m) {
        ledger_free(m->ledger);
        policy_free(m->policy);
        config_free(m->config);
        locality_free(m->locality);
        inventory_free(m->inventory);
        sysfs_free(m->fs);
}

static inline int machine_read(Machine *m, const char *root, const char *config) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = read_file_at(AT_FDCWD, config, CONFIG_TEXT_MAX, &text, &size);

        if (r >= 0)
                r = config_parse(config, text, size, &m->config);
        if (r >= 0)
                r = sysfs_new(root, &m->fs);
        if (r >= 0)
                r = scan_inventory(m->fs, &m->inventory);
        if (r >= 0)
                r = critical_mark(m->fs, m->config, m->inventory);
        if (r >= 0)
                r = locality_new(m->inventory, &m->locality);
        if (r >= 0)
                r = policy_new(m->config, m->inventory, &m->policy);
        m->ledger = ledger_new();
        return r < 0 ? r : m->ledger ? 0 : -1;
}

static inline HostView machine_view(const Machine *m) {
        return (HostView) { m->inventory, m->locality, m->config, m->policy, m->ledger };
}
