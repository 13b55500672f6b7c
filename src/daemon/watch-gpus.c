/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the device minors of NVIDIA GPUs in a child, because the driver may wait for a GPU that never answers. While
 * the minor of a GPU is unknown, any process with an NVIDIA device node open counts as a user of the GPU. For a GPU in
 * a pool with Fabric=yes or ConfidentialMode=, the child also asks NVIDIA's library for the module id and the
 * confidential mode, and whether the driver has lost the GPU. A GPU is asked again on a rescan, on a reload, and after
 * a uevent, for example when its driver was bound again or the kernel has handled an error of it.
 */

#include <errno.h>

#include "facts.h"
#include "host/rootservice.h"
#include "state.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/strings.h"

/* Startup waits at most this long for the answer of one GPU, so that the bind of other devices is not delayed for
 * longer. */
#define PATIENCE_SEC 20U
/* How much of this time NVIDIA's library may take. */
#define MODULE_USEC  5000000U

static void show(Manager *m, PciAddress gpu) {
        const PciDevice *dev = inventory_find(m->host.inventory, gpu);

        if (!dev)
                return;
        manager_name_gpu(m, &m->host.inventory->devices[inventory_device_index(m->host.inventory, dev)]);
        note_device(m, gpu);
}

/* What the child reports about one GPU. */
typedef struct GpuAnswer {
        uint32_t minor;
        int32_t memory_node; /* NUMA node of the GPU's memory; -1: none */
        int32_t module;      /* result of root_read_module(); -ENODATA: the library was not asked */
} GpuAnswer;
_Static_assert(sizeof(GpuAnswer) <= PROBE_ANSWER_MAX, "an answer fits into a message of a probe");

/* Returns true when NVIDIA's library is asked about the GPU. */
static bool asks_library(const Manager *m, PciAddress gpu) {
        const PciDevice *dev = inventory_find(m->host.inventory, gpu);
        const Pool *pool = dev ? policy_pool(m->host.policy, dev) : NULL;

        return pool && streq_ptr(dev->driver, NVIDIA_DRIVER) && pool_asks_library(pool);
}

/* Returns true when the library has to be asked about the GPU now. It is not asked when only a driver was bound and
 * everything is known: the process that asks opens the device node of the GPU, so the GPU would count as in use, and an
 * allocation of it would be refused. */
static bool must_ask(const Manager *m, PciAddress gpu) {
        const GpuMinor *g = manager_find_gpu(m, gpu);
        const PciDevice *dev = inventory_find(m->host.inventory, gpu);

        return asks_library(m, gpu) &&
               ((g && g->suspect) || (policy_has_fabric(m->host.policy, dev) ? config_module(m->host.config, dev) == 0
                                                                             : dev->mode == CONFIDENTIAL_MODE_UNKNOWN));
}

/* Runs in the child: reads the GPUs. If the library has not answered about one GPU, it is not asked about the following
 * ones. */
static int look(const Sysfs *fs, const Probe *s, const PciAddress *gpus, size_t n, void *userdata) {
        bool answers = true;

        for (size_t i = 0; i < n; i++) {
                GpuAnswer answer = { .minor = nvidia_read_minor(fs, gpus[i]), .memory_node = -1, .module = -ENODATA };
                bool online;

                (void) nvidia_read_memory(fs, gpus[i], &answer.memory_node, &online);
                if (answers && must_ask(userdata, gpus[i]))
                        answer.module = root_read_module(gpus[i], clock_usec(CLOCK_MONOTONIC) + MODULE_USEC);
                answers = answers && answer.module != -ETIMEDOUT;
                probe_tell(s, i, &answer);
        }
        return 0;
}

static void set_lost(Manager *m, PciAddress gpu, bool lost) {
        _cleanup_free_ char *why =
                lost ? string_format("%s is unhealthy: NVIDIA's driver has lost it.", PCI_ADDRESS_STR(gpu)) : NULL;

        if (!lost || why)
                manager_set_unhealthy(m, gpu, DEVICE_LOST, why);
}

/* Stores the answer about a GPU. If the driver was bound again after the probe began, drops the answer; the next probe
 * reads the minor. */
