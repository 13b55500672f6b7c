/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/health.h"

#include <errno.h>
#include <inttypes.h>

#include "util/strings.h"

void health_list_done(HealthList *l) {
        free(l->devices);
        *l = (HealthList) { 0 };
}

Health *health_list_find(const HealthList *l, const PciDevice *dev) {
        bool found = false;
        size_t i = l ? PCI_ADDRESS_FIND(l->devices, l->n, dev->address, &found) : 0;

        return found && l->devices[i].instance == dev->instance ? &l->devices[i] : NULL;
}

Health *health_list_add(HealthList *l, const PciDevice *dev) {
        bool found;
        size_t i = PCI_ADDRESS_FIND(l->devices, l->n, dev->address, &found);

        if (!found) {
                if (ARRAY_RESERVE(l->devices, l->n) < 0)
                        return NULL;
                memmove(&l->devices[i + 1], &l->devices[i], (l->n++ - i) * sizeof(*l->devices));
        } else if (l->devices[i].instance == dev->instance) {
                return &l->devices[i];
        }
        l->devices[i] = (Health) { .address = dev->address, .instance = dev->instance };
        return &l->devices[i];
}

static const char *cause(const HealthReading *r) {
        if (r->error == -EIO)
                return r->cold ? "its config space reads all ones, and it does not leave D3cold: it has no power."
                               : "its config space reads all ones: it fell off the bus, or has no power.";
        if (r->error == -ENXIO)
                return "another device answers at its address.";
        return r->power_error ? "the kernel cannot change its power state." : NULL;
}

/* Stores the count, and returns the number of fatal errors above the baseline. Before that, sets the baseline to the
 * count in three cases: it is the first count, the count went down, or a rescan finds no new errors. */
static uint64_t count_fatal(Health *h, uint64_t fatal, HealthTrigger why) {
        /* A lower count means that the kernel's counters were reset. */
        if (!h->counted || fatal < h->fatal || (why == HEALTH_DUE_RESCAN && fatal == h->fatal))
                h->fatal_before = fatal;
        h->counted = true;
        h->fatal = fatal;
        return fatal - h->fatal_before;
}

int health_evaluate(Health *h, const HealthReading *r, HealthTrigger why, char **ret) {
        const char *dead = cause(r);
        Health now = *h;
        uint64_t fatal = 0;
        char *text = NULL;

        if (!dead && r->error != 0)
                return -ENODATA;
        if (r->counted)
                fatal = count_fatal(&now, r->fatal, why);
        if (dead && string_replace(&text, "%s is unhealthy: %s", PCI_ADDRESS_STR(h->address), dead) < 0)
                return -ENODATA;
        if (!dead && fatal > 0 &&
            string_replace(&text, "%s is unhealthy: it had %" PRIu64 " fatal PCI Express errors.",
                           PCI_ADDRESS_STR(h->address), fatal) < 0)
                return -ENODATA;
        *h = now;
        if (!text)
                return 0;
        *ret = text;
        return 1;
}

int health_parse_errors(const char *text, uint64_t *ret) {
        const char *total = strstr(text, "TOTAL_ERR_"), *value = total ? strchr(total, ' ') : NULL;
        _cleanup_free_ char *word = value ? strndup(value + 1, strcspn(value + 1, "\n")) : NULL;

        return word && parse_unsigned(word, UINT64_MAX, ret) == 0 ? 0 : -EINVAL;
}
