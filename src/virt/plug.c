/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaches a host device to a domain, detaches it, or prints the domain's document. */

#include "plug.h"

#include <errno.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#include "eventloop.h"
#include "guest/domain-facts.h"
#include "guest/plug.h"
#include "libvirt.h"
#include "util/fileio.h"
#include "util/strings.h"

typedef struct Plug {
        sd_event *event;
        virConnect *connection;
        virDomain *domain;
        PlugAction action;
        unsigned seconds;
        char *hostdev;
        char device[UUID_STRING_MAX]; /* as domain_facts_hostdev() names it */
        char *alias;                  /* alias of the device in the running domain */
        int documents;                /* what find_documents() returned before the change */
        PlugResult result;            /* how the wait for the guest ended; PLUG_DONE unless it failed */
} Plug;

static PlugResult end(PlugResult result, const char *reason) {
        printf("%s", reason ?: "Out of memory");
        return result;
}

static PlugResult end_with_libvirt(PlugResult result) {
        _cleanup_free_ char *reason = libvirt_last_reason();

        return end(virGetLastErrorCode() == VIR_ERR_NO_DOMAIN ? PLUG_NO_DOMAIN : result, reason);
}

/* Returns 1 when the domain's document has the device, 0 when not, or a negative errno. flags: as for
 * virDomainGetXMLDesc(). */
static int has_device(const Plug *p, unsigned flags) {
        _cleanup_free_ char *xml = virDomainGetXMLDesc(p->domain, flags);
        _cleanup_names_ char **devices = NULL;
        size_t n = 0;
        int r = xml ? domain_facts_devices(xml, &devices, &n) : -EIO;

        for (size_t i = 0; r >= 0 && i < n; i++)
                if (streq(devices[i], p->device))
                        return true;
        return r;
}

/* Returns the documents of the domain that the request must still change, as flags of virDomainAttachDeviceFlags(), or
 * -EIO when they cannot be determined. */
static int find_documents(const Plug *p) {
        int wanted = p->action == PLUG_ATTACH, live = wanted, config = wanted;
        int active = virDomainIsActive(p->domain), persistent = virDomainIsPersistent(p->domain);

        if (active > 0)
                live = has_device(p, 0);
        if (persistent > 0)
                config = has_device(p, VIR_DOMAIN_XML_INACTIVE);
        if (active < 0 || persistent < 0 || live < 0 || config < 0)
                return -EIO;
        return (live == wanted ? 0 : VIR_DOMAIN_AFFECT_LIVE) | (config == wanted ? 0 : VIR_DOMAIN_AFFECT_CONFIG);
}

/* Returns the result after a call of libvirt has failed: PLUG_DONE if no document remains to be changed, PLUG_FAILED if
 * no document has changed since p->documents was set, otherwise PLUG_UNKNOWN. */
static PlugResult end_failed(const Plug *p) {
        _cleanup_free_ char *reason = libvirt_last_reason();
        int after = find_documents(p);

        if (after == 0)
                return PLUG_DONE;
        return end(after == p->documents ? PLUG_FAILED : PLUG_UNKNOWN, reason);
}

static PlugResult attach(const Plug *p) {
        if (p->documents > 0 && virDomainAttachDeviceFlags(p->domain, p->hostdev, (unsigned) p->documents) < 0)
                return end_failed(p);
        return PLUG_DONE;
}

/* Ends the wait if the running domain no longer has the device, or if that cannot be determined. */
static void look_again(Plug *p) {
        int documents = find_documents(p);

        if (documents < 0 || !(documents & VIR_DOMAIN_AFFECT_LIVE))
                (void) sd_event_exit(p->event, 0);
}

static void stop_waiting(Plug *p, PlugResult result, const char *reason) {
        p->result = end(result, reason);
        (void) sd_event_exit(p->event, 0);
}

static int on_lifecycle(virConnect *connection, virDomain *domain, int event, int detail, void *userdata) {
        look_again(userdata);
        return 0;
}

static void on_removed(virConnect *connection, virDomain *domain, const char *alias, void *userdata) {
        look_again(userdata);
}

static void on_removal_failed(virConnect *connection, virDomain *domain, const char *alias, void *userdata) {
        Plug *p = userdata;

        if (streq_ptr(alias, p->alias))
                stop_waiting(p, PLUG_KEPT, "The guest refuses to release the device");
}

