/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mode of each PF's eswitch, asked by a child: a driver may hold its devlink instance for minutes. There is one
 * child at most, and one that is past its deadline is not followed by another before it is gone. Who does not answer
 * stays unknown, and is not asked again until its driver begins anew, or on a rescan.
 */

#include <errno.h>

#include "daemon/manager.h"
#include "host/eswitch.h"
#include "util/log.h"

typedef struct Telling {
        void (*tell)(size_t i, uint32_t answer, void *userdata);
        void *userdata;
} Telling;

static void tell_mode(size_t i, EswitchMode mode, void *userdata) {
        const Telling *t = userdata;

        t->tell(i, mode, t->userdata);
}

static int ask(const Sysfs *fs _unused_, const PciAddress *pfs, size_t n,
               void (*tell)(size_t i, uint32_t answer, void *userdata), void *userdata) {
        return eswitch_ask(pfs, n, tell_mode, &(Telling){ tell, userdata });
}

static void on_answered(void *userdata, PciAddress address, uint32_t mode) {
        Manager *m = userdata;
        const PciDevice *pf = inventory_find(m->node.inventory, address);
        Eswitch *e = pf ? eswitch_list_find(&m->node.eswitches, pf) : NULL;

        /* What began anew since the question is still to be asked. */
        if (e && e->asked && mode < _ESWITCH_MODE_MAX)
                e->mode = (EswitchMode) mode;
}

static void on_late(PciAddress pf, size_t others) {
        log_warning("devlink does not answer for %s: the mode of its eswitch, and of %zu asked after it, stays "
                    "unknown, ignoring.",
                    PCI_ADDRESS_STR(pf), others);
}

static void on_ended(void *userdata) {
        manager_survey_eswitches(userdata);
}

static const SurveyKind modes = {
        .process = "passthroughd-es",
        .unknown = ESWITCH_UNKNOWN,
        .ask = ask,
        .answered = on_answered,
        .late = on_late,
        .ended = on_ended,
};

static bool is_to_be_asked(const Manager *m, const PciDevice *dev) {
        const Eswitch *known = dev->type == PCI_TYPE_PF ? eswitch_list_find(&m->node.eswitches, dev) : NULL;

        return !(known && known->asked) && eswitch_may_be(m->fs, dev);
}

/* They count as asked from here on. */
static int gather(Manager *m, PciAddress **asked, size_t *n) {
        for (size_t i = 0; i < m->node.inventory->n_devices; i++) {
                const PciDevice *dev = &m->node.inventory->devices[i];
                Eswitch *e;

                if (!is_to_be_asked(m, dev))
                        continue;
                e = eswitch_list_add(&m->node.eswitches, dev);
                if (!e || pci_address_append(asked, n, dev->address) < 0)
                        return -ENOMEM;
                e->asked = true;
        }
        return 0;
}

void manager_survey_eswitches(Manager *m) {
        _cleanup_free_ PciAddress *asked = NULL;
        size_t n = 0;
        int r;

        if (!m->announced || m->stopping || m->eswitch_survey)
                return;
        r = gather(m, &asked, &n);
        if (r == 0 && n == 0)
                return;
        if (r == 0)
                r = survey_begin(&modes, m->event, m->fs, TAKE_PTR(asked), n, m->node.config->job_timeout, m,
                                 &m->eswitch_survey);
        if (r < 0)
                log_warning_errno(r, "Failed to ask for the modes of eswitches, ignoring: %m");
}

void manager_forget_eswitch(Manager *m, PciAddress pf) {
        eswitch_list_remove(&m->node.eswitches, pf);
}

void manager_survey_again(Manager *m) {
        for (size_t i = 0; i < m->node.eswitches.n; i++)
                m->node.eswitches.eswitches[i].asked = false;
        manager_survey_eswitches(m);
}
