/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mode of each PF's eswitch, asked by a child: a driver may hold its devlink instance for minutes. There is one
 * child at most, and one that is past its deadline is not followed by another before it is gone. Who does not answer
 * stays unknown, and is not asked again until its driver begins anew, or on a rescan.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "daemon/child.h"
#include "daemon/manager.h"
#include "host/eswitch.h"
#include "util/log.h"

/* What the child tells; smaller than PIPE_BUF. */
typedef struct Told {
        uint32_t asked; /* index */
        uint32_t mode;
} Told;

struct Survey {
        pid_t pid;
        int fd;
        sd_event_source *io, *child, *timer;
        PciAddress *asked;
        size_t n_asked, n_told; /* they are told in their order */
};

static void tell(size_t i, EswitchMode mode, void *userdata) {
        const Told told = { .asked = (uint32_t) i, .mode = mode };

        /* The parent is gone when this fails; so are we. */
        (void) !write(CHILD_REPORT_FD, &told, sizeof(told));
}

_Noreturn static void run_child(const Survey *s, pid_t parent, int report) {
        /* It waits for no word, so that descriptor is a double of the other. */
        if (child_settle(parent, "passthroughd-es", report, report) < 0)
                _exit(EXIT_FAILURE);
        _exit(eswitch_ask(s->asked, s->n_asked, tell, NULL) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void set_mode(Manager *m, PciAddress address, EswitchMode mode) {
        const PciDevice *pf = inventory_find(m->node.inventory, address);
        Eswitch *e = pf ? eswitch_list_find(&m->node.eswitches, pf) : NULL;

        /* What began anew since the question is still to be asked. */
        if (e && e->asked)
                e->mode = mode;
}

static void drain(Manager *m) {
        Survey *s = m->survey;
        Told told;

        while (read(s->fd, &told, sizeof(told)) == (ssize_t) sizeof(told))
                if (told.asked == s->n_told && told.asked < s->n_asked && told.mode < _ESWITCH_MODE_MAX)
                        set_mode(m, s->asked[s->n_told++], told.mode);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Manager *m = userdata;

        drain(m);
        /* The end is told by the child's exit; a closed pipe would only wake us for ever. */
        if (!(events & EPOLLIN))
                m->survey->io = sd_event_source_disable_unref(m->survey->io);
        return 0;
}

static void forget_unanswered(Manager *m) {
        while (m->survey->n_told < m->survey->n_asked)
                set_mode(m, m->survey->asked[m->survey->n_told++], ESWITCH_UNKNOWN);
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        Survey *s = m->survey;

        drain(m);
        if (s->n_told < s->n_asked)
                log_warning("devlink does not answer for %s: the mode of its eswitch, and of %zu asked after it, stays "
                            "unknown, ignoring.",
                            PCI_ADDRESS_STR(s->asked[s->n_told]), s->n_asked - s->n_told - 1);
        forget_unanswered(m);
        (void) kill(s->pid, SIGKILL);
        return 0;
}

static Survey *survey_free(Survey *s) {
        sd_event_source_disable_unref(s->io);
        sd_event_source_disable_unref(s->child);
        sd_event_source_disable_unref(s->timer);
        cleanup_close(&s->fd);
        free(s->asked);
        free(s);
        return NULL;
}
DEFINE_CLEANUP(Survey *, survey_free)

static int on_child(sd_event_source *source, const siginfo_t *si, void *userdata) {
        Manager *m = userdata;

        drain(m);
        forget_unanswered(m);
        m->survey = survey_free(m->survey);
        manager_survey_eswitches(m);
        return 0;
}

static int watch(Manager *m, Survey *s) {
        int r = sd_event_add_child(m->event, &s->child, s->pid, WEXITED, on_child, m);

        if (r >= 0)
                r = sd_event_add_io(m->event, &s->io, s->fd, EPOLLIN, on_io, m);
        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &s->timer, CLOCK_MONOTONIC,
                                               m->node.config->job_timeout * 1000000ULL, 0, on_timeout, m);
        return r;
}

static int begin(Manager *m, Survey *s) {
        _cleanup_close_ int report_read = -1, report_write = -1;
        pid_t parent = getpid();
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        report_read = fds[0];
        report_write = fds[1];
        s->pid = fork();
        if (s->pid < 0)
                return -errno;
        if (s->pid == 0)
                run_child(s, parent, report_write);
        (void) fcntl(report_read, F_SETFL, O_NONBLOCK);
        s->fd = TAKE_FD(report_read);
        r = watch(m, s);
        if (r < 0)
                (void) kill(s->pid, SIGKILL);
        return r;
}

static bool is_to_be_asked(const Manager *m, const PciDevice *dev) {
        const Eswitch *known = dev->type == PCI_TYPE_PF ? eswitch_list_find(&m->node.eswitches, dev) : NULL;

        return !(known && known->asked) && eswitch_may_be(m->fs, dev);
}

/* They count as asked from here on. */
static int gather(Manager *m, Survey *s) {
        for (size_t i = 0; i < m->node.inventory->n_devices; i++) {
                const PciDevice *dev = &m->node.inventory->devices[i];
                Eswitch *e;

                if (!is_to_be_asked(m, dev))
                        continue;
                e = eswitch_list_add(&m->node.eswitches, dev);
                if (!e || pci_address_append(&s->asked, &s->n_asked, dev->address) < 0)
                        return -ENOMEM;
                e->asked = true;
        }
        return 0;
}

void manager_survey_eswitches(Manager *m) {
        _cleanup_(cleanup_survey_free) Survey *s = NULL;
        int r;

        if (!m->announced || m->stopping || m->survey)
                return;
        s = calloc(1, sizeof(*s));
        if (s)
                s->fd = -1;
        r = s ? gather(m, s) : -ENOMEM;
        if (r == 0 && s->n_asked == 0)
                return;
        if (r >= 0)
                r = begin(m, s);
        if (r >= 0)
                m->survey = TAKE_PTR(s);
        else
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

void manager_survey_close(Manager *m) {
        if (!m->survey)
                return;
        (void) kill(m->survey->pid, SIGKILL);
        m->survey = survey_free(m->survey);
}
