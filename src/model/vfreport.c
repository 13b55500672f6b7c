/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the PF last reported about each VF, sorted by the VF's address. */

#include <errno.h>

#include "model/vfattr.h"
#include "util/strings.h"

void vf_report_list_done(VfReportList *l) {
        free(l->reports);
        *l = (VfReportList) { 0 };
}

const VfAttributes *vf_report_find(const VfReportList *l, PciAddress vf) {
        bool found;
        size_t at = PCI_ADDRESS_FIND(l->reports, l->n, vf, &found);

        return found ? &l->reports[at].attributes : NULL;
}

int vf_report_set(VfReportList *l, PciAddress vf, const VfAttributes *attributes) {
        bool found;
        size_t at = PCI_ADDRESS_FIND(l->reports, l->n, vf, &found);
        VfReport *r;

        if (!attributes && !found)
                return 0;
        if (!attributes) {
                l->n--;
                memmove(&l->reports[at], &l->reports[at + 1], (l->n - at) * sizeof(*l->reports));
                return 1;
        }
        if (!found) {
                if (ARRAY_RESERVE(l->reports, l->n) < 0)
                        return -ENOMEM;
                memmove(&l->reports[at + 1], &l->reports[at], (l->n - at) * sizeof(*l->reports));
                l->reports[at] = (VfReport) { .vf = vf };
                l->n++;
        }
        r = &l->reports[at];
        if (found && r->attributes.set == attributes->set && vf_attributes_differ(&r->attributes, attributes) == 0)
                return 0;
        r->attributes = *attributes;
        return 1;
}
