/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plugs devices into a running guest, and takes devices from it. */

#include <errno.h>
#include <stdio.h>

#include "devicefacts.h"
#include "executor-run.h"
#include "guest/domain-facts.h"
#include "guest/domxml.h"
#include "host/rootservice.h"
#include "util/fileio.h"
#include "util/strings.h"

/* Time limit of requests that do not wait for the guest, and of the guest's release of a device in an undo. */
#define REQUEST_SEC 10U

static const int result_errors[_PLUG_RESULT_MAX] = {
        [PLUG_DONE] = 0, [PLUG_NO_DOMAIN] = 0, [PLUG_FAILED] = -EIO, [PLUG_KEPT] = -EBUSY, [PLUG_UNKNOWN] = -ETIMEDOUT,
};

static int fail_with_libvirt(const Run *run, const Step *s, PlugResult result, const char *text) {
        _cleanup_free_ char *what = step_describe(s);

        return run_fail(run, s, result_errors[result], "Failed to %s: %s.%s", what ?: "do a step",
                        text ?: "libvirt does not answer",
                        result == PLUG_KEPT ? " Unload its driver in the guest, and detach it again." : "");
}

static PlugResult ask_libvirt(PlugAction action, const Step *s, const char *hostdev, unsigned sec, char **ret_text) {
        return root_plug(&(PlugRequest) { action, s->plug.domain, hostdev, sec }, ret_text);
}

/* Returns the size of all BARs of the device; 0: unknown, or a vGPU that is no PCI device. */
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

/* Chooses where in the guest each STEP_PLUG puts its device. 0 or a negative errno. */
static int choose_places(const Run *run, const Step *s, const char *document) {
        const StepList *steps = run->steps;
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
                        bars[n++] = sum_bars(run->fs, steps->steps[k].device);
                }
        if (guest_ports_choose(steps->guest, devices, bars, n, document, &chosen, &n_chosen, &refusal) != VERDICT_NONE)
                return run_fail(run, s, -ENOSPC, "%s%s%s", refusal.message ?: "Out of memory.",
                                refusal.remedy ? " " : "", refusal.remedy ?: "");
        for (size_t c = 0; c < n_chosen; c++)
                for (size_t k = 0; k < steps->n; k++)
                        if (steps->steps[k].kind == STEP_PLUG &&
                            pci_address_equal(steps->steps[k].device, steps->guest->devices[chosen[c].device].address))
                                run->done[k].place.place = chosen[c];
        return 0;
}

int run_find_ports(const Run *run, const Step *s) {
        _cleanup_free_ char *text = NULL;
        PlugResult result = ask_libvirt(PLUG_DESCRIBE, s, "", REQUEST_SEC, &text);
        const char *iommufd;

        if (result != PLUG_DONE && result != PLUG_NO_DOMAIN)
                return fail_with_libvirt(run, s, result, text);
        /* All devices of a domain must use iommufd, or none: peer-to-peer DMA between the two kinds is not possible. */
        iommufd = result == PLUG_DONE ? domain_facts_iommufd(text) : NULL;
        for (size_t k = 0; k < run->steps->n; k++)
                run->done[k].place = (PlugPlace) { .needless = result == PLUG_NO_DOMAIN, .iommufd = iommufd };
        if (streq_ptr(iommufd, "yes"))
                run_report(run, s, (Report) { .kind = REPORT_IOMMUFD });
        /* A guest without CPUs has no document of this daemon, so libvirt chooses the places. */
        return result == PLUG_DONE && run->steps->guest->n_cells > 0 ? choose_places(run, s, text) : 0;
}

/* Reports where in the guest libvirt has put the device. */
static void report_place(const Run *run, const Step *s) {
        const AllocationDevice *dev = allocation_find_device(run->steps->guest, s->device);
        Report placed = { .kind = REPORT_PLACED };
        _cleanup_free_ char *text = NULL;
        _cleanup_names_ char **devices = NULL;
        size_t n = 0;

        if (!dev || ask_libvirt(PLUG_DESCRIBE, s, "", REQUEST_SEC, &text) != PLUG_DONE ||
            domain_facts_places(text, &devices, &n) < 0)
                return;
        for (size_t k = 0; k < n; k++) {
                const char *place = strchr(devices[k], ' ');
                const char *source = ALLOCATION_DEVICE_SOURCE(dev);

                if (!place || strncmp(devices[k], source, strlen(source)) != 0 || devices[k] + strlen(source) != place)
                        continue;
                (void) snprintf(placed.message, sizeof(placed.message), "%s", place + 1);
                run_report(run, s, placed);
        }
}

int run_plug(const Run *run, const Step *s) {
        const PlugPlace *place = &step_result(run, s)->place;
        _cleanup_free_ char *chosen = NULL, *placed = NULL, *text = NULL;
        const char *hostdev = s->plug.hostdev;
        PlugResult result;

        if (place->needless)
                return 0;
        if (place->iommufd)
                hostdev = chosen = domxml_hostdev_with_iommufd(hostdev, place->iommufd);
        if (hostdev && place->place.guest.bus > 0)
                hostdev = placed = domxml_place_hostdev(hostdev, &place->place);
        if (!hostdev)
                return -ENOMEM;
        result = ask_libvirt(PLUG_ATTACH, s, hostdev, REQUEST_SEC, &text);
        if (result == PLUG_DONE)
                report_place(run, s);
        if (result == PLUG_DONE || result == PLUG_NO_DOMAIN)
                return result == PLUG_DONE;
        return fail_with_libvirt(run, s, result, text);
}

int undo_plug(const Run *run _unused_, const Step *s) {
        _cleanup_free_ char *text = NULL;

        return result_errors[ask_libvirt(PLUG_DETACH, s, s->plug.hostdev, REQUEST_SEC, &text)];
}

/* Returns the time limit of each release, in seconds: all releases together get half of the job's time. */
static unsigned release_seconds(const StepList *steps) {
        unsigned n = 0;

        for (size_t i = 0; i < steps->n; i++)
                n += steps->steps[i].kind == STEP_UNPLUG;
        return MAX(steps->timeout_sec / 2 / MAX(n, 1U), 1U);
}

int run_unplug(const Run *run, const Step *s) {
        _cleanup_free_ char *text = NULL;
        PlugResult result = ask_libvirt(PLUG_DETACH, s, s->plug.hostdev, release_seconds(run->steps), &text);

        return result == PLUG_DONE || result == PLUG_NO_DOMAIN ? 0 : fail_with_libvirt(run, s, result, text);
}
