/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the configuration at startup and on a reload. */

#include <stdio.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "facts.h"
#include "host/configfiles.h"
#include "host/critical.h"
#include "operations.h"
#include "plan/promise.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

static int load_config(const Manager *m, Config **ret) {
        int r = config_files_load("/", m->host.config_path, true, ret);

        return r < 0 ? log_error_errno(r, "Failed to load the configuration: %m") : 0;
}

static void log_config(const Manager *m, const Config *config) {
        if (config->n_files == 0 && !config->unreadable)
                log_notice("There is no %s, so no device is on offer.", m->host.config_path ?: "passthroughd.conf");
        config_log_problems(config);
}

int manager_load_config(Manager *m) {
        int r = load_config(m, &m->host.config);

        if (r >= 0)
                log_config(m, m->host.config);
        return r;
}

/* Logs a warning for each device of an allocation that no pool offers any more. */
static void log_dropped(const HostState *host) {
        for (size_t i = 0; i < host->ledger->n_claims; i++) {
                const Claim *claim = &host->ledger->claims[i];
                const PciDevice *dev = inventory_find(host->inventory, claim->address);
                const char *name = claim->allocation->name;

                if (dev && device_left_pools(host->policy, claim->allocation, dev))
                        log_full(LOG_WARNING, 0,
                                 (&(LogFields) { .device = PCI_ADDRESS_STR(claim->address), .allocation = name }),
                                 "%s is not on offer any more; '%s' keeps it until the allocation is released.",
                                 PCI_ADDRESS_STR(claim->address), name);
        }
}

/* Refuses a policy that offers the same hardware twice: pools offer a PF and also offer or would create its VFs, or
 * pools offer or would create VFs of a PF that is allocated. */
static Verdict check_twice(const Policy *policy, const Ledger *ledger, Refusal *ret) {
        if (policy->conflict.verdict != VERDICT_NONE)
                return refuse(ret, policy->conflict.verdict, &policy->conflict.device, policy->conflict.remedy, "%s",
                              policy->conflict.message);
        return promise_check_config(policy, ledger, ret);
}

int manager_check_config(const HostState *host) {
        _cleanup_refusal_ Refusal why = { 0 };

        if (check_twice(host->policy, host->ledger, &why) != VERDICT_NONE) {
                log_full(LOG_ERR, 0, (&(LogFields) { .id = MESSAGE_CONFIG_REFUSED }), "%s %s", why.message, why.remedy);
                return EX_CONFIG;
        }
        log_dropped(host);
        return 0;
}

AfterRelease manager_after_release(const HostState *host, const Allocation *a) {
        return allocation_left_pools(host->policy, a) ? AFTER_RELEASE_RESTORE : host->config->after_release;
}

/* Returns true when the new policy asks for VFs on the device, and the old one for none or another number; or when the
 * new policy asks for its binding at startup, and the old one did not. */
static bool wants_start(const Policy *now, const Policy *before, const PciDevice *dev) {
        const Pool *pool = policy_offers(now, dev) ? policy_pool(now, dev) : NULL;
        const Pool *old = policy_offers(before, dev) ? policy_pool(before, dev) : NULL;
        const Pool *vfs = policy_vf_pool(now, dev);
        const Pool *old_vfs = policy_vf_pool(before, dev);

        if (vfs && (!old_vfs || old_vfs->virtual_functions != vfs->virtual_functions))
                return true;
        return pool && pool->bind == POOL_BIND_START && (!old || old->bind != POOL_BIND_START);
}

static void take_config(Manager *m, Config *config, Policy *policy) {
        for (size_t i = 0; i < m->host.inventory->n_devices; i++)
                if (wants_start(policy, m->host.policy, &m->host.inventory->devices[i]))
                        note_arrived(m, m->host.inventory->devices[i].address);
        host_state_take_config(&m->host, config, policy);
        log_policy(policy);
        log_dropped(&m->host);
        log_info("Loaded the configuration, %zu file%s.", config->n_files, PLURAL(config->n_files));
        manager_write_options(m, true);
        manager_apply_modules(m, NULL);
        m->notes.reloaded = true;
        note_all_devices(m);
}

/* Makes a policy. First marks the devices that the host needs, because the configuration has a part in that
 * (KeepInterfaces=). */
static int make_policy(Manager *m, const Config *config, Policy **ret) {
        int r = critical_mark(m->fs, config, m->host.inventory);

        return r < 0 ? r : policy_new(config, m->host.inventory, ret);
}

static Verdict reload(Manager *m, Refusal *ret) {
        _cleanup_(cleanup_config_free) Config *config = NULL;
        _cleanup_(cleanup_policy_free) Policy *policy = NULL;
        _cleanup_refusal_ Refusal twice = { 0 };

        if (load_config(m, &config) < 0 || make_policy(m, config, &policy) < 0)
                return refuse(ret, VERDICT_CONFIG_REFUSED, NULL, "See the journal for the reason.",
                              "The configuration could not be read. The old configuration stays.");
        if (config->unreadable)
                return refuse(ret, VERDICT_CONFIG_REFUSED, NULL, config->unreadable_remedy,
                              "%s The old configuration stays.", config->unreadable);
        if (config->hypervisor != m->host.config->hypervisor)
                return refuse(ret, VERDICT_CONFIG_REFUSED, NULL, "Release all allocations, then restart the daemon.",
                              "Hypervisor= has another value now, which a reload cannot apply. The old configuration "
                              "stays.");
        log_config(m, config);
        if (check_twice(policy, m->host.ledger, &twice) != VERDICT_NONE)
                return refuse(ret, VERDICT_CONFIG_REFUSED, &twice.device, twice.remedy,
                              "%s The old configuration stays.", twice.message);
        take_config(m, TAKE_PTR(config), TAKE_PTR(policy));
        return VERDICT_NONE;
}

/* Tells systemd that a reload begins. MONOTONIC_USEC is for Type=notify-reload; Type=notify ignores it. */
static void notify_reloading(void) {
        (void) sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long) clock_usec(CLOCK_MONOTONIC));
}

Verdict manager_reload(Manager *m, Refusal *ret) {
        _cleanup_refusal_ Refusal why = { 0 };
        Verdict v;

        /* Before tell_ready(), READY=1 would also end systemd's wait for the start. */
        if (m->ready)
                notify_reloading();
        v = reload(m, &why);
        if (m->ready)
                (void) sd_notify(false, "READY=1");
        if (v == VERDICT_NONE)
                return v;
        /* make_policy() has marked the devices that the host needs by the refused configuration. Mark them by the old
         * one again. */
        if (critical_mark(m->fs, m->host.config, m->host.inventory) < 0 || host_state_remake_policy(&m->host) < 0)
                log_warning(
                        "Out of memory: the devices that the host needs are read again before the next allocation.");
        /* A refusal that names a device means that this device would be offered twice. */
        log_full(LOG_ERR, 0, (&(LogFields) { .id = why.has_device ? MESSAGE_CONFIG_REFUSED : NULL }), "%s %s",
                 why.message, why.remedy);
        return refuse(ret, v, why.has_device ? &why.device : NULL, why.remedy, "%s", why.message);
}
