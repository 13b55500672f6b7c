/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: libvirt and QEMU, which the daemon asks. */

#include "check-internal.h"

void check_libvirt(const CheckFacts *facts, CheckReport *report) {
        const DaemonReport *d = facts->daemon;
        const char *features;

        if (!d || d->unreachable) {
                check_add(report, CHECK_UNKNOWN, NULL,
                          d ? "libvirt and QEMU are not known, because passthroughd, which asks them, does not answer."
                            : "libvirt and QEMU are not known for a recorded node.");
                return;
        }
        if (!d->asks_libvirt)
                return;
        if (d->libvirt_reason) {
                check_add(report, CHECK_WARNING,
                          "Start libvirtd, or install libvirt-daemon-system, or set Libvirt= to the libvirt that "
                          "starts the guests. "
                          "passthroughd looks again by itself.",
                          "The running domains are not known: %s", d->libvirt_reason);
                return;
        }
        features = d->libvirt_features ?: "";
        if (d->libvirt_version && !strstr(features, "maxphysaddr"))
                check_add(report, CHECK_WARNING, "Update libvirt to 8.7 or later.",
                          "libvirt %s cannot set the width of guest addresses, so large BARs of GPUs may not fit.",
                          d->libvirt_version);
        else
                check_add(report, CHECK_OK, NULL, "libvirt %s with QEMU %s can do: %s.",
                          d->libvirt_version ?: "(unknown)", d->qemu_version ?: "(unknown)",
                          *features ? features : "nothing that is optional");
}
