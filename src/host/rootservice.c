/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends the daemon's requests to passthroughd-root. */

#include "host/rootservice.h"

#include <errno.h>

#include "rootservice-internal.h"
#include "util/clock.h"
#include "util/log.h"

/* How long to wait after the deadline: systemd has to start the service, and to kill a command that takes too long. */
#define GRACE_USEC 8000000U

static const char *socket_path = ROOT_SOCKET;

void root_service_use_socket(const char *path) {
        socket_path = path;
}

/* Sends a request and waits for the answer. Returns the result; *ret_message has the whole answer: *ret and the bytes
 * that follow it. -EHOSTDOWN: no answer. -E2BIG: name or payload is too long. */
static int ask_for(RootAction action, const char *name, const void *payload, size_t size, uint64_t end, RootAnswer *ret,
                   WireMessage *ret_message) {
        RootRequest q = { .end = end };
        const struct iovec parts[] = { { &q, sizeof(q) }, { (void *) payload, size } };
        uint64_t now = clock_usec(CLOCK_MONOTONIC);
        _cleanup_close_ int fd = -1;
        int r;

        *ret = (RootAnswer) { 0 };
        if (strlen(name) >= sizeof(q.name) || size > ROOT_PAYLOAD_MAX)
                return -E2BIG;
        strcpy(q.name, name);
        fd = wire_connect(socket_path, (end > now ? end - now : 0) + GRACE_USEC);
        r = fd < 0 ? fd
                   : wire_exchange(fd, (int) action, parts, ELEMENTSOF(parts), sizeof(*ret) + PLUG_DOCUMENT_MAX,
                                   ret_message);
        if (r >= 0 && ret_message->size < sizeof(*ret))
                r = -EBADMSG;
        if (r < 0) {
                log_warning_errno(r, "passthroughd-root does not answer: %m");
                return -EHOSTDOWN;
        }
        memcpy(ret, ret_message->data, sizeof(*ret));
        return ret_message->code;
}

static int ask(RootAction action, const char *name, const void *payload, size_t size, uint64_t end, RootAnswer *ret) {
        _cleanup_wire_ WireMessage m = { 0 };

        return ask_for(action, name, payload, size, end, ret, &m);
}

int root_stop_unit(const char *name, uint64_t end) {
        RootAnswer answer;

        return ask(ROOT_STOP_UNIT, name, NULL, 0, end, &answer);
}

int root_start_unit(const char *name, uint64_t end, bool *ret_asked) {
        RootAnswer answer;
        int r = ask(ROOT_START_UNIT, name, NULL, 0, end, &answer);

        *ret_asked = answer.asked;
        return r;
}

int root_clean(const char *pool, const PciAddress *devices, size_t n, uint64_t end, int *ret_status) {
        RootAnswer answer;
        int r = ask(ROOT_CLEAN, pool, devices, n * sizeof(*devices), end, &answer);

        *ret_status = answer.status;
        return r;
}

int root_set_options(const char *text, uint64_t end) {
        RootAnswer answer;

        return ask(text ? ROOT_SET_OPTIONS : ROOT_REMOVE_OPTIONS, "", text, text ? strlen(text) : 0, end, &answer);
}

int root_set_partition(unsigned id, bool active, uint64_t end) {
        RootAnswer answer;

        return ask(active ? ROOT_ACTIVATE : ROOT_DEACTIVATE, "", &id, sizeof(id), end, &answer);
}

int root_follow_partitions(const unsigned *ids, size_t n, uint64_t active, uint64_t end, FabricReport *ret) {
        PartitionsPayload payload = { .active = active, .n = (uint32_t) n };
        RootAnswer answer;
        int r;

        memcpy(payload.ids, ids, n * sizeof(*ids));
        r = ask(ROOT_FOLLOW, "", &payload, sizeof(payload), end, &answer);
        *ret = answer.fabric;
        return r;
}

static int ask_about_gpu(RootAction action, PciAddress gpu, uint64_t end) {
        RootAnswer answer;

        return ask(action, "", &gpu, sizeof(gpu), end, &answer);
}

int root_read_module(PciAddress gpu, uint64_t end) {
        return ask_about_gpu(ROOT_MODULE, gpu, end);
}

static int ask_about_gpus(RootAction action, const PciAddress *gpus, size_t n, uint64_t end, int32_t *results) {
        RootAnswer answer;
        int r = ask(action, "", gpus, n * sizeof(*gpus), end, &answer);

        memcpy(results, answer.gpus, n * sizeof(*results));
        return r;
}

int root_read_persistence(const PciAddress *gpus, size_t n, uint64_t end, int32_t *results) {
        return ask_about_gpus(ROOT_PERSISTENCE, gpus, n, end, results);
}

int root_set_persistence(PciAddress gpu, uint64_t end) {
        return ask_about_gpu(ROOT_SET_PERSISTENCE, gpu, end);
}

int root_check_health(const PciAddress *gpus, size_t n, uint64_t end, int32_t *results) {
        return ask_about_gpus(ROOT_CHECK_GPUS, gpus, n, end, results);
}

PlugResult root_plug(const PlugRequest *request, char **ret_text) {
        PlugPayload payload = { .action = request->action, .timeout_sec = request->timeout_sec };
        uint64_t patience = (request->timeout_sec + (uint64_t) PLUG_GRACE_SEC) * 1000000U;
        _cleanup_wire_ WireMessage m = { 0 };
        RootAnswer answer;

        *ret_text = NULL;
        if (strlen(request->hostdev) >= sizeof(payload.hostdev))
                return PLUG_FAILED;
        strcpy(payload.hostdev, request->hostdev);
        if (ask_for(ROOT_PLUG, request->uuid, &payload, sizeof(payload), clock_usec(CLOCK_MONOTONIC) + patience,
                    &answer, &m) < 0 ||
            answer.status < 0 || answer.status >= _PLUG_RESULT_MAX ||
            !(*ret_text = strdup((const char *) m.data + sizeof(answer))))
                return PLUG_UNKNOWN;
        return (PlugResult) answer.status;
}

int root_read_xen_guests(uint64_t end, XenGuests *ret) {
        _cleanup_wire_ WireMessage m = { 0 };
        RootAnswer answer;
        int r = ask_for(ROOT_XEN_GUESTS, "", NULL, 0, end, &answer, &m);
        size_t size, n;

        if (r < 0)
                return r;
        size = m.size - sizeof(answer);
        n = size / sizeof(*ret->devices);
        if (n > XEN_GUEST_DEVICES_MAX || n * sizeof(*ret->devices) != size)
                return -EBADMSG;
        ret->devices = calloc(n + 1, sizeof(*ret->devices));
        if (!ret->devices)
                return -ENOMEM;
        memcpy(ret->devices, (const char *) m.data + sizeof(answer), size);
        ret->n = n;
        for (size_t i = 0; i < n; i++)
                ret->devices[i].name[XEN_NAME_MAX - 1] = '\0';
        return 0;
}
