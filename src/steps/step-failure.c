/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Says in sentences why a step failed and what to do, by its errno. The kernel sets many of these errnos in
 * drivers/base/dd.c and drivers/pci/iov.c. */

#include <errno.h>

#include "steps/step.h"
#include "util/strings.h"

#define SHOWS_ANOTHER    "the kernel accepted the write but shows another value."
#define ALLOW_NO_RESET   "AllowNoReset=yes in its pool gives such devices to the next guest as they are."
#define NO_VGPU_ROOM     "its GPU has no room for a vGPU of this type, or does not know the type."
#define GUEST_OF_XEN     "a guest of Xen has it, or may have it. Stop the guest first."
#define ALL_ONES         "its config space reads all ones: it fell off the bus, or has no power."
#define OTHER_DEVICE     "another device answers at its address."
#define HANGS            "the kernel has not returned from it."
#define BESIDE_HANGS     "a device hangs that has the card, bridge or IOMMU group in common with it."
#define TOO_MANY_FILES   "too many files are open on this node to check."
#define NO_HOLDERS       "passthroughd-holders does not answer. See its log."
#define OTHER_PARTITIONS "Fabric Manager has other partitions than Partitions= says."

static const struct {
        StepKind kind;
        int error;
        const char *cause;
} causes[] = {
        { STEP_OVERRIDE, EIO,
          "the kernel accepted the write but shows another override; another program changes it too." },
        { STEP_UNBIND, EBUSY, "it is now bound to another driver; another program binds devices on this node." },
        { STEP_UNBIND, EIO, "the kernel accepted the write, but the device is still bound." },
        { STEP_UNBIND, ENOENT, "the device is gone." },
        { STEP_UNBIND, ENOTEMPTY, "it now has VFs, which would be lost. Remove the VFs first." },
        { STEP_UNBIND, EUSERS, GUEST_OF_XEN },
        { STEP_UNBIND, E2BIG, TOO_MANY_FILES },
        { STEP_UNBIND, ETIMEDOUT, TOO_MANY_FILES },
        { STEP_UNBIND, EHOSTDOWN, NO_HOLDERS },
        { STEP_BIND, EBUSY, "it is now bound to another driver, or a guest has a member of its IOMMU group." },
        { STEP_BIND, ENODEV,
          "the driver did not bind it when the kernel probed. Check that its module is loaded, and see the kernel "
          "log." },
        { STEP_BIND, ENOLINK, ALL_ONES },
        { STEP_BIND, EREMCHG, OTHER_DEVICE },
        { STEP_BIND, EINVAL, "the kernel does not know the address." },
        { STEP_RUNTIME_PM, EIO, SHOWS_ANOTHER },
        { STEP_D3COLD, EIO, SHOWS_ANOTHER },
        { STEP_AUTOPROBE, EIO, SHOWS_ANOTHER },
        { STEP_REMOVE_VFS, ENOENT,
          "the PF has no driver, or its driver sets the number of VFs only when it is loaded (mlx4_core: its module "
          "option num_vfs)." },
        { STEP_REMOVE_VFS, EBUSY, "another program changed the number of VFs, or bound one of them, meanwhile." },
        { STEP_REMOVE_VFS, EPERM, "the PF's driver reports that guests use VFs. Stop these guests first." },
        { STEP_REMOVE_VFS, EIO, "the kernel accepted the write, but the VFs still exist. See the kernel log." },
        { STEP_NUMVFS, ENOENT,
          "the PF has no driver, or its driver creates VFs only when it is loaded (mlx4_core: set its module option "
          "num_vfs)." },
        { STEP_NUMVFS, ENOMEM,
          "not enough MMIO space or bus numbers for VFs; try pci=realloc on the kernel command line, or the firmware "
          "setup." },
        { STEP_NUMVFS, ENOSPC,
          "no MSI-X vectors are left for so many VFs; ask for fewer, or raise them in the firmware setup." },
        { STEP_NUMVFS, ERANGE, "the PF supports fewer VFs; ConnectX: raise NUM_OF_VFS in its firmware configuration." },
        { STEP_NUMVFS, EBUSY, "it already has another number of VFs. Stop the users of these VFs first." },
        { STEP_NUMVFS, EIO,
          "the kernel created fewer VFs than requested; these were removed again. See the kernel log." },
        { STEP_RESET, ENOENT, "the kernel has no reset method for it. " ALLOW_NO_RESET },
        { STEP_RESET, ENOTTY,
          "none of its reset methods worked, or it did not come back in time. See the kernel log. " ALLOW_NO_RESET },
        { STEP_RESET, EINVAL, "the kernel does not offer it this method. Correct ResetMethod= of its pool." },
        { STEP_RESET, EAGAIN, "another process holds the lock of the device." },
        { STEP_RESET, ENOTEMPTY, "it now has VFs, which would be reset too. Remove the VFs first." },
        { STEP_RESET, EUSERS, GUEST_OF_XEN },
        { STEP_RESET, EIO, "it did not come back from its reset." },
        { STEP_RESET, ETIMEDOUT, HANGS },
        { STEP_RESET, ENOLINK, ALL_ONES },
        { STEP_RESET, EREMCHG, OTHER_DEVICE },
        { STEP_CHECK, EIO, ALL_ONES },
        { STEP_CHECK, ENXIO, OTHER_DEVICE },
        { STEP_CHECK, ETIMEDOUT, HANGS },
        { STEP_CHECK, EBADE,
          "it had fatal PCI Express errors since it was allocated. See the kernel log, and its aer_dev_fatal." },
        { STEP_CHECK_HEALTH, ENOLINK, ALL_ONES },
        { STEP_CHECK_HEALTH, EREMCHG, OTHER_DEVICE },
        { STEP_CHECK_GPU, ENOTRECOVERABLE, "the remapping of a row of its memory has failed. Replace the card." },
        { STEP_CHECK_GPU, EUCLEAN,
          "a row of its memory waits for its remapping, which takes a reset: nvidia-smi --gpu-reset." },
        { STEP_CHECK_GPU, EBADE,
          "its SRAM had more uncorrectable ECC errors than NVIDIA's threshold. Run NVIDIA's field diagnostic, or "
          "replace "
          "the card." },
        { STEP_CHECK_GPU, ENOLINK, "Fabric Manager has not accepted the GPU. See its log, and nvidia-smi -q." },
        { STEP_CHECK_GPU, ENODEV, "NVIDIA's driver has lost it. See the kernel log." },
        { STEP_CHECK_GPU, ETIMEDOUT, "NVIDIA's driver does not answer. See the kernel log." },
        { STEP_CLEAN, ETIMEDOUT, "the command of its pool did not end in time." },
        { STEP_CLEAN, EPERM, "passthroughd-root refuses to run the command of its pool. See its log." },
        { STEP_CLEAN, ENOENT, "the command of its pool does not exist." },
        { STEP_CLEAN, ENOSYS, "systemd is not there to run the command of its pool." },
        { STEP_STOP_SERVICE, ETIMEDOUT, "the service did not stop in time. See its log." },
        { STEP_STOP_SERVICE, EIO, "systemd reports that the stop failed. See the log of the service." },
        { STEP_STOP_SERVICE, EPERM, "systemd does not allow it." },
        { STEP_CHECK_IDLE, E2BIG, TOO_MANY_FILES },
        { STEP_CHECK_IDLE, EHOSTDOWN, NO_HOLDERS },
        { STEP_MAKE_REGION, EEXIST,
          "a file of that name in /dev/shm is not the daemon's, or a member of SharedMemoryGroup= changed its size. "
          "Find "
          "the owner of the file, then remove it." },
        { STEP_MAKE_REGION, ENOSPC, "/dev/shm is full, or no hugepages of that size are free." },
        { STEP_MAKE_REGION, ENOMEM, "the node has no memory of that page size left." },
        { STEP_MAKE_REGION, EBUSY, "the kernel keeps migrating its memory, so its node cannot be determined." },
        { STEP_MAKE_REGION, EXDEV, "its memory is on another node." },
        { STEP_MAKE_REGION, ENOTSUP, "/dev/shm is not a tmpfs." },
        { STEP_MAKE_REGION, ENODEV, "no hugetlbfs with pages of that size is mounted on /dev/hugepages*." },
        { STEP_MAKE_REGION, ENOENT, "there is no /dev/shm." },
        { STEP_MAKE_REGION, ENOSYS, "shared memory on a chosen node needs Linux 5.14 or later." },
        { STEP_MAKE_REGION, ESRCH, "the group in SharedMemoryGroup= does not exist." },
        { STEP_MAKE_REGION, EINVAL, "the kernel has no such NUMA node." },
        { STEP_VGPU, EBUSY, "another program gave it a vGPU meanwhile." },
        { STEP_VGPU, EPERM, "a process has it open." },
        { STEP_VGPU, EINVAL, NO_VGPU_ROOM },
        { STEP_VGPU, ENOSPC, NO_VGPU_ROOM },
        { STEP_VGPU, EUSERS, NO_VGPU_ROOM },
        { STEP_VGPU, EEXIST, "another mediated device has the UUID of its vGPU." },
        { STEP_VGPU, EIO, "the driver refused it, or accepted it without effect. See the kernel log." },
        { STEP_VGPU, ENOENT, "it is not on the vendor's driver any more." },
        { STEP_CHECK_UNUSED, EBUSY, "a process has it open." },
        { STEP_CHECK_UNUSED, E2BIG, TOO_MANY_FILES },
        { STEP_CHECK_UNUSED, EHOSTDOWN, NO_HOLDERS },
        { STEP_ACTIVATE, ELIBACC, "libnvfm.so.1 is not installed. It is in the SDK package of Fabric Manager." },
        { STEP_ACTIVATE, ENOTCONN, "Fabric Manager does not answer at the address in Manager=." },
        { STEP_ACTIVATE, ETIMEDOUT, "Fabric Manager does not answer in time. See its log." },
        { STEP_ACTIVATE, EHOSTDOWN, "passthroughd-root does not answer. See its log." },
        { STEP_ACTIVATE, EAGAIN, "Fabric Manager is not ready yet. Try again in a minute." },
        { STEP_ACTIVATE, EBUSY, "Fabric Manager says that a GPU of it is in another active partition." },
        { STEP_ACTIVATE, EIO, "Fabric Manager reports that NVLinks do not work. See its log." },
        { STEP_ACTIVATE, ESTALE, "Fabric Manager reports success, but its list shows the partition as before." },
        { STEP_ACTIVATE, EOPNOTSUPP, "Fabric Manager does not share the NVSwitches. Set FABRIC_MODE=1." },
        { STEP_ACTIVATE, EPROTO, "libnvfm.so.1 supports other versions of its structures." },
        { STEP_ACTIVATE, ENOENT, OTHER_PARTITIONS },
        { STEP_ACTIVATE, EXDEV, OTHER_PARTITIONS },
        { STEP_ACTIVATE, EPERM, "the configuration has no such partition, or no Manager=. Correct [Fabric]." },
        { STEP_ACTIVATE, EREMOTEIO, "Fabric Manager reports an error. See its log." },
        { STEP_ATTRIBUTES, EIO,
          "the kernel accepted it, but shows another value; the PF's firmware or another program set that value." },
        { STEP_ATTRIBUTES, ENODEV, "the PF has no such VF any more." },
        { STEP_ATTRIBUTES, EPERM,
          "the driver or the card's firmware does not allow it, or the daemon has no CAP_NET_ADMIN." },
        { STEP_ATTRIBUTES, EINVAL, "the PF's driver rejects this value." },
        { STEP_ATTRIBUTES, EPROTONOSUPPORT, "the PF's driver does not support this VLAN protocol." },
        { STEP_ATTRIBUTES, EOPNOTSUPP, "the PF's driver cannot set one of these attributes." },
        { STEP_ATTRIBUTES, EADDRNOTAVAIL, "the subnet manager did not give the port this partition key." },
        { STEP_ATTRIBUTES, EPROTO, "the kernel's answer could not be parsed." },
        { STEP_ATTRIBUTES, EBUSY, "the PF's interface is down or busy; bring it up." },
};

