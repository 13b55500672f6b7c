/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: whether guests get their devices by iommufd, which depends on how many they have. */

#include <stdio.h>

#include "check-internal.h"
#include "guest/iommufd.h"

/* "11.3.0" as libvirt's number. 0: unknown */
static unsigned read_version(const char *text) {
        unsigned major, minor, micro;

        if (!text || sscanf(text, "%3u.%3u.%3u", &major, &minor, &micro) != 3)
                return 0;
        return major * 1000000 + minor * 1000 + micro;
}

void check_iommufd(const CheckFacts *facts, CheckReport *report) {
        const DaemonReport *d = facts->daemon;
        const Config *config = facts->policy->config;
        IommufdFacts f = { .mode = config->iommufd,
                           .kernel = facts->policy->inventory->kernel,
                           .xen = config->hypervisor == HYPERVISOR_XEN,
                           .n_devices = 2 };
        IommufdReason several, one;
        _cleanup_free_ char *why = NULL;

        if (!d || d->unreachable || !d->libvirt_version) {
                if (!f.xen && config->iommufd != IOMMUFD_MODE_NO)
                        check_add(
                                report, CHECK_UNKNOWN, NULL,
                                config->iommufd == IOMMUFD_MODE_YES
                                        ? "Iommufd=yes: documents use iommufd. Whether libvirt and QEMU have it is not "
                                          "known."
                                        : "libvirt and QEMU are not known, so documents use no iommufd yet.");
                return;
        }
        f.libvirt = (LibvirtFeatures) { .known = true,
                                        .iommufd = d->libvirt_features && strstr(d->libvirt_features, "iommufd"),
                                        .libvirt = read_version(d->libvirt_version),
                                        .qemu = read_version(d->qemu_version) };
        iommufd_find_cdevs(facts->policy->inventory, &f);
        several = iommufd_choose(&f);
        why = iommufd_explain(&f, several);
        if (!why || !iommufd_is_told(several))
                return;
        if (f.mode == IOMMUFD_MODE_YES && !iommufd_is_used(several))
                return check_add(report, CHECK_WARNING, "Set Iommufd=auto.",
                                 "Iommufd=yes, but guests cannot have iommufd, so there is no document for them. %s",
                                 why);
        if (f.mode == IOMMUFD_MODE_YES && !iommufd_has_peers(&f))
                return check_add(report, CHECK_WARNING, "Set Iommufd=auto.", "Iommufd=yes. %s", why);
        f.n_devices = 1;
        one = iommufd_choose(&f);
        check_add(report, CHECK_OK, NULL, "Guests %s iommufd. %s",
                  iommufd_is_used(several) ? "have"
                  : iommufd_is_used(one)   ? "with several devices do not have"
                                           : "do not have",
                  why);
}
