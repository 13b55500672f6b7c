/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/refusal.h"

#include "util/strings.h"
#include "util/stringtable.h"

static const char *const verdict_table[_VERDICT_MAX] = {
        [VERDICT_NONE] = "none",
        [VERDICT_NO_SUCH_DEVICE] = "no-such-device",
        [VERDICT_NOT_IN_POOL] = "not-in-pool",
        [VERDICT_EXCLUDED] = "excluded",
        [VERDICT_BRIDGE] = "bridge",
        [VERDICT_BOOT_VGA] = "boot-vga",
        [VERDICT_HOST_CRITICAL] = "host-critical",
        [VERDICT_NO_IOMMU] = "no-iommu",
        [VERDICT_NO_DRIVER_OVERRIDE] = "no-driver-override",
        [VERDICT_NO_VFIO_DRIVER] = "no-vfio-driver",
        [VERDICT_RESERVED_REGION] = "reserved-region",
        [VERDICT_GROUP_NOT_VIABLE] = "group-not-viable",
        [VERDICT_PF_HAS_VFS] = "pf-has-vfs",
        [VERDICT_PF_ABSENT] = "pf-absent",
        [VERDICT_PF_ALLOCATED] = "pf-allocated",
        [VERDICT_ALLOCATED] = "allocated",
        [VERDICT_STUCK] = "stuck",
        [VERDICT_QUARANTINED] = "quarantined",
        [VERDICT_UNHEALTHY] = "unhealthy",
        [VERDICT_CONTESTED] = "contested",
        [VERDICT_NO_VGPU] = "no-vgpu",
        [VERDICT_MISSING] = "missing",
        [VERDICT_HARDWARE_CHANGED] = "hardware-changed",
        [VERDICT_BUSY] = "busy",
        [VERDICT_INVALID_REQUEST] = "invalid-request",
        [VERDICT_NO_SUCH_POOL] = "no-such-pool",
        [VERDICT_INSUFFICIENT_DEVICES] = "insufficient-devices",
        [VERDICT_INSUFFICIENT_CPUS] = "insufficient-cpus",
        [VERDICT_INSUFFICIENT_MEMORY] = "insufficient-memory",
        [VERDICT_INSUFFICIENT_SLOTS] = "insufficient-slots",
        [VERDICT_SCHEDULED] = "scheduled",
        [VERDICT_NUMA] = "numa",
        [VERDICT_PROXIMITY] = "proximity",
        [VERDICT_NO_FREE_PORT] = "no-free-port",
        [VERDICT_NAME_TAKEN] = "name-taken",
        [VERDICT_NO_SUCH_ALLOCATION] = "no-such-allocation",
        [VERDICT_STALE_GENERATION] = "stale-generation",
        [VERDICT_WRONG_STATE] = "wrong-state",
        [VERDICT_LIMIT] = "limit",
        [VERDICT_READ_ONLY] = "read-only",
        [VERDICT_NOT_SUPPORTED] = "not-supported",
        [VERDICT_VFS_PRESENT] = "vfs-present",
        [VERDICT_INVALID_TEMPLATE] = "invalid-template",
        [VERDICT_NOT_VALIDATED] = "not-validated",
        [VERDICT_NOT_ANSWERED] = "not-answered",
        [VERDICT_CONFIG_REFUSED] = "config-refused",
        [VERDICT_SHARED_MEMORY_TAKEN] = "shared-memory-taken",
};

DEFINE_STRING_TABLE_TO_STRING(verdict, Verdict, _VERDICT_MAX)

void refusal_done(Refusal *r) {
        free(r->message);
        free(r->remedy);
        free(r->nearest);
        *r = (Refusal) { 0 };
}

Verdict refuse(Refusal *ret, Verdict v, const PciAddress *device, const char *remedy, const char *format, ...) {
        Refusal fresh = { .verdict = v };

        if (!ret)
                return v;

        /* NULL when out of memory. The verdict counts all the same. */
        fresh.message = FORMAT_ARGUMENTS(format);
        if (remedy)
                fresh.remedy = strdup(remedy);
        if (device) {
                fresh.has_device = true;
                fresh.device = *device;
        }

        /* Free the old refusal last: the arguments may point into it. */
        refusal_done(ret);
        *ret = fresh;
        return v;
}

Verdict refuse_no_memory(Refusal *ret) {
        return refuse(ret, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
}

char *refusal_text(const Refusal *r) {
        return string_format("%s%s%s%s%s", r->message ?: "Refused.", r->remedy ? " " : "", r->remedy ?: "",
                             r->nearest ? " " : "", r->nearest ?: "");
}

void refusal_move(Refusal *ret, Refusal *from) {
        if (!ret)
                return;
        refusal_done(ret);
        *ret = *from;
        *from = (Refusal) { 0 };
}
