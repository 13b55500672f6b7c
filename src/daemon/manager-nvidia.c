/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The numbers of NVIDIA's GPUs, asked by a child: the driver may wait for a GPU that never answers. While that of one
 * is unknown, whoever has any of the nodes open counts as its user. Who does not answer is not asked again until the
 * driver begins anew with it, or on a rescan.
 */

#include <errno.h>

#include "daemon/manager.h"
#include "util/log.h"
#include "util/strings.h"

/* The daemon's start waits for so long at most: what else is to be bound does not depend on one GPU. */
#define PATIENCE_SEC 20U

static void on_answered(void *userdata, PciAddress address, uint32_t minor) {
        Manager *m = userdata;
        const PciDevice *dev = inventory_find(m->node.inventory, address);
        NvidiaGpu *gpu = dev ? nvidia_list_find(&m->gpus, dev) : NULL;

        /* Whose driver began anew since the question is still to be asked. */
        if (gpu && gpu->asked)
                gpu->minor = minor;
}

static void on_late(PciAddress gpu, size_t others) {
        log_warning("The driver does not answer for %s: the number of its node, and of %zu asked after it, stays "
                    "unknown, ignoring.",
                    PCI_ADDRESS_STR(gpu), others);
}

static void on_done(void *userdata) {
        manager_go_on_starting(userdata);
}

static void on_ended(void *userdata) {
        manager_survey_nvidia(userdata);
}

static const SurveyKind minors = {
        .process = "passthroughd-nv",
        .unknown = NVIDIA_MINOR_UNKNOWN,
        .ask = nvidia_ask,
        .answered = on_answered,
        .late = on_late,
        .done = on_done,
        .ended = on_ended,
};

/* What a job works on is asked when it has ended. */
static bool is_to_be_asked(const Manager *m, const PciDevice *dev) {
        const NvidiaGpu *known;

        if (!streq_ptr(dev->driver, NVIDIA_DRIVER) || manager_is_busy(m, dev->address))
                return false;
        known = nvidia_list_find(&m->gpus, dev);
        return !(known && known->asked);
}

/* They count as asked from here on. */
static int gather(Manager *m, PciAddress **asked, size_t *n) {
        for (size_t i = 0; i < m->node.inventory->n_devices; i++) {
                const PciDevice *dev = &m->node.inventory->devices[i];
                NvidiaGpu *gpu;

                if (!streq_ptr(dev->driver, NVIDIA_DRIVER))
                        nvidia_list_remove(&m->gpus, dev->address);
                if (!is_to_be_asked(m, dev))
                        continue;
                gpu = nvidia_list_add(&m->gpus, dev);
                if (!gpu || pci_address_append(asked, n, dev->address) < 0)
                        return -ENOMEM;
                gpu->asked = true;
        }
        return 0;
}

void manager_survey_nvidia(Manager *m) {
        _cleanup_free_ PciAddress *asked = NULL;
        size_t n = 0;
        int r;

        if (m->stopping || m->gpu_survey)
                return;
        r = gather(m, &asked, &n);
        if (r == 0 && n == 0)
                return;
        if (r == 0)
                r = survey_begin(&minors, m->event, m->fs, TAKE_PTR(asked), n,
                                 MIN(m->node.config->job_timeout, PATIENCE_SEC), m, &m->gpu_survey);
        if (r < 0)
                log_warning_errno(r, "Failed to ask for the numbers of GPUs, ignoring: %m");
}

void manager_doubt_nvidia(Manager *m, PciAddress gpu) {
        const PciDevice *dev = inventory_find(m->node.inventory, gpu);
        NvidiaGpu *known = dev ? nvidia_list_find(&m->gpus, dev) : NULL;

        if (known)
                known->asked = false;
}

void manager_forget_nvidia(Manager *m, PciAddress gpu) {
        nvidia_list_remove(&m->gpus, gpu);
}

void manager_survey_nvidia_again(Manager *m) {
        for (size_t i = 0; i < m->gpus.n; i++)
                m->gpus.gpus[i].asked = false;
        manager_survey_nvidia(m);
}