/* Returns as text the attributes of the step that the PF does not offer. `found`: the attributes that the PF offers.
 * NULL when the PF offers them all, when `found` is NULL, or when out of memory. */
static char *lacking(const Step *s, const VfAttributes *found) {
        VfAttributes to = s->vf.attributes;

        if (!found)
                return NULL;
        vf_attributes_keep(&to, ~found->set);
        return to.set != 0 ? vf_attributes_format(&to) : NULL;
}

const char *step_cause(const Step *s, int error) {
        StepKind kind = step_gives_attributes(s) ? STEP_ATTRIBUTES : step_is_of_fabric(s) ? STEP_ACTIVATE : s->kind;

        for (size_t i = 0; i < ELEMENTSOF(causes); i++)
                if (causes[i].kind == kind && causes[i].error == -error)
                        return causes[i].cause;
        return error == -ECANCELED ? BESIDE_HANGS : NULL;
}

char *step_failure(const Step *s, int error, const VfAttributes *found) {
        _cleanup_free_ char *missing = error == -EOPNOTSUPP ? lacking(s, found) : NULL;
        _cleanup_free_ char *what = step_describe(s);
        const char *cause = step_cause(s, error);

        if (missing)
                return string_format("Failed to %s: the PF's driver offers no way to set %s%s%s.", what ?: "do a step",
                                     missing,
                                     found->set == 0 ? ", nor any other attribute; check that its network interface "
                                                       "exists"
                                                     : "",
                                     found->set == 0 && strstr(missing, "guid=") ? ", which ib_ipoib creates" : "");
        if (error == -ECANCELED)
                return string_format("Nothing was done to %s: %s", what ?: "do a step", cause);
        return cause ? string_format("Failed to %s: %s", what ?: "do a step", cause)
                     : string_format("Failed to %s: %s.", what ?: "do a step", strerror(-error));
}

