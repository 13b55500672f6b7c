/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A libvirt with one domain, preloaded into passthroughd-libvirt. The URI is a directory. Its file "live" is the
 * document of the running domain, "config" the persistent definition. Without "live" the domain does not run, without
 * "config" it is not persistent. The file "does" has words: the hypervisor refuses each request ("refuse-request"),
 * hangs in it ("hang"), or fails after it has changed the running domain ("break"); the guest releases a device later
 * ("guest-is-late"), refuses to ("guest-refuses"), or does nothing ("guest-keeps"); the running domain is still
 * starting ("starting"). Changes of the files send no events. The file "calls" lists each request with its flags.
 */

#include <fcntl.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define LATE_MS 200

static int directory = -1;
static virError last_error;
static virEventAddTimeoutFunc add_timeout;
static virEventUpdateTimeoutFunc update_timeout;
static struct {
        virConnectDomainEventGenericCallback call;
        void *opaque;
} callbacks[VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED + 1];
static char connection, domain; /* only their addresses are used */

static int fail(int code, const char *message) {
        last_error = (virError) { .code = code, .message = (char *) message };
        return -1;
}

/* Returns the text of the file, which the caller frees, or NULL. */
static char *read_text(const char *name) {
        int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
        char *text = fd >= 0 ? calloc(1, 65536) : NULL;

        if (text && read(fd, text, 65535) < 0)
                abort();
        if (fd >= 0)
                (void) close(fd);
        return text;
}

static void write_text(const char *name, int flags, const char *text) {
        int fd = openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                abort();
        (void) close(fd);
}

static bool does(const char *word) {
        char *text = read_text("does");
        bool found = text && strstr(text, word);

        free(text);
        return found;
}

/* Replaces the part of the document from at to end. */
static void replace(const char *name, const char *document, const char *at, const char *end, const char *text) {
        char *changed = NULL;

        if (asprintf(&changed, "%.*s%s%s", (int) (at - document), document, text, end) < 0)
                abort();
        write_text(name, O_TRUNC, changed);
        free(changed);
}

static void add_device(const char *name, const char *hostdev) {
        char *document = read_text(name), *at = strstr(document, "</devices>");

        replace(name, document, at, at, hostdev);
        free(document);
}

/* Removes the <hostdev> whose <source> has the same <address>. */
static void remove_device(const char *name, const char *hostdev) {
        const char *from = strstr(strstr(hostdev, "<source>"), "<address"), *to = strstr(from, "/>");
        char *document = read_text(name), *source = strndup(from, (size_t) (to - from)), *at = NULL;
        const char *found = strstr(document, source);

        for (char *next = document; (next = strstr(next, "<hostdev")) && next < found; next++)
                at = next;
        replace(name, document, at, strstr(found, "</hostdev>") + strlen("</hostdev>"), "");
        free(document);
        free(source);
}

/* Sends an event about the device of the hostdev. */
static void tell(int event, const char *hostdev) {
        virConnectDomainEventDeviceRemovedCallback call =
                (virConnectDomainEventDeviceRemovedCallback) (void (*)(void)) callbacks[event].call;
        const char *alias = strstr(hostdev, "ua-");
        char *name = strndup(alias, strcspn(alias, "'\""));

        call((virConnect *) &connection, (virDomain *) &domain, name, callbacks[event].opaque);
        free(name);
}

static void on_late(int timer, void *opaque) {
        update_timeout(timer, -1); /* runs only once */
        if (does("guest-refuses")) {
                tell(VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED, opaque);
                return;
        }
        remove_device("live", opaque);
        tell(VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, opaque);
}

static bool note(const char *what, unsigned flags) {
        char line[64];

        (void) snprintf(line, sizeof(line), "%s %u\n", what, flags);
        write_text("calls", O_APPEND, line);
        if (does("hang"))
                (void) pause();
        return does("refuse-request");
}

EXPORT int virDomainAttachDeviceFlags(virDomain *d, const char *hostdev, unsigned flags) {
        if (note("attach", flags))
                return fail(VIR_ERR_OPERATION_FAILED, "internal error: no room.\n");
        if (flags & VIR_DOMAIN_AFFECT_LIVE)
                add_device("live", hostdev);
        if (does("break"))
                return fail(VIR_ERR_OPERATION_FAILED, "the disk is full");
        if (flags & VIR_DOMAIN_AFFECT_CONFIG)
                add_device("config", hostdev);
        return 0;
}

EXPORT int virDomainDetachDeviceFlags(virDomain *d, const char *hostdev, unsigned flags) {
        if (note("detach", flags))
                return fail(VIR_ERR_OPERATION_FAILED, "internal error: not now");
        if (flags & VIR_DOMAIN_AFFECT_CONFIG)
                remove_device("config", hostdev);
        if (!(flags & VIR_DOMAIN_AFFECT_LIVE) || does("guest-keeps"))
                return 0;
        if (does("guest-refuses") || does("guest-is-late"))
                (void) add_timeout(LATE_MS, on_late, strdup(hostdev), NULL);
        else
                remove_device("live", hostdev);
        return 0;
}

