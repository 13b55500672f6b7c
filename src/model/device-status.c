/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/device-status.h"

#include <assert.h>
#include <errno.h>

#include "util/strings.h"

/* Verdict and remedy of each finding. */
static const struct {
        Verdict verdict;
        const char *remedy;
} refusals[_DEVICE_FINDING_MAX] = {
        [DEVICE_FOREIGN] = { VERDICT_CONTESTED, "Shut that guest down, or allocate its devices to it." },
        [DEVICE_ASSIGNED] = { VERDICT_ALLOCATED, "Delete the instance in Nova." },
        [DEVICE_STUCK] = { VERDICT_STUCK, "See the journal for the call it is stuck in; a reboot clears it." },
        [DEVICE_BUSY] = { VERDICT_BUSY, "Wait for the job to end." },
        [DEVICE_UNHEALTHY] = { VERDICT_UNHEALTHY, "See the kernel log. After a reset, power cycle or replacement run "
                                                  "'passthroughctl rescan' to check it again." },
        [DEVICE_LOST] = { VERDICT_UNHEALTHY,
                          "See the kernel log for an Xid error of the GPU. After a reset, power cycle "
                          "or replacement run 'passthroughctl rescan' to check it again." },
        [DEVICE_UNLINKED] = { VERDICT_UNHEALTHY,
                              "See the log of Fabric Manager, which tests the NVLinks when it starts: "
                              "restart it after a reset or replacement of the GPU." },
        [DEVICE_LINKED] = { VERDICT_UNHEALTHY, "Have the program that activated the partition deactivate it; NVIDIA's "
                                               "fmpm does it by hand. Fabric Manager is asked every 10 seconds." },
        [DEVICE_CONTESTED] = { VERDICT_VFS_PRESENT, "Find out what changed the number. 'passthroughctl sriov PF "
                                                    "NUMBER' restores it while no VF is in use." },
};

void device_status_table_done(DeviceStatusTable *t) {
        for (size_t i = 0; i < t->n; i++)
                for (size_t k = 0; k < ELEMENTSOF(t->devices[i].findings); k++)
                        free(t->devices[i].findings[k]);
        free(t->devices);
        *t = (DeviceStatusTable) { 0 };
}

/* Removes the entry at this index if it has no finding. */
static void remove_if_empty(DeviceStatusTable *t, size_t at) {
        for (size_t i = 0; i < _DEVICE_FINDING_MAX; i++)
                if (t->devices[at].findings[i])
                        return;
        t->n--;
        memmove(&t->devices[at], &t->devices[at + 1], (t->n - at) * sizeof(*t->devices));
}

int device_status_set(DeviceStatusTable *t, PciAddress address, DeviceFinding finding, const char *message) {
        _cleanup_free_ char *copy = NULL;
        bool found;
        size_t at = PCI_ADDRESS_FIND(t->devices, t->n, address, &found);

        if (!found && !message)
                return 0;
        if (string_copy(&copy, message) < 0 || (!found && ARRAY_RESERVE(t->devices, t->n) < 0))
                return -ENOMEM;
        if (!found) {
                memmove(&t->devices[at + 1], &t->devices[at], (t->n++ - at) * sizeof(*t->devices));
                t->devices[at] = (DeviceStatus) { .address = address };
        }
        free(t->devices[at].findings[finding]);
        t->devices[at].findings[finding] = TAKE_PTR(copy);
        remove_if_empty(t, at);
        return 0;
}

int device_status_set_contested(DeviceStatusTable *t, PciAddress pf, size_t n_vfs, const char *message) {
        bool found;
        int r;

        assert(message);
        r = device_status_set(t, pf, DEVICE_CONTESTED, message);
        if (r >= 0)
                t->devices[PCI_ADDRESS_FIND(t->devices, t->n, pf, &found)].n_vfs = n_vfs;
        return r;
}

const DeviceStatus *device_status_find(const DeviceStatusTable *t, PciAddress address) {
        bool found = false;
        size_t at = t ? PCI_ADDRESS_FIND(t->devices, t->n, address, &found) : 0;

        return found ? &t->devices[at] : NULL;
}

const char *device_status_get(const DeviceStatusTable *t, PciAddress address, DeviceFinding finding) {
        const DeviceStatus *s = device_status_find(t, address);

        return s ? s->findings[finding] : NULL;
}

Verdict device_status_check(const DeviceStatusTable *t, PciAddress address, DeviceFinding finding, Refusal *ret) {
        const char *message = device_status_get(t, address, finding);

        if (!message)
                return VERDICT_NONE;
        return refuse(ret, refusals[finding].verdict, &address, refusals[finding].remedy, "%s", message);
}

Verdict device_status_check_unhealthy(const DeviceStatusTable *t, PciAddress address, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (DeviceFinding f = DEVICE_UNHEALTHY; v == VERDICT_NONE && f <= DEVICE_LINKED; f++)
                v = device_status_check(t, address, f, ret);
        return v;
}

Verdict device_status_check_blocked(const DeviceStatusTable *t, PciAddress address, Refusal *ret) {
        Verdict v = device_status_check(t, address, DEVICE_STUCK, ret);

        return v != VERDICT_NONE ? v : device_status_check(t, address, DEVICE_BUSY, ret);
}
