/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Records a machine as a .tree file: a header that tells how it was recorded, then all parts. */

#include <errno.h>
#include <fcntl.h>
#include <sys/utsname.h>
#include <time.h>

#include "replay/replay.h"
#include "root.h"
#include "snapshot.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "util/tree.h"

static void write_header(const Recorder *r, const char *unreadable, FILE *out) {
        char date[32] = "", release[SYSFS_ATTRIBUTE_MAX] = "";
        time_t now = time(NULL);
        struct tm tm;

        if (gmtime_r(&now, &tm))
                (void) strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &tm);
        if (sysfs_read(r->fs, "proc/sys/kernel/osrelease", release, sizeof(release)) <= 0 || !text_is_clean(release))
                strcpy(release, "unknown");
        (void) fprintf(out, "# Recorded by passthroughctl " VERSION " on %s, Linux %s, %s.\n", date, QUOTABLE(release),
                       geteuid() == 0 ? "as root" : "not as root");
        (void) fputs(r->identities.keep ? "# Serial numbers, MAC addresses, UUIDs and names are recorded unchanged.\n"
                                        : "# Serial numbers, MAC addresses, UUIDs, host names and the values of "
                                          "variables are replaced.\n",
                     out);
        if (geteuid() != 0)
                (void) fputs("# Only root can read more than 64 bytes of config space: isolation is not fully known.\n",
                             out);
        if (r->own_mounts)
                (void) fputs("# The mounts are those of the recording process.\n", out);
        if (r->n_unreadable > 0)
                (void) fprintf(out, "# Not readable: %zu file%s%s\n%s", r->n_unreadable, PLURAL(r->n_unreadable),
                               r->n_unreadable > UNREADABLE_SHOWN ? "; the first are" : "", unreadable);
        (void) fputc('\n', out);
}

static int record_all(Recorder *r) {
        int e = record_parts(r);

        return e < 0 ? e : record_configuration(r);
}

/* Buffers the body, because the header precedes it but lists the files that were unreadable. */
static int record(Recorder *r, char **ret, size_t *ret_size) {
        _cleanup_free_ char *body = NULL, *unreadable = NULL;
        size_t size, n;
        FILE *f = open_memstream(ret, ret_size);
        int e = -ENOMEM;

        r->out = open_memstream(&body, &size);
        r->unreadable = open_memstream(&unreadable, &n);
        if (f && r->out && r->unreadable)
                e = record_all(r);
        if (r->out && fclose(r->out) != 0)
                e = -ENOMEM;
        if (r->unreadable && fclose(r->unreadable) != 0)
                e = -ENOMEM;
        if (e >= 0) {
                write_header(r, unreadable, f);
                (void) fwrite(body, 1, size, f);
        }
        return f && fclose(f) != 0 ? -ENOMEM : e;
}

static int record_root(const char *root, SnapshotFlags flags, char **ret, size_t *ret_size) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        char host[SYSFS_ATTRIBUTE_MAX];
        Recorder r = { 0 };
        int e = sysfs_new_recorded(root, &fs);

        if (e < 0)
                return e;
        r.fs = fs;
        e = sysfs_read(fs, "proc/sys/kernel/hostname", host, sizeof(host));
        e = identities_init(&r.identities, flags & SNAPSHOT_IDENTITIES, e > 0 ? host : NULL);
        if (e >= 0)
                e = record(&r, ret, ret_size);
        identities_done(&r.identities);
        return e;
}

static int record_node(const char *node, SnapshotFlags flags, char **ret, size_t *ret_size, char **ret_problem) {
        _cleanup_root_ Root root = { 0 };
        int e = root_open(&root, node, ret_problem);

        if (e < 0)
                return e;
        e = record_root(root.dir, flags, ret, ret_size);
        if (e < 0)
                *ret_problem = string_format("%s cannot be recorded: %s.", node, strerror(-e));
        return e;
}

/* Writes to out only after the unpacked files were removed, because the write may block (out may be a pipe). Writes
 * pieces that are smaller than the buffer of the stream: after a failed write the piece stays in the buffer, so
 * fflush() fails too and sets errno for the caller. */
int snapshot_write(const char *node, SnapshotFlags flags, FILE *out, char **ret_problem) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int e = record_node(node, flags, &text, &size, ret_problem);

        for (size_t at = 0, n; e >= 0 && at < size && !ferror(out); at += n) {
                n = MIN(size - at, (size_t) 1024);
                (void) fwrite(text + at, 1, n, out);
        }
        return e;
}
