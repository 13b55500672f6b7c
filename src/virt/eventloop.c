/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "eventloop.h"

#include <libvirt/libvirt.h>
#include <sys/epoll.h>

#include "util/cleanup.h"
#include "util/strings.h"

/* A descriptor or timer that libvirt watches, and names by the id. */
typedef struct Watch {
        int id;
        sd_event_source *source;
        virEventHandleCallback on_ready;
        virEventTimeoutCallback on_timeout;
        int timeout; /* of a timer: milliseconds; negative: off */
        void *opaque;
        virFreeCallback free_opaque;
} Watch;

static sd_event *loop;
static Watch **watches;
static size_t n_watches;
static int last_id;

static const struct {
        int libvirt;
        uint32_t epoll;
} event_names[] = {
        { VIR_EVENT_HANDLE_READABLE, EPOLLIN },
        { VIR_EVENT_HANDLE_WRITABLE, EPOLLOUT },
        { VIR_EVENT_HANDLE_ERROR, EPOLLERR },
        { VIR_EVENT_HANDLE_HANGUP, EPOLLHUP },
};

static uint32_t to_epoll(int events) {
        uint32_t mask = 0;

        for (size_t i = 0; i < ELEMENTSOF(event_names); i++)
                if (events & event_names[i].libvirt)
                        mask |= event_names[i].epoll;
        return mask;
}

static int from_epoll(uint32_t mask) {
        int events = 0;

        for (size_t i = 0; i < ELEMENTSOF(event_names); i++)
                if (mask & event_names[i].epoll)
                        events |= event_names[i].libvirt;
        return events;
}

static Watch *find(int id) {
        for (size_t i = 0; i < n_watches; i++)
                if (watches[i]->id == id)
                        return watches[i];
        return NULL;
}

static int on_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Watch *w = userdata;

        w->on_ready(w->id, fd, from_epoll(revents), w->opaque);
        return 0;
}

static int arm(Watch *w) {
        int r = sd_event_source_set_enabled(w->source, w->timeout < 0 ? SD_EVENT_OFF : SD_EVENT_ONESHOT);

        return r < 0 || w->timeout < 0 ? r : sd_event_source_set_time_relative(w->source, (uint64_t) w->timeout * 1000);
}

/* Calls libvirt's callback. A timer of libvirt repeats; the callback may remove or change it. */
static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Watch *w = userdata;
        int id = w->id;

        w->on_timeout(id, w->opaque);
        w = find(id);
        return w ? arm(w) : 0;
}

/* Frees libvirt's data and the watch. Runs in a later turn of the loop than remove_watch(), because libvirt may hold a
 * lock while it calls remove_watch(), and free_opaque() may need that lock. */
static int on_removed(sd_event_source *source, void *userdata) {
        Watch *w = userdata;

        if (w->free_opaque)
                w->free_opaque(w->opaque);
        sd_event_source_disable_unref(w->source);
        free(w);
        return 0;
}

static Watch *new_watch(void *opaque, virFreeCallback free_opaque) {
        Watch *w = ARRAY_RESERVE(watches, n_watches) < 0 ? NULL : malloc(sizeof(*w));

        if (w)
                *w = (Watch) { .id = ++last_id, .opaque = opaque, .free_opaque = free_opaque };
        return w;
}

/* Adds `w` to the list. r: the result of creating the event source of `w`; if it is negative, frees `w` instead.
 * Returns the id of `w`, or -1. */
static int enter(Watch *w, int r) {
        if (r < 0) {
                sd_event_source_disable_unref(w->source);
                free(w);
                return -1;
        }
        watches[n_watches++] = w;
        return w->id;
}

static int remove_watch(int id) {
        Watch *w = find(id);
        int r;

        if (!w)
                return -1;
        for (size_t i = 0; i < n_watches; i++)
                if (watches[i] == w)
                        watches[i] = watches[--n_watches];
        w->source = sd_event_source_disable_unref(w->source);
        r = sd_event_add_defer(loop, &w->source, on_removed, w);
        return r < 0 ? -1 : 0;
}

static int add_handle(int fd, int events, virEventHandleCallback callback, void *opaque, virFreeCallback free_opaque) {
        Watch *w = new_watch(opaque, free_opaque);

        if (!w)
                return -1;
        w->on_ready = callback;
        return enter(w, sd_event_add_io(loop, &w->source, fd, to_epoll(events), on_ready, w));
}

static void update_handle(int id, int events) {
        Watch *w = find(id);

        if (w)
                (void) sd_event_source_set_io_events(w->source, to_epoll(events));
}

static int add_timeout(int milliseconds, virEventTimeoutCallback callback, void *opaque, virFreeCallback free_opaque) {
        Watch *w = new_watch(opaque, free_opaque);
        int r;

        if (!w)
                return -1;
        w->on_timeout = callback;
        w->timeout = milliseconds;
        r = sd_event_add_time_relative(loop, &w->source, CLOCK_MONOTONIC, 0, 0, on_timeout, w);
        return enter(w, r < 0 ? r : arm(w));
}

static void update_timeout(int id, int milliseconds) {
        Watch *w = find(id);

        if (!w)
                return;
        w->timeout = milliseconds;
        (void) arm(w);
}

void eventloop_register(sd_event *event) {
        loop = event;
        virEventRegisterImpl(add_handle, update_handle, remove_watch, add_timeout, update_timeout, remove_watch);
}