static void on_close(virConnect *connection, int reason, void *userdata) {
        stop_waiting(userdata, PLUG_UNKNOWN, "libvirt closed the connection");
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        stop_waiting(userdata, PLUG_KEPT, "The guest has not released the device");
        return 0;
}

/* Subscribes to the domain's events, and starts the timer that ends the wait. Call it before the guest is asked, so
 * that no event is missed. */
static int follow(Plug *p) {
        _cleanup_free_ char *xml = virDomainGetXMLDesc(p->domain, 0);
        const struct {
                int event;
                virConnectDomainEventGenericCallback callback;
        } events[] = {
                { VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle) },
                { VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_removed) },
                { VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED, VIR_DOMAIN_EVENT_CALLBACK(on_removal_failed) },
        };

        p->alias = xml ? domain_facts_alias(xml, p->device) : NULL;
        for (size_t i = 0; i < ELEMENTSOF(events); i++)
                if (virConnectDomainEventRegisterAny(p->connection, p->domain, events[i].event, events[i].callback, p,
                                                     NULL) < 0)
                        return -EIO;
        (void) virConnectRegisterCloseCallback(p->connection, on_close, p, NULL);
        return sd_event_add_time_relative(p->event, NULL, CLOCK_MONOTONIC, p->seconds * UINT64_C(1000000), 0, on_timer,
                                          p);
}

/* Asks the guest to release the device. Waits until the guest has released it or refuses, or until the time is over or
 * the connection is lost. */
static PlugResult detach_live(Plug *p) {
        if (follow(p) < 0)
                return end_with_libvirt(PLUG_FAILED);
        if (virDomainDetachDeviceFlags(p->domain, p->hostdev, VIR_DOMAIN_AFFECT_LIVE) < 0)
                return end_failed(p);
        look_again(p);
        (void) sd_event_loop(p->event);
        return p->result;
}

static PlugResult detach(Plug *p) {
        PlugResult result = p->documents & VIR_DOMAIN_AFFECT_LIVE ? detach_live(p) : PLUG_DONE;
        int documents = result == PLUG_DONE ? find_documents(p) : 0;

        if (documents < 0)
                return end_with_libvirt(PLUG_UNKNOWN);
        if (documents > 0 && virDomainDetachDeviceFlags(p->domain, p->hostdev, VIR_DOMAIN_AFFECT_CONFIG) < 0)
                return end_failed(p);
        return result;
}

static PlugResult change(Plug *p) {
        p->documents = find_documents(p);
        if (p->documents < 0)
                return end_with_libvirt(PLUG_FAILED);
        return p->action == PLUG_ATTACH ? attach(p) : detach(p);
}

static PlugResult describe(const Plug *p) {
        _cleanup_free_ char *xml = virDomainGetXMLDesc(p->domain, 0);

        if (!xml)
                return end_with_libvirt(PLUG_FAILED);
        return strlen(xml) < PLUG_DOCUMENT_MAX ? end(PLUG_DONE, xml) : end(PLUG_FAILED, "The domain is too large");
}

/* Reads the <hostdev> on stdin. Returns false if it is invalid or cannot be read. */
static bool read_hostdev(Plug *p) {
        size_t size;

        return read_all_fd(STDIN_FILENO, PLUG_HOSTDEV_MAX, &p->hostdev, &size) >= 0 &&
               domain_facts_hostdev(p->hostdev, p->device) >= 0;
}

int plug_run(int argc, char *argv[]) {
        Plug p = { .action = argc == 4 ? plug_action_from_string(argv[1]) : _PLUG_ACTION_INVALID };
        uint64_t seconds;

        if (p.action < 0 || parse_unsigned(argv[3], PLUG_SECONDS_MAX, &seconds) < 0)
                return (int) end(PLUG_FAILED, "The arguments are malformed");
        p.seconds = (unsigned) seconds;
        if (p.action != PLUG_DESCRIBE && !read_hostdev(&p))
                return (int) end(PLUG_FAILED, "The text is not the hostdev of one device");
        libvirt_silence();
        if (sd_event_new(&p.event) < 0)
                return (int) end(PLUG_FAILED, NULL);
        eventloop_register(p.event);
        p.connection = virConnectOpen(argv[0]);
        p.domain = p.connection ? virDomainLookupByUUIDString(p.connection, argv[2]) : NULL;
        if (!p.domain)
                return (int) end_with_libvirt(PLUG_FAILED);
        return (int) (p.action == PLUG_DESCRIBE ? describe(&p) : change(&p));
}
