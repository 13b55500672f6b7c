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
#define PERSISTENCE_USEC 5000000U

static uint64_t time_limit(uint64_t usec) {
        return clock_usec(CLOCK_MONOTONIC) + usec;
}

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

/* Asks passthroughd-root, which cannot answer while it waits for the kernel: then the driver does not answer. */
static int ask_driver(int (*ask)(PciAddress gpu, uint64_t end), PciAddress gpu, uint64_t end) {
        int r = ask(gpu, end);

        return r == -EHOSTDOWN && clock_usec(CLOCK_MONOTONIC) >= end ? -ETIMEDOUT : r;
}

int gpu_read_persistence(const Step *s) {
        return ask_driver(root_read_persistence, s->device, time_limit(PERSISTENCE_USEC));
}

int gpu_restore_persistence(const Sysfs *fs _unused_, const Step *s, VfAttributes *found _unused_) {
        (void) root_set_persistence(s->device, time_limit(GPU_USEC));
        return 0;
}

int gpu_check(const StepList *steps, size_t i) {
        static bool hangs; /* these steps run alone, so one process runs them all */
        int r;

        /* The driver did not answer for a GPU before: this one is released without a check. */
        if (hangs)
                return 0;
        r = ask_driver(root_check_health, steps->steps[i].device, time_limit(GPU_USEC));
        hangs = r == -ETIMEDOUT;
        /* Another error tells nothing about the GPU. It is in the log of passthroughd-root. */
        return step_cause(&steps->steps[i], r) ? r : 0;
}
