/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's errno as cause and remedy (domain.md B5, C1, C14). */

#include <errno.h>

#include "core/step.h"
#include "util/strings.h"

static const struct {
        StepKind kind;
        int error;
        const char *cause;
} causes[] = {
        { STEP_OVERRIDE, EIO, "the kernel took the write but shows another override; something else changes it too." },
        { STEP_UNBIND, EBUSY, "it is on another driver by now; something else binds devices on this node." },
        { STEP_UNBIND, EIO, "the kernel took the write, but the device is still bound." },
        { STEP_UNBIND, ENOENT, "the device is gone." },
        { STEP_BIND, EBUSY, "it is on another driver by now, or a guest has a member of its IOMMU group." },
        { STEP_BIND, ENODEV,
          "the kernel probed, but the driver did not take it; is its module loaded? See the kernel log." },
        { STEP_BIND, EINVAL, "the kernel does not know the address." },
        { STEP_AUTOPROBE, EIO, "the kernel took the write but shows another value." },
        { STEP_REMOVE_VFS, ENOENT,
          "the PF has no driver, or its driver has VFs only when it is loaded (mlx4_core: its module option "
          "num_vfs)." },
        { STEP_REMOVE_VFS, EBUSY, "somebody else changed their number, or bound one of them, meanwhile." },
        { STEP_REMOVE_VFS, EPERM, "the PF's driver says that guests have VFs; stop these first." },
        { STEP_REMOVE_VFS, EIO, "the kernel took the write, but VFs are still there. See the kernel log." },
        { STEP_NUMVFS, ENOENT,
          "the PF has no driver, or its driver creates VFs only when it is loaded (mlx4_core: set its module option "
          "num_vfs)." },
        { STEP_NUMVFS, ENOMEM,
          "not enough MMIO space or bus numbers for VFs; try pci=realloc on the kernel command line, or the firmware "
          "setup." },
        { STEP_NUMVFS, ENOSPC,
          "no MSI-X vectors are left for so many VFs; ask for fewer, or raise them in the firmware setup." },
        { STEP_NUMVFS, ERANGE,
          "the PF does not have so many VFs; ConnectX: raise NUM_OF_VFS in its firmware configuration." },
        { STEP_NUMVFS, EBUSY, "it has another number of VFs already; their users must let go of them first." },
        { STEP_NUMVFS, EIO,
          "the kernel made fewer VFs than it was asked for; they were removed again. See the kernel log." },
};

char *step_failure(const Step *s, int error) {
        _cleanup_free_ char *what = step_describe(s);
        const char *cause = NULL;
        char *text = NULL;

        for (size_t i = 0; i < ELEMENTSOF(causes); i++)
                if (causes[i].kind == s->kind && causes[i].error == -error)
                        cause = causes[i].cause;
        if (cause)
                (void) string_replace(&text, "Failed to %s: %s", what ?: "do a step", cause);
        else
                (void) string_replace(&text, "Failed to %s: %s.", what ?: "do a step", strerror(-error));
        return text;
}

const char *step_hang(const Step *s) {
        switch (s->kind) {
        case STEP_REMOVE_VFS:
        case STEP_NUMVFS:
                return "It may hold the kernel's lock for PCI devices that come and go: until it does, a change of VFs "
                       "of any PF, a PCI rescan, hot-plug, and unbinding the driver of a PF may wait too, and so does "
                       "whoever reads its sriov_numvfs.";
        default:
                return NULL;
        }
}
