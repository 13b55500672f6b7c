/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "handouts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include "server-internal.h"
#include "util/strings.h"

struct Handout {
        Handout *next;
        const sd_bus *bus; /* the client's connection, or the bus of sender; not dereferenced */
        char *sender;      /* NULL: a peer */
        uint64_t size;
        int text; /* not the description that was sent */
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

/* The description that was sent holds a shared lock as long as any process has it open, or a socket has it in flight.
 */
static bool is_closed(const Handout *h) {
        return flock(h->text, LOCK_EX | LOCK_NB) >= 0;
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

static bool has_room(const Server *s, const Handout *h) {
        size_t all = 0, of_one = 0;
        uint64_t bytes = 0;

        for (const Handout *i = s->handouts; i; i = i->next)
                if (!i->sender == !h->sender) {
                        all++;
                        bytes += i->size;
                        of_one += i->bus == h->bus && streq_ptr(i->sender, h->sender);
                }
        return of_one < HANDOUTS_OF_ONE && all < HANDOUTS_MAX && (bytes == 0 || bytes + h->size <= HANDOUTS_BYTES);
}

/* Seals the text and opens it once more, for reading only and with a lock. Returns the descriptor. */
static int open_sealed(int text) {
        char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
        _cleanup_close_ int fd = -1;

        if (fcntl(text, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
                return -errno;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", text);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
                return -errno;
        return TAKE_FD(fd);
}

int handout_reply(Server *s, sd_bus_message *call, int text, uint64_t size) {
        _cleanup_(cleanup_handout_free) Handout *h = calloc(1, sizeof(*h));
        const char *sender = sd_bus_message_get_sender(call);
        _cleanup_close_ int owned = text, fd = -1;
        int r;

        if (!h)
                return -ENOMEM;
        *h = (Handout){ .bus = sd_bus_message_get_bus(call), .size = size, .text = TAKE_FD(owned) };
        r = string_copy(&h->sender, sender);
        if (r < 0)
                return r;
        handouts_sweep(s);
        if (!has_room(s, h))
                return -EDQUOT;
        fd = open_sealed(text);
        if (fd < 0)
                return fd;
        r = sd_bus_reply_method_return(call, "v", "h", fd);
        if (r < 0)
                return r;
        h->next = s->handouts;
        s->handouts = TAKE_PTR(h);
        return 0;
}
