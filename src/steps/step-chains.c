/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Divides steps into chains that run in parallel, and computes how long steps may take. */

#include <errno.h>
#include <stdlib.h>

#include "steps/step.h"
#include "util/strings.h"

/* A step that may be slow is given up after this multiple of JobTimeoutSec=. */
#define SLOW 3U

/* The properties of a device that decide which other devices share its chain. */
typedef struct Place {
        PciAddress device, pf; /* pf: for a VF its PF, otherwise the function itself */
        int group, bridge;     /* -1: the device has none */
        size_t chain;          /* index of one device in the chain, the same for all devices of the chain */
} Place;

static Place place_of(const Inventory *inv, PciAddress device) {
        const PciAddress function = pci_address_function(device);
        const PciDevice *dev = inventory_find(inv, function);
        const PciDevice *pf = dev && dev->type == PCI_TYPE_VF ? inventory_find(inv, dev->physfn) : NULL;

        return (Place) { .device = device,
                         .pf = dev && dev->type == PCI_TYPE_VF ? dev->physfn : function,
                         .group = dev ? dev->iommu_group : -1,
                         .bridge = pf    ? pf->parent
                                   : dev ? dev->parent
                                         : -1 };
}

static bool share_chain(const Place *a, const Place *b) {
        return (a->device.domain == b->device.domain && a->device.bus == b->device.bus &&
                a->device.slot == b->device.slot) ||
               pci_address_equal(a->pf, b->pf) || (a->group >= 0 && a->group == b->group) ||
               (a->bridge >= 0 && a->bridge == b->bridge);
}

static void join(Place *places, size_t n, size_t from, size_t to) {
        for (size_t i = 0; i < n; i++)
                if (places[i].chain == from)
                        places[i].chain = to;
}

static int compare(const void *device, const void *place) {
        return pci_address_compare(*(const PciAddress *) device, ((const Place *) place)->device);
}

int steps_set_chains(StepList *l, const Inventory *inv) {
        _cleanup_free_ PciAddress *devices = NULL;
        _cleanup_free_ unsigned *numbers = NULL;
        _cleanup_free_ Place *places = NULL;
        size_t n = 0;
        int r = step_list_devices(l, &devices, &n);

        if (r < 0)
                return r;
        places = calloc(n + 1, sizeof(*places));
        numbers = calloc(n + 1, sizeof(*numbers));
        if (!places || !numbers)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                places[i] = place_of(inv, devices[i]);
                places[i].chain = i;
                for (size_t j = 0; j < i; j++)
                        if (places[i].chain != places[j].chain && share_chain(&places[i], &places[j]))
                                join(places, i + 1, places[i].chain, places[j].chain);
        }
        l->n_chains = 0;
        for (Step *s = l->steps; s < step_list_end(l); s++) {
                const Place *place;

                s->chain = 0;
                if (step_properties[s->kind].alone)
                        continue;
                place = bsearch(&s->device, places, n, sizeof(*places), compare);
                if (numbers[place->chain] == 0)
                        numbers[place->chain] = ++l->n_chains;
                s->chain = numbers[place->chain];
        }
        return 0;
}

/* Counts the STEP_CHECK_GPU of the list. The first of them asks about the GPUs of all, one GPU after the other. */
static unsigned count_gpu_checks(const StepList *l) {
        unsigned n = 0;

        for (size_t i = 0; i < l->n; i++)
                n += l->steps[i].kind == STEP_CHECK_GPU;
        return n;
}

unsigned step_timeout_sec(const StepList *l, const Step *s) {
        const StepLimit limit = step_properties[s->kind].limit;

        if (limit != STEP_LIMIT_QUESTION || l->timeout_sec == 0)
                return limit == STEP_LIMIT_SLOW ? SLOW * l->timeout_sec : l->timeout_sec;
        return MAX(l->timeout_sec, (s->kind == STEP_CHECK_GPU ? count_gpu_checks(l) : 1) * l->question_sec);
}

size_t step_list_part_end(const StepList *l, size_t first) {
        size_t end = first;

        while (end < l->n && (l->steps[end].chain > 0) == (l->steps[first].chain > 0))
                end++;
        return end;
}

static bool is_asked_with_previous(const StepList *l, size_t i) {
        return i > 0 && l->steps[i].kind == STEP_CHECK_GPU && l->steps[i - 1].kind == STEP_CHECK_GPU;
}

/* Returns how many seconds the part of the list may take. If l->parallel is more than 1, that many chains run at a
 * time, and each of them counts as long as the longest chain. */
static unsigned part_timeout_sec(const StepList *l, size_t first, size_t end) {
        unsigned n = 0, all = 0, longest = 0;

        for (unsigned chain = 0; chain <= l->n_chains; chain++) {
                unsigned sec = 0;

                for (size_t i = first; i < end; i++)
                        if (l->steps[i].chain == chain && !is_asked_with_previous(l, i))
                                sec += step_timeout_sec(l, &l->steps[i]);
                n += sec > 0;
                all += sec;
                longest = MAX(longest, sec);
        }
        return l->parallel > 1 ? longest * ((n + l->parallel - 1) / l->parallel) : all;
}

unsigned step_list_timeout_sec(const StepList *l) {
        unsigned sec = 0;

        for (size_t i = 0; i < l->n; i = step_list_part_end(l, i))
                sec += part_timeout_sec(l, i, step_list_part_end(l, i));
        return sec;
}