EXPORT virDomain *virDomainDefineXMLFlags(virConnect *c, const char *xml, unsigned flags) {
        if (note("define", flags)) {
                (void) fail(VIR_ERR_XML_ERROR, "XML error: nonsense.\n");
                return NULL;
        }
        write_text("config", O_TRUNC, xml);
        return (virDomain *) &domain;
}

EXPORT int virDomainCreate(virDomain *d) {
        char *config = read_text("config");

        if (does("refuse-start"))
                return fail(VIR_ERR_OPERATION_FAILED, "internal error: unlucky");
        write_text("live", O_TRUNC, config);
        free(config);
        return 0;
}

EXPORT virConnect *virConnectOpenAuth(const char *uri, virConnectAuth *auth, unsigned flags) {
        return virConnectOpen(uri);
}

EXPORT virConnect *virConnectOpen(const char *uri) {
        directory = open(uri, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory >= 0)
                return (virConnect *) &connection;
        (void) fail(VIR_ERR_NO_CONNECT, "nowhere");
        return NULL;
}

EXPORT virDomain *virDomainLookupByUUIDString(virConnect *c, const char *uuid) {
        char *live = read_text("live"), *config = read_text("config");
        bool found = (live && strstr(live, uuid)) || (config && strstr(config, uuid));

        free(live);
        free(config);
        if (!found)
                (void) fail(VIR_ERR_NO_DOMAIN, "no such domain");
        return found ? (virDomain *) &domain : NULL;
}

EXPORT char *virDomainGetXMLDesc(virDomain *d, unsigned flags) {
        char *text = read_text(flags & VIR_DOMAIN_XML_INACTIVE ? "config" : "live");

        return text || flags ? text : read_text("config");
}

EXPORT int virDomainIsActive(virDomain *d) {
        return faccessat(directory, "live", F_OK, 0) == 0;
}

EXPORT int virDomainIsPersistent(virDomain *d) {
        return faccessat(directory, "config", F_OK, 0) == 0;
}

EXPORT int virDomainGetState(virDomain *d, int *state, int *reason, unsigned flags) {
        bool active = virDomainIsActive(d) > 0, starting = active && does("starting");

        *state = starting ? VIR_DOMAIN_PAUSED : active ? VIR_DOMAIN_RUNNING : VIR_DOMAIN_SHUTOFF;
        *reason = starting ? VIR_DOMAIN_PAUSED_STARTING_UP : 0;
        return 0;
}

EXPORT int virDomainGetUUIDString(virDomain *d, char *uuid) {
        char *document = read_text("config");
        int n = sscanf(strstr(document, "<uuid>"), "<uuid>%36s", uuid);

        free(document);
        return n == 1 ? 0 : fail(VIR_ERR_INTERNAL_ERROR, "no UUID");
}

EXPORT const char *virDomainGetName(virDomain *d) {
        return "guest";
}

EXPORT int virDomainRef(virDomain *d) {
        return 0;
}

EXPORT int virDomainFree(virDomain *d) {
        return 0;
}

EXPORT int virConnectListAllDomains(virConnect *c, virDomain ***domains, unsigned flags) {
        int n = virDomainIsActive((virDomain *) &domain);

        *domains = calloc(2, sizeof(**domains));
        if (!*domains)
                abort();
        if (n > 0)
                (*domains)[0] = (virDomain *) &domain;
        return n;
}

EXPORT virConnect *virConnectOpenReadOnly(const char *uri) {
        return virConnectOpen(uri);
}

EXPORT int virConnectGetLibVersion(virConnect *c, unsigned long *version) {
        *version = 9000000;
        return 0;
}

EXPORT int virConnectGetVersion(virConnect *c, unsigned long *version) {
        *version = 8000000;
        return 0;
}

EXPORT char *virConnectGetDomainCapabilities(virConnect *c, const char *emulator, const char *arch, const char *machine,
                                             const char *type, unsigned flags) {
        return NULL;
}

EXPORT int virConnectSetKeepAlive(virConnect *c, int interval, unsigned count) {
        return 0;
}

EXPORT int virConnectDomainEventRegisterAny(virConnect *c, virDomain *d, int event,
                                            virConnectDomainEventGenericCallback call, void *opaque,
                                            virFreeCallback free_opaque) {
        callbacks[event].call = call;
        callbacks[event].opaque = opaque;
        return event;
}

EXPORT int virConnectRegisterCloseCallback(virConnect *c, virConnectCloseFunc call, void *opaque,
                                           virFreeCallback free_opaque) {
        return 0;
}

EXPORT void virEventRegisterImpl(virEventAddHandleFunc add_handle, virEventUpdateHandleFunc update_handle,
                                 virEventRemoveHandleFunc remove_handle, virEventAddTimeoutFunc add,
                                 virEventUpdateTimeoutFunc update, virEventRemoveTimeoutFunc remove_timeout) {
        add_timeout = add;
        update_timeout = update;
}

EXPORT virError *virGetLastError(void) {
        return &last_error;
}

EXPORT int virGetLastErrorCode(void) {
        return last_error.code;
}