static void on_answer(PciAddress gpu, const void *answer, void *userdata) {
        GpuMinor *g = manager_find_gpu(userdata, gpu);
        GpuAnswer a;

        if (!g || !g->asked)
                return;
        memcpy(&a, answer, sizeof(a));
        g->minor = a.minor;
        g->memory_node = a.memory_node;
        g->answered = true;
        g->suspect = false;
        if (a.module > 0)
                manager_learn_gpu(userdata, gpu, (unsigned) GPU_MODULE(a.module),
                                  (ConfidentialMode) GPU_MODE(a.module));
        if (a.module >= 0 || a.module == -ENODEV)
                set_lost(userdata, gpu, a.module == -ENODEV);
        show(userdata, gpu);
}

static void on_late(const PciAddress *gpus, size_t n, void *userdata _unused_) {
        log_warning("The NVIDIA driver does not answer for %s: the device minors of it and of %zu other GPUs stay "
                    "unknown, ignoring.",
                    PCI_ADDRESS_STR(gpus[0]), n - 1);
}

static void on_done(void *userdata) {
        Manager *m = userdata;

        for (GpuMinor *g = m->watches.gpus; g < m->watches.gpus + m->watches.n_gpus; g++)
                if (g->asked && !g->answered) {
                        g->minor = NVIDIA_MINOR_UNKNOWN;
                        show(m, g->address);
                }
        (void) manager_refresh_host(m);
        note_turn(m);
}

static void on_ended(void *userdata) {
        manager_probe_gpus(userdata);
}

static const ProbeKind minors = {
        .process = "passthroughd-nv",
        .size = sizeof(GpuAnswer),
        .look = look,
        .told = on_answer,
        .late = on_late,
        .done = on_done,
        .ended = on_ended,
};

/* Returns the entry of the GPU with this instance: `known`, which is emptied if it is of another instance, or a new one
 * if `known` is NULL. NULL when out of memory. */
static GpuMinor *add(Watches *w, GpuMinor *known, const PciDevice *dev) {
        if (known && known->instance == dev->instance)
                return known;
        if (!known) {
                if (ARRAY_RESERVE(w->gpus, w->n_gpus) < 0)
                        return NULL;
                known = &w->gpus[w->n_gpus++];
        }
        *known = (GpuMinor) {
                .address = dev->address, .instance = dev->instance, .minor = NVIDIA_MINOR_UNKNOWN, .memory_node = -1
        };
        return known;
}

/* Forgets the GPUs that are not on NVIDIA's driver, and the findings about GPUs for which NVIDIA's library is no longer
 * asked. */
static void forget_others(Manager *m) {
        for (size_t i = m->host.status.n; i-- > 0;)
                if (!asks_library(m, m->host.status.devices[i].address))
                        set_lost(m, m->host.status.devices[i].address, false);
        for (size_t i = m->watches.n_gpus; i-- > 0;) {
                const PciDevice *dev = inventory_find(m->host.inventory, m->watches.gpus[i].address);

                if (dev && !streq_ptr(dev->driver, NVIDIA_DRIVER))
                        manager_forget_gpu(m, dev->address);
        }
}

/* Lists the GPUs to read. Skips a GPU on which a job works; it is read when the job has ended. */
static int gather(Manager *m, PciAddress **gpus, size_t *n) {
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                const PciDevice *dev = &m->host.inventory->devices[i];
                GpuMinor *g;

                /* NVIDIA's driver has no device nodes for VFs, nor for slots of mediated devices. */
                if (!streq_ptr(dev->driver, NVIDIA_DRIVER) || dev->vgpu_types || manager_is_busy(m, dev->address))
                        continue;
                g = add(&m->watches, manager_find_gpu(m, dev->address), dev);
                if (g && g->asked)
                        continue;
                if (!g || pci_address_append(gpus, n, dev->address) < 0)
                        return -ENOMEM;
                g->asked = true;
                g->answered = false;
                g->suspect |= !m->announced;
        }
        return 0;
}

void manager_probe_gpus(Manager *m) {
        _cleanup_free_ PciAddress *gpus = NULL;
        size_t n = 0;
        int r;

        if (m->stopping || m->watches.gpu_probe)
                return;
        forget_others(m);
        r = gather(m, &gpus, &n);
        if (r >= 0 && n > 0)
                r = probe_begin(&minors, m->event, m->fs, TAKE_PTR(gpus), n,
                                MIN(m->host.config->job_timeout, PATIENCE_SEC), m, &m->watches.gpu_probe);
        if (r < 0)
                log_warning_errno(r, "Failed to read the device minors of GPUs, ignoring: %m");
}

void manager_probe_gpus_again(Manager *m) {
        for (size_t i = 0; i < m->watches.n_gpus; i++)
                manager_doubt_gpu(m, m->watches.gpus[i].address, true);
        manager_probe_gpus(m);
}