char *step_undo_failure(const Step *s, int error) {
        _cleanup_free_ char *what = step_is_of_fabric(s) ? string_format("NVLink partition %u", s->partition)
                                    : step_is_of_region(s)
                                            ? string_format("the shared memory '%s'", s->memory.region.name)
                                            : string_format("%s", PCI_ADDRESS_STR(s->device));

        return string_format("Undoing it failed too: %s is not restored (%s).", what ?: "a device", strerror(-error));
}

char *step_failure_with_status(const Step *s, int status) {
        _cleanup_free_ char *what = step_describe(s);

        return string_format("Failed to %s: %s ended with %s %d. See its log.", what ?: "do a step", s->clean.command,
                             status > 128 ? "signal" : "status", status > 128 ? status - 128 : status);
}

char *step_failure_in_switchdev(const Step *s, int error, const VfAttributes *found, const char *representor) {
        _cleanup_free_ char *missing = lacking(s, found);
        _cleanup_free_ char *what = step_describe(s);

        /* Switchdev mode is not the reason for attributes that are missing while the PF offers others. */
        if (error != -EOPNOTSUPP || (missing && found->set != 0))
                return step_failure(s, error, found);
        return string_format("Failed to %s: the PF's eswitch is in switchdev mode, in which VLAN, QoS and spoof check "
                             "are set on the VF's representor%s%s%s and trust cannot be. Ask without them and set them "
                             "there, or change the mode while there are no VFs: devlink dev eswitch set pci/%s mode "
                             "legacy.",
                             what ?: "do a step", representor ? ", " : "", representor ? QUOTABLE(representor) : "",
                             representor ? "," : "", PCI_ADDRESS_STR(s->device));
}

const char *step_hang(const Step *s) {
        return s->kind == STEP_REMOVE_VFS || s->kind == STEP_NUMVFS
                       ? "It may hold the kernel's lock for PCI rescan and removal. Until it finishes, a change of VFs "
                         "of any PF, a PCI rescan, hot-plug, and unbinding the driver of a PF may also block, and so "
                         "does every reader of its sriov_numvfs."
                       : NULL;
}
