/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plugs devices into a running guest and takes them out. */

#include "executor-plug.h"

#include <errno.h>
#include <stdio.h>

#include "devicefacts.h"
#include "guest/domain-facts.h"
#include "guest/domxml.h"
#include "host/rootservice.h"
#include "util/fileio.h"
#include "util/strings.h"

/* For requests in which libvirt does not wait for the guest, and for the guest to release a device in an undo. */
#define REQUEST_SEC 10U

static const int result_errors[_PLUG_RESULT_MAX] = {
        [PLUG_DONE] = 0, [PLUG_NO_DOMAIN] = 0, [PLUG_FAILED] = -EIO, [PLUG_KEPT] = -EBUSY, [PLUG_UNKNOWN] = -ETIMEDOUT,
};

static int report_failure(size_t i, int error, const char *text, const char *remedy, ReportFunction report,
                          void *userdata) {
        Report failed = { .kind = REPORT_FAILED, .step = (uint32_t) i, .error = error };

        (void) snprintf(failed.message, sizeof(failed.message), "%s%s%s", text, remedy ? " " : "", remedy ?: "");
        (void) report(&failed, userdata);
        return error;
}

static int fail_with_libvirt(const StepList *steps, size_t i, PlugResult result, const char *text,
                             ReportFunction report, void *userdata) {
        _cleanup_free_ char *what = step_describe(&steps->steps[i]), *sentence = NULL;

        (void) string_replace(&sentence, "Failed to %s: %s.", what ?: "do a step", text ?: "libvirt does not answer");
        return report_failure(i, result_errors[result], sentence ?: "Out of memory.",
                              result == PLUG_KEPT ? "Unload its driver in the guest, and detach it again." : NULL,
                              report, userdata);
}

/* 0: unknown, or a vGPU without a PCI device of its own. */
static uint64_t sum_bars(const Sysfs *fs, PciAddress address) {
        _cleanup_(cleanup_device_dir_free) DeviceDir *d = NULL;
        PciDevice dev = { 0 };
        uint64_t sum = 0;

        if (device_dir_open(fs, PCI_ADDRESS_STR(address), &d) < 0 || device_facts_read_bars(d, &dev) < 0)
                return 0;
        free(dev.fault);
        for (size_t i = 0; i < PCI_BARS_MAX; i++)
                sum += dev.bar_size[i];
        return sum;
}

/* Writes the places into those of the steps STEP_PLUG. */
static int choose_places(const Sysfs *fs, const StepList *steps, size_t i, const char *document, PlugPlace *places,
                         ReportFunction report, void *userdata) {
        _cleanup_free_ PciAddress *devices = calloc(steps->n, sizeof(*devices));
        _cleanup_free_ uint64_t *bars = calloc(steps->n, sizeof(*bars));
        _cleanup_free_ GuestFunction *chosen = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };
        size_t n = 0, n_chosen = 0;

        if (!devices || !bars)
                return -ENOMEM;
        for (size_t k = 0; k < steps->n; k++)
                if (steps->steps[k].kind == STEP_PLUG) {
                        devices[n] = steps->steps[k].device;
                        bars[n++] = sum_bars(fs, steps->steps[k].device);
                }
        if (guest_ports_choose(steps->guest, devices, bars, n, document, &chosen, &n_chosen, &refusal) != VERDICT_NONE)
                return report_failure(i, -ENOSPC, refusal.message ?: "Out of memory.", refusal.remedy, report,
                                      userdata);
        for (size_t c = 0; c < n_chosen; c++)
                for (size_t k = 0; k < steps->n; k++)
                        if (steps->steps[k].kind == STEP_PLUG &&
                            pci_address_equal(steps->steps[k].device, steps->guest->devices[chosen[c].device].address))
                                places[k].place = chosen[c];
        return 0;
}

