/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/daemon-report.h"

void daemon_report_done(DaemonReport *d) {
        for (size_t i = 0; i < d->n_problems; i++)
                free(d->problems[i]);
        free(d->unreachable);
        free(d->sysroot);
        free(d->config_file);
        free(d->read_only);
        free(d->libvirt_reason);
        free(d->libvirt_version);
        free(d->qemu_version);
        free(d->libvirt_features);
        *d = (DaemonReport) { 0 };
}
