/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who has a device in use: the question, and the answer in words. */

#include "host/holders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "host/holders-internal.h"
#include "util/strings.h"

int holder_found(Holder *ret, const char *remedy, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(ret->text, sizeof(ret->text), format, ap);
        va_end(ap);
        (void) snprintf(ret->remedy, sizeof(ret->remedy), "%s", remedy);
        return 1;
}

static bool ends_with(const char *s, const char *end) {
        size_t n = strlen(s), m = strlen(end);

        return n >= m && streq(s + n - m, end);
}

static void describe_process(Holder *h, bool on_vfio) {
        char others[48] = "";

        if (h->others > 0)
                (void) snprintf(others, sizeof(others), " and %u other%s", h->others, h->others > 1 ? "s" : "");
        (void) snprintf(h->text, sizeof(h->text), "process %d (%s%s%s)%s", h->pid, h->command, h->unit[0] ? ", " : "",
                        h->unit, others);
        if (on_vfio)
                (void) snprintf(h->remedy, sizeof(h->remedy), "Stop the guest first.");
        else if (strstr(h->unit, " container "))
                (void) snprintf(h->remedy, sizeof(h->remedy), "Stop the container first.");
        else if (ends_with(h->unit, ".service") && !strchr(h->unit, ' '))
                (void) snprintf(h->remedy, sizeof(h->remedy), "Stop the service first: systemctl stop %s.", h->unit);
        else
                (void) snprintf(h->remedy, sizeof(h->remedy), "End it first.");
}

int holders_find(const Sysfs *fs, const HolderQuery *queries, size_t n, Holder *ret) {
        _cleanup_(holder_nodes_done) HolderNodes nodes = { 0 };
        _cleanup_close_ int fd = -1;
        int r = 0;

        *ret = (Holder){ 0 };
        for (size_t i = 0; r == 0 && i < n; i++)
                r = holder_nodes_find(fs, &queries[i], i, &nodes, ret);
        if (r != 0 || nodes.n == 0)
                return r;
        fd = sysfs_open(fs, "proc", O_RDONLY | O_DIRECTORY);
        r = fd < 0 ? fd : holder_search(fd, &nodes, queries, sysfs_root(fs)[0] == '\0', HOLDER_LOOK_USEC, ret);
        if (r > 0)
                describe_process(ret, !queries[ret->device].driver);
        return r;
}
