/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the device minors of NVIDIA GPUs in a child, because the driver may wait for a GPU that never answers. While
 * the minor of a GPU is unknown, any process with an NVIDIA device node open counts as its user. A GPU that does not
 * answer is asked again on a rescan or when its driver is bound again.
 */

#include <errno.h>

#include "manager.h"
#include "util/log.h"
#include "util/strings.h"

/* Startup waits at most this long for a GPU, so that it does not hold up the binding of other devices. */
#define PATIENCE_SEC 20U

static GpuMinor *find(const Manager *m, PciAddress gpu) {
        for (size_t i = 0; i < m->watches.n_gpus; i++)
                if (pci_address_equal(m->watches.gpus[i].address, gpu))
                        return &m->watches.gpus[i];
        return NULL;
}

uint32_t manager_gpu_minor(const Manager *m, const PciDevice *gpu) {
        const GpuMinor *g = find(m, gpu->address);

        return g && g->instance == gpu->instance ? g->minor : NVIDIA_MINOR_UNKNOWN;
}

void manager_forget_gpu(Manager *m, PciAddress gpu) {
        GpuMinor *g = find(m, gpu);

        if (g)
                *g = m->watches.gpus[--m->watches.n_gpus];
}

void manager_doubt_gpu(Manager *m, PciAddress gpu) {
        GpuMinor *g = find(m, gpu);

        if (g)
                g->asked = false;
}

static int look(const Sysfs *fs, const Probe *s, const PciAddress *gpus, size_t n, void *userdata _unused_) {
        for (size_t i = 0; i < n; i++) {
                uint32_t minor = nvidia_read_minor(fs, gpus[i]);

                probe_tell(s, i, &minor);
        }
        return 0;
}

/* Drops the answer when the driver was bound again since the probe began: the next probe reads the minor. */
static void on_answer(PciAddress gpu, const void *answer, void *userdata) {
        GpuMinor *g = find(userdata, gpu);

        if (!g || !g->asked)
                return;
        memcpy(&g->minor, answer, sizeof(g->minor));
        g->answered = true;
}

static void on_late(const PciAddress *gpus, size_t n, void *userdata _unused_) {
        log_warning("The NVIDIA driver does not answer for %s: the device minors of it and of %zu other GPUs stay "
                    "unknown, ignoring.",
                    PCI_ADDRESS_STR(gpus[0]), n - 1);
}

static void on_done(void *userdata) {
        Manager *m = userdata;

        for (GpuMinor *g = m->watches.gpus; g < m->watches.gpus + m->watches.n_gpus; g++)
                if (g->asked && !g->answered)
                        g->minor = NVIDIA_MINOR_UNKNOWN;
        reconcile_want(&m->reconcile);
}

static void on_ended(void *userdata) {
        manager_probe_gpus(userdata);
}

static const ProbeKind minors = {
        .process = "passthroughd-nv",
        .size = sizeof(uint32_t),
        .look = look,
        .told = on_answer,
        .late = on_late,
        .done = on_done,
        .ended = on_ended,
};

/* Returns the entry of the GPU with the same instance, and adds one if there is none. NULL: out of memory. */
static GpuMinor *add(Watches *w, GpuMinor *known, const PciDevice *dev) {
        if (known && known->instance == dev->instance)
                return known;
        if (!known) {
                if (ARRAY_RESERVE(w->gpus, w->n_gpus) < 0)
                        return NULL;
                known = &w->gpus[w->n_gpus++];
        }
        *known = (GpuMinor){ .address = dev->address, .instance = dev->instance, .minor = NVIDIA_MINOR_UNKNOWN };
        return known;
}

/* Drops the GPUs that are not bound to NVIDIA's driver. */
static void forget_others(Manager *m) {
        for (size_t i = m->watches.n_gpus; i-- > 0;) {
                const PciDevice *dev = inventory_find(m->host.inventory, m->watches.gpus[i].address);

                if (dev && !streq_ptr(dev->driver, NVIDIA_DRIVER))
                        manager_forget_gpu(m, dev->address);
        }
}

/* Lists the GPUs to read. A GPU that a job works on is read when the job has ended. */
static int gather(Manager *m, PciAddress **gpus, size_t *n) {
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                const PciDevice *dev = &m->host.inventory->devices[i];
                GpuMinor *g;

                if (!streq_ptr(dev->driver, NVIDIA_DRIVER) || manager_is_busy(m, dev->address))
                        continue;
                g = add(&m->watches, find(m, dev->address), dev);
                if (g && g->asked)
                        continue;
                if (!g || pci_address_append(gpus, n, dev->address) < 0)
                        return -ENOMEM;
                g->asked = true;
                g->answered = false;
        }
        return 0;
}

void manager_probe_gpus(Manager *m) {
        PciAddress *gpus = NULL;
        size_t n = 0;
        int r;

        if (m->stopping || m->watches.gpu_probe)
                return;
        forget_others(m);
        r = gather(m, &gpus, &n);
        if (r >= 0 && n > 0)
                r = probe_begin(&minors, m->event, m->fs, TAKE_PTR(gpus), n,
                                MIN(m->host.config->job_timeout, PATIENCE_SEC), m, &m->watches.gpu_probe);
        free(gpus);
        if (r < 0)
                log_warning_errno(r, "Failed to read the device minors of GPUs, ignoring: %m");
}

void manager_probe_gpus_again(Manager *m) {
        for (size_t i = 0; i < m->watches.n_gpus; i++)
                m->watches.gpus[i].asked = false;
        manager_probe_gpus(m);
}
