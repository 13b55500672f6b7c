/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Watches the attributes of allocated VFs. A child reads them at startup, on a rescan, and when rtnetlink reports a
 * change of their PF's interface; plan/promise.h compares them with what was promised. After such a change another
 * child also checks whether the VFs still answer (watch-health.c).
 *
 * The attributes from before an allocation, the baseline of each VF, are saved in the allocation before anything is
 * written, so that a release can restore them (op-prepare.c).
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "facts.h"
#include "host/linkmonitor.h"
#include "host/pcipath.h"
#include "host/vfattr.h"
#include "util/log.h"

/* The most notifications of rtnetlink that are read in one turn of the event loop. */
#define NOTIFICATIONS_PER_TURN 256U

/* What the child reports about one VF. */
typedef struct Answer {
        int result;
        VfAttributes attributes;
} Answer;

static void send_answer(size_t i, int result, const VfAttributes *attributes, void *userdata) {
        Answer answer;

        /* Zero the padding too, because the structure is written to the pipe. */
        memset(&answer, 0, sizeof(answer));
        answer.result = result;
        vf_attributes_merge(&answer.attributes, attributes);
        probe_tell(userdata, i, &answer);
}

/* Runs in the child: reads the attributes of the VFs, because the driver of a PF may take long to answer. */
static int look(const Sysfs *fs, const Probe *s, const PciAddress *devices, size_t n, void *userdata) {
        const Manager *m = userdata;
        _cleanup_free_ VfPlace *vfs = calloc(n + 1, sizeof(*vfs));

        if (!vfs)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const PciDevice *vf = inventory_find(m->host.inventory, devices[i]);

                vfs[i] = (VfPlace) { vf->physfn, (unsigned) vf->vf_index };
        }
        vf_attributes_read_all(fs, vfs, n, send_answer, (void *) s);
        return 0;
}

static void on_answer(PciAddress vf, const void *answer, void *userdata) {
        Manager *m = userdata;
        Answer told;

        memcpy(&told, answer, sizeof(told));
        /* If a notification has arrived meanwhile, or a job has written attributes, this answer is stale, and the VF is
         * read again. */
        if (m->watches.attributes.due ||
            vf_report_set(&m->host.vfs, vf, told.result < 0 ? NULL : &told.attributes) <= 0)
                return;
        note_facts(m);
        note_device(m, vf);
}

static void on_late(const PciAddress *vfs, size_t n, void *userdata) {
        log_warning("The PF of the VF %s does not answer; the attributes of %zu VFs stay unknown, ignoring.",
                    PCI_ADDRESS_STR(vfs[0]), n);
}

static void on_done(void *userdata) {
        Manager *m = userdata;

        note_turn(m);
}

static void probe(Manager *m);

static void on_ended(void *userdata) {
        probe(userdata);
}

static const ProbeKind attributes_probe = {
        .process = "passthroughd-vf",
        .size = sizeof(Answer),
        .look = look,
        .told = on_answer,
        .late = on_late,
        .done = on_done,
        .ended = on_ended,
};
_Static_assert(sizeof(Answer) <= PROBE_ANSWER_MAX, "an answer fits into a message of a probe");

/* Returns the VF of the claim if its allocation is ready and was promised attributes of the VF; otherwise NULL. */
static const PciDevice *find_promised(const Manager *m, const Claim *claim) {
        const AllocationDevice *d = allocation_find_device(claim->allocation, claim->address);
        const PciDevice *vf = d->is_vf && d->attributes.set != 0 && claim->allocation->state == ALLOCATION_READY
                                      ? inventory_find(m->host.inventory, claim->address)
                                      : NULL;

        return vf && vf->type == PCI_TYPE_VF && vf->vf_index >= 0 ? vf : NULL;
}

