/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "handouts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "server-internal.h"
#include "util/strings.h"

struct Handout {
        Handout *next;
        const sd_bus *bus; /* the client's connection, or the bus of sender; not dereferenced */
        char *sender;      /* NULL: a peer */
        uint32_t uid;
        uint64_t size;
        int text; /* another open file than the one that was sent */
};

static Handout *handout_free(Handout *h) {
        if (!h)
                return NULL;
        free(h->sender);
        cleanup_close(&h->text);
        free(h);
        return NULL;
}
DEFINE_CLEANUP(Handout *, handout_free)

/* The kernel grants a write lease only if the memfd is not open elsewhere, mapped, or in flight in a socket. A client
 * cannot change that, as it could with a lock. */
static bool is_closed(const Handout *h) {
        if (fcntl(h->text, F_SETLEASE, F_WRLCK) < 0)
                return false;
        (void) fcntl(h->text, F_SETLEASE, F_UNLCK);
        return true;
}

void handouts_sweep(Server *s) {
        for (Handout **i = &s->handouts; *i;) {
                Handout *h = *i;

                if (!is_closed(h)) {
                        i = &h->next;
                        continue;
                }
                *i = h->next;
                handout_free(h);
        }
}

void handouts_done(Server *s) {
        while (s->handouts) {
                Handout *h = s->handouts;

                s->handouts = h->next;
                handout_free(h);
        }
}

static bool is_same_caller(const Handout *a, const Handout *b) {
        if (a->uid != b->uid)
                return false;
        return !caller_is_root(a->uid) || (a->bus == b->bus && streq_ptr(a->sender, b->sender));
}

static bool has_room(const Server *s, const Handout *h) {
        size_t all = 0, of_one = 0;
        uint64_t bytes = 0;

        for (const Handout *i = s->handouts; i; i = i->next)
                if (caller_is_root(i->uid) == caller_is_root(h->uid)) {
                        all++;
                        bytes += i->size;
                        of_one += is_same_caller(i, h);
                }
        if (of_one == 0)
                return all < HANDOUTS_MAX;
        return of_one < HANDOUTS_OF_ONE && all < HANDOUTS_SHARED && bytes + h->size <= HANDOUTS_BYTES;
}

/* Opens the text once more, for reading only. */
static int open_again(int text) {
        char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", text);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int seal(int text) {
        return fcntl(text, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0 ? -errno : 0;
}

int handout_reply(Server *s, sd_bus_message *call, uint32_t uid, int text, uint64_t size) {
        _cleanup_(cleanup_handout_free) Handout *h = calloc(1, sizeof(*h));
        const char *sender = sd_bus_message_get_sender(call);
        _cleanup_close_ int owned = text, fd = -1;
        int r;

        if (!h)
                return -ENOMEM;
        *h = (Handout) { .bus = sd_bus_message_get_bus(call), .uid = uid, .size = size, .text = -1 };
        r = string_copy(&h->sender, sender);
        if (r < 0)
                return r;
        handouts_sweep(s);
        if (!has_room(s, h))
                return -EDQUOT;
        r = seal(owned);
        if (r < 0)
                return r;
        fd = open_again(owned);
        h->text = open_again(owned);
        if (fd < 0 || h->text < 0)
                return MIN(fd, h->text);
        r = sd_bus_reply_method_return(call, "v", "h", fd);
        if (r < 0)
                return r;
        h->next = s->handouts;
        s->handouts = TAKE_PTR(h);
        return 0;
}
