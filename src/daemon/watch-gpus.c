/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the device minors of NVIDIA GPUs in a child, because the driver may wait for a GPU that never answers. While
 * the minor of a GPU is unknown, any process with an NVIDIA device node open counts as its user. A GPU that does not
 * answer is asked again on a rescan or when its driver is bound again.
 */

#include "manager.h"
#include "util/log.h"
#include "util/strings.h"

/* Startup waits at most this long for the minors, so that one GPU does not hold up the binding of other devices. */
#define PATIENCE_SEC 20U

static void on_late(const PciAddress *gpus, size_t n, void *userdata _unused_) {
        log_warning("The NVIDIA driver does not answer for %s: the device minors of it and of %zu other GPUs stay "
                    "unknown, ignoring.",
                    PCI_ADDRESS_STR(gpus[0]), n - 1);
}

static void on_done(void *userdata) {
        Manager *m = userdata;

        reconcile_want(&m->reconcile);
}

static void on_ended(void *userdata) {
        manager_probe_gpus(userdata);
}

/* A GPU that a job works on is asked when the job has ended. */
static bool is_wanted(void *userdata, const PciDevice *dev) {
        return streq_ptr(dev->driver, NVIDIA_DRIVER) && !manager_is_busy(userdata, dev->address);
}

static const ProbeKind minors = {
        .process = "passthroughd-nv",
        .unknown = NVIDIA_MINOR_UNKNOWN,
        .ask = nvidia_query,
        .wanted = is_wanted,
        .late = on_late,
        .done = on_done,
        .ended = on_ended,
};

/* Drops the minors of GPUs that are not bound to NVIDIA's driver. */
static void forget_others(Manager *m) {
        for (size_t i = m->watches.gpus.n; i-- > 0;) {
                const PciDevice *dev = inventory_find(m->host.inventory, m->watches.gpus.answers[i].address);

                if (dev && !streq_ptr(dev->driver, NVIDIA_DRIVER))
                        probe_cache_remove(&m->watches.gpus, dev->address);
        }
}

void manager_probe_gpus(Manager *m) {
        int r;

        if (m->stopping || m->watches.gpu_probe)
                return;
        forget_others(m);
        r = probe_begin(&minors, m->event, m->fs, m->host.inventory, &m->watches.gpus,
                        MIN(m->host.config->job_timeout, PATIENCE_SEC), m, &m->watches.gpu_probe);
        if (r < 0)
                log_warning_errno(r, "Failed to read the device minors of GPUs, ignoring: %m");
}

void manager_doubt_gpu(Manager *m, PciAddress gpu) {
        const PciDevice *dev = inventory_find(m->host.inventory, gpu);
        ProbeAnswer *known = dev ? probe_cache_find(&m->watches.gpus, dev) : NULL;

        if (known)
                known->asked = false;
}

void manager_probe_gpus_again(Manager *m) {
        probe_cache_ask_again(&m->watches.gpus);
        manager_probe_gpus(m);
}
