/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects to libvirt read-only, and sends the daemon a record for each change of a domain. */

#include "guests.h"

#include <errno.h>
#include <fcntl.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#include "eventloop.h"
#include "firmware.h"
#include "guest/domain-facts.h"
#include "guest/guest-list.h"
#include "libvirt.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "util/wire.h"

/* The connection to libvirt counts as lost when libvirt answers none of KEEPALIVE_COUNT messages, one each
 * KEEPALIVE_SEC seconds. Each message wakes this process. */
#define KEEPALIVE_SEC   20
#define KEEPALIVE_COUNT 3U

/* How often a starting domain is checked: libvirt sends no event when its start fails. */
#define STARTING_USEC (2 * UINT64_C(1000000))

typedef struct Starting Starting;

typedef struct Reporter {
        sd_event *event;
        virConnect *connection;
        int fd;
        Starting **starting; /* at most GUESTS_MAX */
        size_t n_starting;
} Reporter;

/* A domain that is starting. Each has its own timer, so that the loop handles other events between the checks of two
 * domains. */
struct Starting {
        Reporter *reporter;
        virDomain *domain; /* a reference of its own */
        char uuid[VIR_UUID_STRING_BUFLEN];
        sd_event_source *timer;
};

static void stop(Reporter *r) {
        (void) sd_event_exit(r->event, 0);
}

static void send_record(Reporter *r, GuestRecord kind, const char *text) {
        if (!text || wire_send(r->fd, kind, &(struct iovec) { (char *) text, strlen(text) }, 1) < 0)
                stop(r);
}

static void fail(Reporter *r, const char *reason) {
        send_record(r, GUEST_RECORD_FAILED, reason);
        stop(r);
}

static void fail_with_libvirt(Reporter *r) {
        const virError *error = virGetLastError();

        fail(r, error && error->message ? error->message : "libvirt gives no reason");
}

static bool is_starting(virDomain *domain) {
        int state = VIR_DOMAIN_NOSTATE, reason = 0;

        return virDomainGetState(domain, &state, &reason, 0) >= 0 && state == VIR_DOMAIN_PAUSED &&
               reason == VIR_DOMAIN_PAUSED_STARTING_UP;
}

/* Returns -ENOENT when libvirt's last error means that the domain has ended, otherwise -EIO. After another error, such
 * as a lost connection, the domain may still run. */
static int end_or_error(void) {
        return virGetLastErrorCode() == VIR_ERR_NO_DOMAIN ? -ENOENT : -EIO;
}

/* Formats the record of a running domain. Returns 0, -ENOENT when the domain has ended, or another negative errno. */
static int format_domain(virDomain *domain, const char *uuid, bool starting, char **ret) {
        _cleanup_free_ char *xml = virDomainGetXMLDesc(domain, 0), *record = NULL;
        _cleanup_names_ char **devices = NULL;
        size_t n = 0;
        int r = xml ? domain_facts_places(xml, &devices, &n) : end_or_error();

        if (r < 0)
                return r;
        r = string_replace(&record, "%s\n%s\n%s", uuid, starting ? "starting" : "running", virDomainGetName(domain));
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = string_append(&record, "\n", "%s", devices[i]);
        if (r >= 0 && (n > GUEST_DEVICES_MAX || strlen(record) > GUEST_RECORD_MAX))
                r = -E2BIG;
        if (r >= 0)
                *ret = TAKE_PTR(record);
        return r;
}

static void send_domain(Reporter *r, virDomain *domain);

