/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "bus/reply-text.h"

#include <errno.h>
#include <unistd.h>

#include "util/fileio.h"

/* The most bytes of a text in a descriptor. */
#define TEXT_MAX ((size_t) 1 << 30)

static int read_descriptor(sd_bus_message *reply, char **ret) {
        int fd, r = sd_bus_message_read(reply, "h", &fd);

        if (r < 0)
                return r;
        return lseek(fd, 0, SEEK_SET) < 0 ? -errno : read_all_fd(fd, TEXT_MAX, ret, NULL);
}

static int read_string(sd_bus_message *reply, char **ret) {
        const char *text;
        int r = sd_bus_message_read(reply, "s", &text);

        if (r < 0)
                return r;
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

int bus_read_reply_text(sd_bus_message *reply, char **ret) {
        const char *contents;
        char type;
        int r = sd_bus_message_peek_type(reply, &type, &contents);

        if (r > 0 && type == 'v') {
                type = *contents;
                r = sd_bus_message_enter_container(reply, 'v', contents);
        }
        if (r < 0)
                return r;
        return type == 'h' ? read_descriptor(reply, ret) : read_string(reply, ret);
}
