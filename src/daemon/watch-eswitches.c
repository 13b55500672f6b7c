/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the eswitch mode of each PF in a child, because a driver may hold its devlink instance for minutes. At most one
 * child exists; after its deadline the next one waits for its exit. A mode without an answer stays unknown, and is read
 * again on a rescan or when a driver is bound to the PF.
 */

#include "host/eswitch.h"
#include "manager.h"
#include "util/log.h"

typedef struct Callback {
        void (*tell)(size_t i, uint32_t answer, void *userdata);
        void *userdata;
} Callback;

static void tell_mode(size_t i, EswitchMode mode, void *userdata) {
        const Callback *t = userdata;

        t->tell(i, mode, t->userdata);
}

static int ask(const Sysfs *fs _unused_, const PciAddress *pfs, size_t n,
               void (*tell)(size_t i, uint32_t answer, void *userdata), void *userdata) {
        return eswitch_ask(pfs, n, tell_mode, &(Callback){ tell, userdata });
}

static void on_late(const PciAddress *pfs, size_t n, void *userdata _unused_) {
        log_warning("devlink does not answer for %s: the modes of its eswitch and of %zu others stay unknown, "
                    "ignoring.",
                    PCI_ADDRESS_STR(pfs[0]), n - 1);
}

static void on_ended(void *userdata) {
        manager_probe_eswitches(userdata);
}

static bool is_wanted(void *userdata, const PciDevice *dev) {
        const Manager *m = userdata;

        return dev->type == PCI_TYPE_PF && eswitch_may_be(m->fs, dev);
}

static const ProbeKind modes = {
        .process = "passthroughd-es",
        .unknown = ESWITCH_UNKNOWN,
        .ask = ask,
        .wanted = is_wanted,
        .late = on_late,
        .ended = on_ended,
};

void manager_probe_eswitches(Manager *m) {
        int r;

        if (!m->announced || m->stopping || m->watches.eswitch_probe)
                return;
        r = probe_begin(&modes, m->event, m->fs, m->host.inventory, &m->host.eswitches, m->host.config->job_timeout, m,
                        &m->watches.eswitch_probe);
        if (r < 0)
                log_warning_errno(r, "Failed to read the modes of eswitches, ignoring: %m");
}

void manager_probe_eswitches_again(Manager *m) {
        probe_cache_ask_again(&m->host.eswitches);
        manager_probe_eswitches(m);
}
