/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The library is opened when it is wanted: a node without libvirt needs none, and the daemon itself never has its
 * threads and its memory.
 */

#include "host/libvirt.h"

#include <dlfcn.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/domain-devices.h"
#include "util/cleanup.h"

/* Seconds between attempts to connect: at once, then ever more. */
#define RETRY_MIN      1U
#define RETRY_MAX      30U
/* Seconds between signs of life, and how many may be missed. */
#define ALIVE_INTERVAL 5
#define ALIVE_COUNT    3U

#define FUNCTIONS(F)                                                                                                   \
        F(virEventRegisterDefaultImpl)                                                                                 \
        F(virEventRunDefaultImpl)                                                                                      \
        F(virSetErrorFunc)                                                                                             \
        F(virConnectOpenReadOnly)                                                                                      \
        F(virConnectClose)                                                                                             \
        F(virConnectIsAlive)                                                                                           \
        F(virConnectSetKeepAlive)                                                                                      \
        F(virConnectDomainEventRegisterAny)                                                                            \
        F(virConnectListAllDomains)                                                                                    \
        F(virDomainGetName)                                                                                            \
        F(virDomainGetXMLDesc)                                                                                         \
        F(virDomainFree)

#define POINTER(name) __typeof__(name) *name;
static struct { FUNCTIONS(POINTER) } lib;

typedef struct Follower {
        bool (*report)(const LibvirtReport *r, void *userdata);
        void *userdata;
        bool changed; /* an event came since the last look */
        bool over;    /* nobody listens */
} Follower;

static bool open_library(void) {
        void *handle = dlopen("libvirt.so.0", RTLD_NOW | RTLD_LOCAL);

#define LOOK_UP(name)                                                                                                  \
        if (!handle || !(lib.name = (__typeof__(lib.name)) dlsym(handle, #name)))                                      \
                return false;
        FUNCTIONS(LOOK_UP)
        return true;
}

static void tell(Follower *f, const LibvirtReport *r) {
        f->over = f->over || !f->report(r, f->userdata);
}

/* A domain that ended meanwhile, or whose document makes no sense, has nothing. */
static void tell_domain(Follower *f, virDomainPtr domain) {
        _cleanup_free_ char *xml = lib.virDomainGetXMLDesc(domain, 0);
        _cleanup_free_ PciAddress *devices = NULL;
        LibvirtReport r = { .kind = LIBVIRT_DEVICE };
        size_t n = 0;

        if (!xml || domain_devices_append(xml, &devices, &n) < 0)
                return;
        (void) snprintf(r.domain, sizeof(r.domain), "%s", lib.virDomainGetName(domain));
        for (size_t i = 0; i < n; i++) {
                r.address = devices[i];
                tell(f, &r);
        }
}

static int look(Follower *f, virConnectPtr connection) {
        virDomainPtr *domains;
        int n = lib.virConnectListAllDomains(connection, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);

        if (n < 0)
                return -1;
        tell(f, &(LibvirtReport){ .kind = LIBVIRT_BEGIN });
        for (int i = 0; i < n; i++) {
                tell_domain(f, domains[i]);
                (void) lib.virDomainFree(domains[i]);
        }
        free(domains);
        tell(f, &(LibvirtReport){ .kind = LIBVIRT_END });
        return 0;
}

static void on_lifecycle(virConnectPtr connection, virDomainPtr domain, int event, int detail, void *opaque) {
        ((Follower *) opaque)->changed = true;
}

static void on_device(virConnectPtr connection, virDomainPtr domain, const char *alias, void *opaque) {
        ((Follower *) opaque)->changed = true;
}

/* Before the first look, so that nothing falls between. */
static bool listen_to(Follower *f, virConnectPtr connection) {
        static const int device_events[] = { VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED };
        bool heard = lib.virConnectDomainEventRegisterAny(connection, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
                                                          VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle), f, NULL) >= 0;

        for (size_t i = 0; heard && i < ELEMENTSOF(device_events); i++)
                heard = lib.virConnectDomainEventRegisterAny(connection, NULL, device_events[i],
                                                             VIR_DOMAIN_EVENT_CALLBACK(on_device), f, NULL) >= 0;
        return heard;
}

/* Until the connection is lost. */
static void follow(Follower *f, virConnectPtr connection) {
        /* A connection within the process has none. */
        (void) lib.virConnectSetKeepAlive(connection, ALIVE_INTERVAL, ALIVE_COUNT);
        if (!listen_to(f, connection))
                return;
        f->changed = true;
        while (!f->over && lib.virConnectIsAlive(connection) == 1) {
                if (f->changed) {
                        f->changed = false;
                        if (look(f, connection) < 0)
                                return;
                }
                if (lib.virEventRunDefaultImpl() < 0)
                        return;
        }
}

static void on_error(void *userdata, virErrorPtr error) {
        /* The library would print it. */
}

void libvirt_follow(const char *uri, bool (*report)(const LibvirtReport *r, void *userdata), void *userdata) {
        Follower f = { .report = report, .userdata = userdata };
        unsigned retry = RETRY_MIN;
        bool lost = false;

        if (!open_library() || lib.virEventRegisterDefaultImpl() < 0) {
                tell(&f, &(LibvirtReport){ .kind = LIBVIRT_MISSING });
                return;
        }
        lib.virSetErrorFunc(NULL, on_error);
        while (!f.over) {
                virConnectPtr connection = lib.virConnectOpenReadOnly(uri);

                if (connection) {
                        retry = RETRY_MIN;
                        lost = false;
                        follow(&f, connection);
                        (void) lib.virConnectClose(connection);
                }
                if (!lost)
                        tell(&f, &(LibvirtReport){ .kind = LIBVIRT_LOST });
                lost = true;
                (void) sleep(retry);
                retry = MIN(2 * retry, RETRY_MAX);
        }
}
