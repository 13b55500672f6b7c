/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "journal.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/cleanup.h"

void journal_add_field(FILE *entry, const char *key, const char *value, size_t size) {
        uint64_t length = htole64(size);

        (void) fputs(key, entry);
        if (memchr(value, '\n', size)) {
                /* The length of a value with several lines comes before it. */
                (void) fputc('\n', entry);
                (void) fwrite(&length, sizeof(length), 1, entry);
        } else
                (void) fputc('=', entry);
        (void) fwrite(value, 1, size, entry);
        (void) fputc('\n', entry);
}

int journal_send(const char *entry, size_t size) {
        static const struct sockaddr_un journald = { .sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket" };
        /* Not kept, because child processes close all descriptors. */
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || sendto(fd, entry, size, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *) &journald,
                             sizeof(journald)) < 0)
                return -errno;
        return 0;
}
