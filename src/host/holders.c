/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds holders of devices, and describes them in words. */

#include "host/holders.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "holders-internal.h"
#include "host/xen.h"
#include "util/strings.h"

static bool ends_with(const char *s, const char *end) {
        size_t n = strlen(s), m = strlen(end);

        return n >= m && streq(s + n - m, end);
}

static void describe_subject(const HolderQuery *q, const HolderPart *part, Holder *h) {
        const char *address = PCI_ADDRESS_STR(q->address);

        if (!part)
                (void) snprintf(h->subject, sizeof(h->subject), "%s", address);
        else if (part->is_vf)
                (void) snprintf(h->subject, sizeof(h->subject), "%s, a VF of %s,", PCI_ADDRESS_STR(part->vf), address);
        else
                (void) snprintf(h->subject, sizeof(h->subject), "%s, a mediated device of %s,", part->uuid, address);
        h->has_vf = part && part->is_vf;
        if (h->has_vf)
                h->vf = part->vf;
}

static void describe_process(Holder *h, bool by_vfio) {
        (void) snprintf(h->text, sizeof(h->text), "process %d (%s%s%s)%s", h->pid, h->command, h->unit[0] ? ", " : "",
                        h->unit, AND_MORE(h->others));
        if (by_vfio)
                (void) snprintf(h->remedy, sizeof(h->remedy), "Stop the guest first.");
        else if (strstr(h->unit, " container "))
                (void) snprintf(h->remedy, sizeof(h->remedy), "Stop the container first.");
        else if (ends_with(h->unit, ".service") && !strchr(h->unit, ' '))
                (void) snprintf(h->remedy, sizeof(h->remedy), "Stop the service first: systemctl stop %s.", h->unit);
        else
                (void) snprintf(h->remedy, sizeof(h->remedy), "End the process first.");
}

static int find_process(const Sysfs *fs, const HolderNodes *nodes, const HolderQuery *queries, Holder *ret) {
        const HolderNode *node;
        size_t found;
        int r = holder_ask(fs, nodes, ret, &found);

        if (r <= 0)
                return r;
        node = &nodes->nodes[found];
        describe_subject(&queries[node->device], node->part == HOLDER_NO_PART ? NULL : &nodes->parts[node->part], ret);
        describe_process(ret, strncmp(node->name, "vfio", strlen("vfio")) == 0);
        return 1;
}

/* Finds parts, except of devices whose query has only_parts. Called when no process holds a part. A part counts as use
 * all the same: unbinding the device would remove it, and its creator may need it. */
static int find_parts(const HolderNodes *nodes, const HolderQuery *queries, Holder *ret) {
        const HolderPart *first = NULL;
        char remedy[HOLDER_TEXT_MAX];
        unsigned n = 0;

        for (size_t i = 0; i < nodes->n_parts; i++) {
                const HolderPart *part = &nodes->parts[i];

                if (queries[part->device].only_parts)
                        continue;
                first = first ?: part;
                n += part->is_vf && part->device == first->device;
        }
        if (!first)
                return 0;
        ret->device = first->device;
        describe_subject(&queries[first->device], NULL, ret);
        if (n > 0) {
                (void) snprintf(remedy, sizeof(remedy),
                                "Remove the %s first: echo 0 >/sys/bus/pci/devices/%s/sriov_numvfs.",
                                n > 1 ? "VFs" : "VF", PCI_ADDRESS_STR(queries[first->device].address));
                return holder_found(ret, remedy, "the host: the PF has %u VF%s", n, n > 1 ? "s" : "");
        }
        (void) snprintf(remedy, sizeof(remedy),
                        "Remove the mediated device first: echo 1 >/sys/bus/mdev/devices/%s/remove.", first->uuid);
        return holder_found(ret, remedy, "the host: the device has mediated device %s", first->uuid);
}

static int add_ignored(const HolderQuery *q, size_t device, HolderNodes *nodes) {
        for (size_t i = 0; i < q->n_ignored; i++) {
                HolderIgnored *ignored;

                if (ARRAY_RESERVE(nodes->ignored, nodes->n_ignored) < 0)
                        return -ENOMEM;
                ignored = &nodes->ignored[nodes->n_ignored++];
                *ignored = (HolderIgnored) { .device = device };
                (void) snprintf(ignored->unit, sizeof(ignored->unit), "%s", q->ignored[i]);
        }
        return 0;
}

static const HolderPart *find_vf_part(const HolderNodes *nodes, size_t device, PciAddress vf) {
        for (size_t i = 0; i < nodes->n_parts; i++)
                if (nodes->parts[i].device == device && nodes->parts[i].is_vf &&
                    pci_address_equal(nodes->parts[i].vf, vf))
                        return &nodes->parts[i];
        return NULL;
}

static int describe_guest(const XenGuestDevice *g, Holder *h) {
        if (g->domain == XEN_DOMAIN_UNKNOWN)
                return holder_found(h, "See why xenstore does not answer: xenstore-ls /local/domain.",
                                    "an unknown guest of Xen, or by none: xenstore does not answer");
        return holder_found(h, "Stop the guest first.", "domain %u of Xen (%s)", g->domain, g->name);
}

/* Finds a guest of Xen that has, or may have, one of the devices or one of their VFs. */
static int find_xen_guest(const Sysfs *fs, const HolderNodes *nodes, const HolderQuery *queries, size_t n,
                          Holder *ret) {
        _cleanup_(xen_guests_done) XenGuests guests = { 0 };
        int r = xen_guests_read(fs, &guests);

        for (size_t i = 0; r == 0 && i < n; i++)
                for (size_t k = 0; k < guests.n; k++) {
                        const XenGuestDevice *g = &guests.devices[k];
                        const HolderPart *part = find_vf_part(nodes, i, g->address);

                        if (!part && (queries[i].only_parts || !pci_address_equal(queries[i].address, g->address)))
                                continue;
                        *ret = (Holder) { .device = i, .by_guest = true };
                        describe_subject(&queries[i], part, ret);
                        return describe_guest(g, ret);
                }
        return r;
}

int holders_find(const Sysfs *fs, const HolderQuery *queries, size_t n, Holder *ret) {
        _cleanup_(holder_nodes_done) HolderNodes nodes = { 0 };
        int r = 0;

        *ret = (Holder) { 0 };
        for (size_t i = 0; r == 0 && i < n; i++) {
                r = holder_nodes_find(fs, &queries[i], i, &nodes, ret);
                if (r == 0)
                        r = add_ignored(&queries[i], i, &nodes);
        }
        if (r > 0)
                describe_subject(&queries[ret->device], NULL, ret);
        if (r == 0 && n > 0 && xen_is_dom0(fs))
                r = find_xen_guest(fs, &nodes, queries, n, ret);
        if (r == 0 && nodes.n > 0)
                r = find_process(fs, &nodes, queries, ret);
        return r == 0 ? find_parts(&nodes, queries, ret) : r;
}
