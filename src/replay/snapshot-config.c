/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Recording the configuration, such that whoever reads the recording has the same: what masks, what cannot be read and
 * in which order drop-ins count.
 */

#include <errno.h>
#include <stdio.h>

#include "host/configfiles.h"
#include "snapshot.h"
#include "util/fileio.h"
#include "util/strings.h"

#define NAME_MAX_RANKED 240U

/* The drop-ins of one directory. */
typedef struct Dropins {
        char *directory; /* from the root, without a slash before it */
        char **names;
        size_t n;
        int error; /* why it cannot be listed; 0 */
} Dropins;

/* What all files of a configuration are called, and whether a name of them has to be replaced. */
typedef struct Configuration {
        Dropins dropins[CONFIG_DIRECTORIES];
        const char **names; /* sorted, each once */
        size_t n_names;
        bool ranked;
} Configuration;

static void configuration_done(Configuration *c) {
        for (size_t i = 0; i < CONFIG_DIRECTORIES; i++) {
                free(c->dropins[i].directory);
                (void) free_names(c->dropins[i].names, c->dropins[i].n);
        }
        free(c->names);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static int list_dropins(const Recorder *r, size_t which, Dropins *d) {
        int e = string_replace(&d->directory, "%s/" CONFIG_MAIN_FILE ".d", config_directories[which] + 1);

        if (e < 0)
                return e;
        d->error = config_dropins_list(r->fs, d->directory, &d->names, &d->n);
        return d->error == -ENOMEM ? -ENOMEM : 0;
}

static int collect_names(const Recorder *r, Configuration *c) {
        for (size_t i = 0; i < CONFIG_DIRECTORIES; i++)
                for (size_t j = 0; j < c->dropins[i].n; j++) {
                        const char *name = c->dropins[i].names[j];
                        _cleanup_free_ char *scrubbed = identities_scrub(&r->identities, name, true);

                        if (!scrubbed || ARRAY_RESERVE(c->names, c->n_names) < 0)
                                return -ENOMEM;
                        c->names[c->n_names++] = name;
                        c->ranked = c->ranked || !streq(scrubbed, name);
                }
        if (c->n_names > 0)
                qsort(c->names, c->n_names, sizeof(*c->names), compare_names);
        return 0;
}

/* How many names come before it. */
static size_t rank(const Configuration *c, const char *name) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_names && strcmp(c->names[i], name) < 0; i++)
                n += i == 0 || !streq(c->names[i], c->names[i - 1]);
        return n;
}

/* The names say which file counts and in which order. So where one has to be replaced, all tell their place before what
 * is left of them, and the same name in two directories is the same again. */
static char *shown_name(const Recorder *r, const Configuration *c, const char *name) {
        _cleanup_free_ char *scrubbed = identities_scrub(&r->identities, name, true);
        char *shown = NULL;

        if (!scrubbed || !c->ranked)
                return TAKE_PTR(scrubbed);
        if (strlen(scrubbed) > NAME_MAX_RANKED)
                return asprintf(&shown, "%04zu.conf", rank(c, name)) < 0 ? NULL : shown;
        return asprintf(&shown, "%04zu-%s", rank(c, name), scrubbed) < 0 ? NULL : shown;
}

static bool is_comment(const char *line) {
        line += strspn(line, " \t");
        return *line == '#' || *line == ';';
}

/* Line by line, for the name of the machine is replaced only where it has no meaning; and a NUL byte in a line, which
 * spoils it, stays. */
static int write_scrubbed(const Recorder *r, const char *text, size_t size, FILE *f) {
        for (size_t at = 0; at < size;) {
                size_t n = strcspn(text + at, "\n");
                _cleanup_free_ char *line = strndup(text + at, n), *scrubbed = NULL;

                scrubbed = line ? identities_scrub(&r->identities, line, is_comment(line)) : NULL;
                if (!scrubbed)
                        return -ENOMEM;
                (void) fputs(scrubbed, f);
                at += n;
                if (at < size)
                        (void) fputc(text[at++], f);
        }
        return 0;
}

static int record_text(Recorder *r, const char *shown, const char *text, size_t size) {
        _cleanup_free_ char *copy = NULL;
        size_t copy_size;
        FILE *f = open_memstream(&copy, &copy_size);
        int e = f ? write_scrubbed(r, text, size, f) : -ENOMEM;

        if (f && fclose(f) != 0)
                e = -ENOMEM;
        return e < 0 ? e : record_bytes(r, shown, copy, copy_size);
}

/* shown: what it is called in the recording. */
static int record_one(Recorder *r, const char *path, const char *shown) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int e = config_file_read(r->fs, path, &text, &size);

        if (e == 0 || e == -ENOMEM)
                return e;
        return e < 0 ? record_unreadable(r, shown, e) : record_text(r, shown, text, size);
}

static int record_dropins(Recorder *r, const Configuration *c, const Dropins *d) {
        if (d->error < 0)
                return record_unreadable(r, d->directory, d->error);
        for (size_t i = 0; i < d->n; i++) {
                _cleanup_free_ char *name = shown_name(r, c, d->names[i]), *path = NULL, *shown = NULL;
                int e;

                if (!name || string_replace(&path, "%s/%s", d->directory, d->names[i]) < 0 ||
                    string_replace(&shown, "%s/%s", d->directory, name) < 0)
                        return -ENOMEM;
                e = record_one(r, path, shown);
                if (e < 0)
                        return e;
        }
        return 0;
}

int record_configuration(Recorder *r) {
        _cleanup_(configuration_done) Configuration c = { 0 };
        int e = 0;

        for (size_t i = 0; i < CONFIG_DIRECTORIES && e >= 0; i++)
                e = list_dropins(r, i, &c.dropins[i]);
        if (e >= 0)
                e = collect_names(r, &c);
        for (size_t i = 0; i < CONFIG_DIRECTORIES && e >= 0; i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "%s/" CONFIG_MAIN_FILE, config_directories[i] + 1);
                e = record_one(r, path, path);
                if (e >= 0)
                        e = record_dropins(r, &c, &c.dropins[i]);
        }
        return e;
}
