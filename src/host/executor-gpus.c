/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the executor asks NVIDIA's driver, through passthroughd-root. */

#include "executor-gpus.h"

#include <errno.h>
#include <fcntl.h>

#include "host/nvidia.h"
#include "host/pcipath.h"
#include "host/rootservice.h"
#include "util/clock.h"
#include "util/strings.h"

/* The driver initializes a GPU that no process has open, which takes seconds. */
#define GPU_USEC         20000000U
/* A GPU in persistence mode is initialized. */
#define PERSISTENCE_USEC 3000000U

/*
 * The driver takes interrupts (MSI) when it initializes a GPU, and returns them when the last process closes a GPU that
 * is not in persistence mode (nv_shutdown_adapter() in its nv.c). So a GPU without them is not, and is not asked: that
 * would initialize it.
 */
bool gpu_may_be_persistent(const Sysfs *fs, const Step *s) {
        _cleanup_close_ int fd = s->kind == STEP_UNBIND && streq(s->from, NVIDIA_DRIVER)
                                         ? sysfs_open(fs, PCI_PATH(s->device, "msi_irqs"), O_PATH | O_DIRECTORY)
                                         : -EINVAL;

        return fd >= 0;
}

typedef int (*Question)(const PciAddress *gpus, size_t n, uint64_t end, int32_t *results);

/* Asks passthroughd-root, which cannot answer while it waits for the kernel: then the driver does not answer for the
 * first of the GPUs, as far as is known. After a GPU for which it does not answer, no other is asked about. */
static void ask_driver(Question ask, uint64_t usec, const PciAddress *gpus, size_t n, int32_t *results) {
        size_t part;

        for (size_t i = 0; i < n; i += part) {
                uint64_t end;
                int r;

                part = MIN(n - i, ROOT_GPUS_MAX);
                end = clock_usec(CLOCK_MONOTONIC) + part * usec;
                r = ask(&gpus[i], part, end, &results[i]);
                if (r == -EHOSTDOWN && clock_usec(CLOCK_MONOTONIC) >= end)
                        results[i] = r = -ETIMEDOUT;
                if (r == -ETIMEDOUT)
                        return;
        }
}

void gpus_read_persistence(const PciAddress *gpus, size_t n, int32_t *results) {
        ask_driver(root_read_persistence, PERSISTENCE_USEC, gpus, n, results);
}

void gpus_check(const PciAddress *gpus, size_t n, int32_t *results) {
        ask_driver(root_check_health, GPU_USEC, gpus, n, results);
}

int gpu_restore_persistence(const Sysfs *fs _unused_, const Step *s, VfAttributes *found _unused_) {
        (void) root_set_persistence(s->device, clock_usec(CLOCK_MONOTONIC) + GPU_USEC);
        return 0;
}
