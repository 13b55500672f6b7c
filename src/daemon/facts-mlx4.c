/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the module options by which mlx4_core creates VFs, for VirtualFunctions=. The options take effect when
 * mlx4_core is loaded. The daemon never reloads mlx4_core, because that would interrupt all users of its cards; it only
 * reports that a reload is due. */

#include <errno.h>

#include "facts.h"
#include "host/modprobe.h"
#include "host/rootservice.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

/* Logs the problem. If the options are wrong, the problem has a place in the configuration; a failed write has none. */
static void warn(const Mlx4 *options) {
        const LogFields fields = { .id = options->place.file ? MESSAGE_CONFIG_LINE : MESSAGE_NOT_PREPARED };

        if (options->place.file)
                log_full(LOG_WARNING, 0, &fields, "%s:%u: %s", options->place.file, options->place.line,
                         options->problem);
        else
                log_full(LOG_WARNING, 0, &fields, "%s", options->problem);
}

static void log_change(const Mlx4 *options, const char *path) {
        if (options->text)
                log_notice("Wrote %s: mlx4_core makes %u VFs on each of its cards when it is loaded the next time.",
                           path, options->num_vfs);
        else
                log_notice("Removed %s: no pool wants VFs of mlx4_core.", path);
}

/* Returns the text about an error of modprobe_open(), modprobe_differs() or root_set_options(). The caller frees it;
 * NULL when out of memory. */
static char *describe_failure(const Mlx4 *options, const char *path, int error) {
        char *problem = NULL;

        if (error == -EEXIST)
                (void) string_replace(&problem,
                                      "%s was not written by passthroughd, so it is not changed. Remove it, or keep it "
                                      "and set VirtualFunctions=external.",
                                      path);
        else if (options->text)
                (void) string_replace(&problem, "%s cannot be written: %s. Give the daemon write permission.", path,
                                      strerror(-error));
        else
                (void) string_replace(&problem,
                                      "%s cannot be removed: %s. Remove it: no pool wants VFs of mlx4_core any more.",
                                      path, strerror(-error));
        return problem;
}

/* Writes the options to their file, or removes the file when no options are wanted. Sets options->file to the path of
 * the written file, or on a failure options->problem. Returns 0 or a negative errno. */
static int apply(const Manager *m, Mlx4 *options) {
        _cleanup_close_ int dir = modprobe_open(m->fs, m->modprobe_dir);
        _cleanup_free_ char *path = NULL;
        int r = modprobe_path(m->fs, m->modprobe_dir, &path);

        if (r < 0)
                return r;
        r = dir < 0 ? dir : modprobe_differs(dir, options->text);
        if (r > 0)
                r = root_set_options(options->text, clock_usec(CLOCK_MONOTONIC));
        if (r == -ENOENT && !options->text)
                return 0;
        if (r < 0) {
                options->problem = describe_failure(options, path, r);
                return r;
        }
        if (r > 0)
                log_change(options, path);
        if (options->text)
                options->file = TAKE_PTR(path);
        return 0;
}

/* Returns true when nothing has to be written: the last call wrote the same options, or no options were and are
 * wanted. */
static bool is_written(const Mlx4 *before, const Mlx4 *now) {
        return !before->unknown && !now->unknown && streq_ptr(before->text, now->text) && (before->file || !now->text);
}

void manager_write_options(Manager *m, bool logged) {
        Mlx4 *options = &m->host.mlx4, *before = &m->options;
        bool wanted = !options->unknown && !options->problem, news;

        if (wanted && !logged && is_written(before, options))
                (void) string_copy(&options->file, before->file);
        else if (wanted)
                (void) apply(m, options);
        /* With logged, the journal already has the problem if the policy found it, but not if a write failed. */
        news = logged ? wanted : !streq_ptr(options->problem, before->problem);
        if (options->problem && news)
                warn(options);
        before->unknown = !wanted;
        (void) string_copy(&before->text, options->text);
        (void) string_copy(&before->file, options->file);
        (void) string_copy(&before->problem, options->problem);
}