int plug_find_ports(const Sysfs *fs, const StepList *steps, size_t i, PlugPlace *places, ReportFunction report,
                    void *userdata) {
        _cleanup_free_ char *text = NULL;
        PlugResult result = root_plug(&(PlugRequest) { PLUG_DESCRIBE, steps->steps[i].from, "", REQUEST_SEC }, &text);
        const char *iommufd;

        if (result == PLUG_NO_DOMAIN) {
                for (size_t k = 0; k < steps->n; k++)
                        places[k].needless = true;
                return 0;
        }
        if (result != PLUG_DONE)
                return fail_with_libvirt(steps, i, result, text, report, userdata);
        /* One with iommufd and one without would have no peer-to-peer DMA between them. */
        iommufd = domain_facts_iommufd(text);
        for (size_t k = 0; k < steps->n; k++)
                places[k].iommufd = iommufd;
        if (streq_ptr(iommufd, "yes"))
                (void) report(&(Report) { .kind = REPORT_IOMMUFD, .step = (uint32_t) i }, userdata);
        /* Without CPUs there is no document of this package, and libvirt chooses. */
        return steps->guest->n_cells > 0 ? choose_places(fs, steps, i, text, places, report, userdata) : 0;
}

/* Reads back where the domain has the device. */
static void report_place(const StepList *steps, size_t i, ReportFunction report, void *userdata) {
        const Step *s = &steps->steps[i];
        const AllocationDevice *dev = allocation_find_device(steps->guest, s->device);
        Report placed = { .kind = REPORT_PLACED, .step = (uint32_t) i };
        _cleanup_free_ char *text = NULL;
        _cleanup_names_ char **devices = NULL;
        size_t n = 0;

        if (!dev || root_plug(&(PlugRequest) { PLUG_DESCRIBE, s->from, "", REQUEST_SEC }, &text) != PLUG_DONE ||
            domain_facts_places(text, &devices, &n) < 0)
                return;
        for (size_t k = 0; k < n; k++) {
                const char *place = strchr(devices[k], ' ');
                const char *source = ALLOCATION_DEVICE_SOURCE(dev);

                if (!place || strncmp(devices[k], source, strlen(source)) != 0 || devices[k] + strlen(source) != place)
                        continue;
                (void) snprintf(placed.message, sizeof(placed.message), "%s", place + 1);
                (void) report(&placed, userdata);
        }
}

int plug_device(const StepList *steps, size_t i, const PlugPlace *place, ReportFunction report, void *userdata) {
        const Step *s = &steps->steps[i];
        _cleanup_free_ char *chosen = NULL, *placed = NULL, *text = NULL;
        const char *hostdev = s->to;
        PlugResult result;

        if (place->needless)
                return 0;
        if (place->iommufd)
                hostdev = chosen = domxml_hostdev_with_iommufd(hostdev, place->iommufd);
        if (hostdev && place->place.guest.bus > 0)
                hostdev = placed = domxml_place_hostdev(hostdev, &place->place);
        if (!hostdev)
                return -ENOMEM;
        result = root_plug(&(PlugRequest) { PLUG_ATTACH, s->from, hostdev, REQUEST_SEC }, &text);
        if (result == PLUG_DONE)
                report_place(steps, i, report, userdata);
        if (result == PLUG_DONE || result == PLUG_NO_DOMAIN)
                return result == PLUG_DONE;
        return fail_with_libvirt(steps, i, result, text, report, userdata);
}

int plug_undo(const Sysfs *fs _unused_, const Step *s, const VfAttributes *found _unused_) {
        _cleanup_free_ char *text = NULL;

        return result_errors[root_plug(&(PlugRequest) { PLUG_DETACH, s->from, s->to, REQUEST_SEC }, &text)];
}

/* All guests together get half of the timeout of the job. */
static unsigned release_seconds(const StepList *steps) {
        unsigned n = 0;

        for (size_t i = 0; i < steps->n; i++)
                n += steps->steps[i].kind == STEP_UNPLUG;
        return MAX(steps->timeout_sec / 2 / MAX(n, 1U), 1U);
}

int unplug_device(const StepList *steps, size_t i, ReportFunction report, void *userdata) {
        const Step *s = &steps->steps[i];
        _cleanup_free_ char *text = NULL;
        PlugResult result = root_plug(&(PlugRequest) { PLUG_DETACH, s->from, s->to, release_seconds(steps) }, &text);

        return result == PLUG_DONE || result == PLUG_NO_DOMAIN
                       ? 0
                       : fail_with_libvirt(steps, i, result, text, report, userdata);
}
