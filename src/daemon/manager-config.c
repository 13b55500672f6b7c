/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the manager knows of the admin's wishes. */

#include <errno.h>
#include <fcntl.h>
#include <systemd/sd-daemon.h>

#include "daemon/manager.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

static void log_problems(const Config *config) {
        for (size_t i = 0; i < config->n_problems; i++) {
                const ConfigProblem *p = &config->problems[i];

                if (p->line > 0)
                        log_warning("%s:%u: %s", p->file, p->line, p->message);
                else
                        log_warning("%s: %s", p->file, p->message);
        }
        if (config->held_back)
                log_error("%s", config->held_back);
}

int manager_load_config(Manager *m, Config **ret) {
        _cleanup_(cleanup_config_free) Config *config = NULL;
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r = read_file_at(AT_FDCWD, m->config_path, CONFIG_TEXT_MAX, &text, &size);

        if (r == -ENOENT)
                log_notice("There is no %s: no device is on offer.", m->config_path);
        else if (r < 0)
                return log_error_errno(r, "Failed to read %s: %m", m->config_path);
        r = config_parse(m->config_path, text ?: "", size, &config);
        if (r < 0)
                return r;
        log_problems(config);
        *ret = TAKE_PTR(config);
        return 0;
}

void manager_log_policy(const Policy *policy) {
        for (size_t i = 0; i < policy->n_problems; i++)
                log_warning("%s", policy->problems[i]);
}

/* Which devices stand differently under two policies for the inventory; caller frees, NULL when out of memory. */
static bool *policy_differences(const Inventory *inv, const Policy *a, const Policy *b) {
        bool *differs = calloc(inv->n_devices + 1, sizeof(*differs));

        for (size_t i = 0; differs && i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];
                const Pool *before = policy_pool(a, dev), *after = policy_pool(b, dev);

                differs[i] = policy_verdict(a, dev) != policy_verdict(b, dev) ||
                             !streq_ptr(before ? before->name : NULL, after ? after->name : NULL);
        }
        return differs;
}

/* Before the announcement READY would be a lie. */
static void reload_ended(const Manager *m) {
        if (m->phase == START_ANNOUNCED)
                (void) sd_notify(false, "READY=1");
}

Verdict manager_reload(Manager *m, Refusal *ret) {
        _cleanup_(cleanup_config_free) Config *config = NULL;
        _cleanup_(cleanup_policy_free) Policy *policy = NULL;
        _cleanup_free_ bool *differs = NULL;

        if (m->phase == START_ANNOUNCED)
                (void) sd_notify(false, "RELOADING=1");
        if (manager_load_config(m, &config) < 0 || policy_new(config, m->inventory, &policy) < 0) {
                reload_ended(m);
                return refuse(ret, VERDICT_CONFIG_REFUSED, NULL, "The journal says why.",
                              "%s could not be read; the old configuration stays.", m->config_path);
        }
        reload_ended(m);
        if (policy->conflict.verdict != VERDICT_NONE)
                return refuse(ret, VERDICT_CONFIG_REFUSED, NULL, policy->conflict.remedy,
                              "%s The old configuration stays.", policy->conflict.message);
        differs = policy_differences(m->inventory, m->policy, policy);
        policy_free(m->policy);
        config_free(m->config);
        m->policy = TAKE_PTR(policy);
        m->config = TAKE_PTR(config);
        for (size_t i = 0; differs && i < m->inventory->n_devices; i++)
                if (differs[i])
                        server_device_changed(m->server, m->inventory->devices[i].address);
        manager_log_policy(m->policy);
        log_info("Took the configuration %s.", m->config_path);
        return VERDICT_NONE;
}