/* Lists the VFs to read. Skips a VF while a job works on its PF; the VF is read when the job has ended. */
static int gather(Manager *m, PciAddress **ret, size_t *ret_n) {
        const Ledger *l = m->host.ledger;

        for (size_t i = 0; i < l->n_claims; i++) {
                const PciDevice *vf = find_promised(m, &l->claims[i]);
                bool busy = vf && manager_is_busy(m, vf->physfn);

                m->watches.attributes.busy = m->watches.attributes.busy || busy;
                if (vf && !busy && pci_address_append(ret, ret_n, vf->address) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static void probe(Manager *m) {
        _cleanup_free_ PciAddress *vfs = NULL;
        size_t n = 0;
        int r;

        if (!m->announced || m->stopping || m->watches.attributes.probe || !m->watches.attributes.due)
                return;
        m->watches.attributes.due = false;
        r = gather(m, &vfs, &n);
        if (r >= 0 && n > 0)
                r = probe_begin(&attributes_probe, m->event, m->fs, TAKE_PTR(vfs), n, m->host.config->job_timeout, m,
                                &m->watches.attributes.probe);
        if (r < 0)
                log_warning_errno(r, "Failed to read the attributes of VFs, ignoring: %m");
}

void manager_make_attributes_due(Manager *m) {
        m->watches.attributes.due = true;
        probe(m);
}

void manager_attributes_job_gone(Manager *m) {
        if (!m->watches.attributes.busy)
                return;
        m->watches.attributes.busy = false;
        manager_make_attributes_due(m);
}

/* Returns the PF that has the interface, if one of its VFs is allocated; otherwise NULL. */
static const PciDevice *find_pf(const Manager *m, const char *interface) {
        const Ledger *l = m->host.ledger;
        const PciDevice *last = NULL;

        for (size_t i = 0; i < l->n_claims; i++) {
                const PciDevice *vf = inventory_find(m->host.inventory, l->claims[i].address);
                const PciDevice *pf =
                        vf && vf->type == PCI_TYPE_VF ? inventory_find(m->host.inventory, vf->physfn) : NULL;
                char path[PCI_PATH_MAX + IF_NAMESIZE];
                _cleanup_close_ int fd = -1;

                if (!pf || pf == last)
                        continue;
                last = pf;
                (void) snprintf(path, sizeof(path), "%s/%s", PCI_PATH(pf->address, "net"), interface);
                fd = sysfs_open(m->fs, path, O_PATH | O_DIRECTORY);
                if (fd >= 0)
                        return pf;
        }
        return NULL;
}

/* Handles a link notification. interface: the interface that it is about; NULL: notifications were lost. A link also
 * changes when the firmware or the driver resets the PF. The kernel sends no uevent for that, and a guest may have lost
 * its VF. */
static void note_link(Manager *m, const char *interface) {
        const PciDevice *pf;

        /* This may be the PF's first interface. Without MLNX_OFED, the GUIDs of a PF's VFs can be set only through an
         * interface of the PF. */
        if (manager_refresh_guids(m) > 0) {
                note_all_devices(m);
                note_turn(m);
        }
        pf = interface ? find_pf(m, interface) : NULL;
        if (interface && !pf)
                return;
        m->watches.attributes.due = true;
        manager_check_vfs_of(m, pf ? &pf->address : NULL);
}

static int on_link(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Manager *m = userdata;
        char interface[IF_NAMESIZE];
        int r = 1;

        for (unsigned i = 0; i < NOTIFICATIONS_PER_TURN && r > 0; i++) {
                r = link_monitor_read(fd, interface);
                if (r > 0 || r == -ENOBUFS)
                        note_link(m, r > 0 ? interface : NULL);
        }
        if (r < 0 && r != -ENOBUFS) {
                log_warning_errno(r, "Failed to read notifications from rtnetlink, from now on changes of VFs are "
                                     "noticed on a rescan only, ignoring: %m");
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        }
        probe(m);
        return 0;
}

void manager_follow_links(Manager *m) {
        _cleanup_close_ int fd = link_monitor_open();
        int r = fd < 0 ? fd : sd_event_add_io(m->event, &m->watches.attributes.links, fd, EPOLLIN, on_link, m);

        if (r >= 0)
                r = sd_event_source_set_io_fd_own(m->watches.attributes.links, true);
        if (r >= 0)
                fd = -1;
        if (r < 0)
                log_warning_errno(r, "Failed to listen to rtnetlink, changes of VFs are noticed on a rescan only, "
                                     "ignoring: %m");
}
