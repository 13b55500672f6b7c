/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Records the configuration files so that the recording yields the same configuration: it keeps masked files,
 * unreadable files and the order of drop-ins.
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
        char *directory; /* path without the leading slash */
        char **names;
        size_t n;
        int error; /* negative errno if the directory cannot be listed; else 0 */
} Dropins;

/* The drop-ins of all configuration directories. */
typedef struct Configuration {
        Dropins dropins[CONFIG_DIRECTORIES];
        const char **names; /* the names of all drop-ins, sorted; borrowed */
        size_t n_names;
        bool ranked; /* a name contains an identifier, so the recorded names begin with their rank */
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

/* Returns the number of different names that sort before name. */
static size_t rank(const Configuration *c, const char *name) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_names && strcmp(c->names[i], name) < 0; i++)
                n += i == 0 || !streq(c->names[i], c->names[i - 1]);
        return n;
}

/* Returns the recorded name of a drop-in. Names determine the order of drop-ins, and a name masks the same name in
 * another directory. Replacing an identifier in a name could change the order, so then all recorded names begin with
 * their rank. NULL when out of memory. */
static char *recorded_name(const Recorder *r, const Configuration *c, const char *name) {
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

/* Scrubs line by line. The host name is replaced only in comments, because other lines have a meaning. A NUL byte,
 * which makes its line invalid, is written unchanged. */
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

static int record_text(Recorder *r, const char *recorded, const char *text, size_t size) {
        _cleanup_free_ char *copy = NULL;
        size_t copy_size;
        FILE *f = open_memstream(&copy, &copy_size);
        int e = f ? write_scrubbed(r, text, size, f) : -ENOMEM;

        if (f && fclose(f) != 0)
                e = -ENOMEM;
        return e < 0 ? e : record_bytes(r, recorded, copy, copy_size);
}

/* recorded: the path of the file in the recording. */
static int record_one(Recorder *r, const char *path, const char *recorded) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int e = config_file_read(r->fs, path, &text, &size);

        if (e == 0 || e == -ENOMEM)
                return e;
        return e < 0 ? record_unreadable(r, recorded, e) : record_text(r, recorded, text, size);
}

static int record_dropins(Recorder *r, const Configuration *c, const Dropins *d) {
        if (d->error < 0)
                return record_unreadable(r, d->directory, d->error);
        for (size_t i = 0; i < d->n; i++) {
                _cleanup_free_ char *name = recorded_name(r, c, d->names[i]), *path = NULL, *recorded = NULL;
                int e;

                if (!name || string_replace(&path, "%s/%s", d->directory, d->names[i]) < 0 ||
                    string_replace(&recorded, "%s/%s", d->directory, name) < 0)
                        return -ENOMEM;
                e = record_one(r, path, recorded);
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