static int on_check(sd_event_source *source, uint64_t usec, void *userdata) {
        Starting *s = userdata;
        Reporter *r = s->reporter;

        if (is_starting(s->domain)) {
                int error = sd_event_source_set_time_relative(source, STARTING_USEC);

                return error < 0 ? error : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        for (size_t i = 0; i < r->n_starting; i++)
                if (r->starting[i] == s)
                        r->starting[i] = r->starting[--r->n_starting];
        send_domain(r, s->domain);
        sd_event_source_disable_unref(s->timer);
        (void) virDomainFree(s->domain);
        free(s);
        return 0;
}

/* Has the loop check the domain at intervals, and report it again when it is no longer starting, because it runs or its
 * start has failed. Returns 0 or a negative errno. */
static int follow_start(Reporter *r, virDomain *domain, const char *uuid) {
        Starting *s;
        int error;

        for (size_t i = 0; i < r->n_starting; i++)
                if (streq(r->starting[i]->uuid, uuid))
                        return 0;
        if (r->n_starting >= GUESTS_MAX)
                return -E2BIG;
        s = ARRAY_RESERVE(r->starting, r->n_starting) < 0 ? NULL : calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        error = sd_event_add_time_relative(r->event, &s->timer, CLOCK_MONOTONIC, STARTING_USEC, 0, on_check, s);
        if (error < 0) {
                free(s);
                return error;
        }
        s->reporter = r;
        s->domain = domain;
        (void) virDomainRef(domain);
        memcpy(s->uuid, uuid, sizeof(s->uuid));
        r->starting[r->n_starting++] = s;
        return 0;
}

static void send_domain(Reporter *r, virDomain *domain) {
        _cleanup_free_ char *record = NULL;
        char uuid[VIR_UUID_STRING_BUFLEN];
        bool starting;
        int active, error;

        if (virDomainGetUUIDString(domain, uuid) < 0)
                return fail_with_libvirt(r);
        active = virDomainIsActive(domain);
        starting = active > 0 && is_starting(domain);
        error = active > 0 ? format_domain(domain, uuid, starting, &record) : active == 0 ? -ENOENT : end_or_error();
        if (error == 0 && starting && follow_start(r, domain, uuid) < 0)
                return fail(r, "A starting domain cannot be followed: out of memory, or too many domains start");
        if (error == -EIO)
                return fail_with_libvirt(r);
        if (error == -ENOENT)
                return send_record(r, GUEST_RECORD_ENDED, uuid);
        if (error == -ENOMEM)
                return fail(r, "Out of memory");
        if (error < 0)
                return fail(r, "A domain has too many host devices or a malformed document");
        send_record(r, GUEST_RECORD_DOMAIN, record);
}

/* Formats the lines about confidential guests: "sev-snp" if libvirt can run such guests, and "sev-snp-firmware" if
 * there is a firmware for them. A newline precedes each line. The caller frees. When out of memory, lines are missing,
 * or the result is NULL. */
static char *format_security(const LibvirtFeatures *f) {
        char *text = strdup("");
        int r = text ? 0 : -ENOMEM;

        for (Confidential c = CONFIDENTIAL_NONE + 1; r >= 0 && c < _CONFIDENTIAL_MAX; c++) {
                const char *name = confidential_libvirt_name(c);

                r = string_append(&text, "", "%s%s%s%s%s", f->security[c] ? "\n" : "", f->security[c] ? name : "",
                                  f->firmware[c] ? "\n" : "", f->firmware[c] ? name : "",
                                  f->firmware[c] ? FIRMWARE_SUFFIX : "");
        }
        return text;
}

static void send_features(Reporter *r) {
        _cleanup_free_ char *capabilities = virConnectGetDomainCapabilities(r->connection, NULL, NULL, NULL, NULL, 0),
                            *security = NULL, *record = NULL;
        unsigned long libvirt = 0, qemu = 0;
        LibvirtFeatures f;

        if (virConnectGetLibVersion(r->connection, &libvirt) < 0)
                return fail_with_libvirt(r);
        /* virConnectGetVersion() fails on a host without QEMU; qemu is then 0. */
        (void) virConnectGetVersion(r->connection, &qemu);
        f = domain_facts_features(libvirt, qemu, capabilities);
        firmware_find("/", &f);
        security = format_security(&f);
        record = string_format("libvirt %u\nqemu %u%s%s%s%s%s%s", f.libvirt, f.qemu,
                               f.maxphysaddr ? "\nmaxphysaddr" : "", f.driver_model ? "\ndriver-model" : "",
                               f.iommufd ? "\niommufd" : "", f.acpi_nodeset ? "\nacpi-nodeset" : "",
                               f.fwcfg ? "\nfwcfg" : "", security ?: "");
        send_record(r, GUEST_RECORD_FEATURES, record);
}

/* Sends all running domains, and the features, too: firmware, libvirt or QEMU may have changed. */
static void send_all(Reporter *r) {
        virDomain **domains = NULL;
        int n;

        send_features(r);
        n = virConnectListAllDomains(r->connection, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
        if (n < 0)
                return fail_with_libvirt(r);
        send_record(r, GUEST_RECORD_LIST, "");
        for (int i = 0; i < n; i++) {
                send_domain(r, domains[i]);
                (void) virDomainFree(domains[i]);
        }
        free(domains);
        send_record(r, GUEST_RECORD_COMPLETE, "");
}

static int on_lifecycle(virConnect *connection, virDomain *domain, int event, int detail, void *userdata) {
        send_domain(userdata, domain);
        return 0;
}

static void on_device(virConnect *connection, virDomain *domain, const char *alias, void *userdata) {
        send_domain(userdata, domain);
}

static void on_close(virConnect *connection, int reason, void *userdata) {
        static const char *const reasons[] = {
                [VIR_CONNECT_CLOSE_REASON_ERROR] = "The connection to libvirt failed",
                [VIR_CONNECT_CLOSE_REASON_EOF] = "libvirt closed the connection",
                [VIR_CONNECT_CLOSE_REASON_KEEPALIVE] = "libvirt does not answer",
        };

        fail(userdata, reason >= 0 && reason < (int) ELEMENTSOF(reasons) ? reasons[reason] : reasons[0]);
}

/* The daemon asks for a list, or has closed the socket. */
static int on_request(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        _cleanup_wire_ WireMessage request = { 0 };

        if (wire_receive(fd, 0, &request) >= 0)
                send_all(userdata);
        else
                stop(userdata);
        return 0;
}

static int connect_to(Reporter *r, const char *uri) {
        static const int device_events[] = {
                VIR_DOMAIN_EVENT_ID_DEVICE_ADDED,
                VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED,
                VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED,
        };

        r->connection = virConnectOpenReadOnly(uri);
        if (!r->connection || virConnectDomainEventRegisterAny(r->connection, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
                                                               VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle), r, NULL) < 0)
                return -EIO;
        for (size_t i = 0; i < ELEMENTSOF(device_events); i++)
                if (virConnectDomainEventRegisterAny(r->connection, NULL, device_events[i],
                                                     VIR_DOMAIN_EVENT_CALLBACK(on_device), r, NULL) < 0)
                        return -EIO;
        /* libvirt's drivers inside this process have neither a close callback nor keepalive. */
        (void) virConnectRegisterCloseCallback(r->connection, on_close, r, NULL);
        (void) virConnectSetKeepAlive(r->connection, KEEPALIVE_SEC, KEEPALIVE_COUNT);
        return 0;
}

void guests_report(const char *uri, int fd) {
        Reporter r = { .fd = fd };

        libvirt_silence();
        if (sd_event_new(&r.event) < 0)
                return;
        eventloop_register(r.event);
        if (sd_event_add_io(r.event, NULL, fd, EPOLLIN, on_request, &r) < 0)
                return;
        if (connect_to(&r, uri) < 0)
                return fail_with_libvirt(&r);
        send_all(&r);
        (void) sd_event_loop(r.event);
}
