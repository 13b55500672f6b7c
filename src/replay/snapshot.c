/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Records a machine as a .tree file: a header that tells how it was recorded, then all parts. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>

#include "config/config.h"
#include "host/configfiles.h"
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

/* Records all parts into memory: the header comes first, but lists the files that were unreadable. */
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

/*
 * Records the configuration files so that the recording yields the same configuration: it keeps masked files,
 * unreadable files and the order of drop-ins.
 */

#define NAME_TAIL_MAX 240U /* leaves room for the rank in a name of at most 255 bytes */

/* The drop-ins of one configuration directory. */
typedef struct Dropins {
        char *directory; /* path without the leading slash */
        char **names;
        size_t n;
        int error; /* negative errno if the directory cannot be listed; else 0 */
} Dropins;

/* The drop-ins of all configuration directories. */
typedef struct Configuration {
        Dropins dropins[CONFIG_DIRECTORIES];
        bool ranked; /* a name contains an identifier, so all recorded names begin with their rank */
} Configuration;

static void configuration_done(Configuration *c) {
        for (size_t i = 0; i < CONFIG_DIRECTORIES; i++) {
                free(c->dropins[i].directory);
                (void) free_names(c->dropins[i].names, c->dropins[i].n);
        }
}

static char *scrub_name(const Recorder *r, const char *name) {
        return identities_scrub(&r->identities, name, true);
}

static int list_dropins(const Recorder *r, size_t which, Configuration *c) {
        Dropins *d = &c->dropins[which];

        d->directory = string_format("%s/" CONFIG_MAIN_FILE ".d", config_directories[which] + 1);
        if (!d->directory)
                return -ENOMEM;
        d->error = config_dropins_list(r->fs, d->directory, &d->names, &d->n);
        for (size_t i = 0; i < d->n; i++) {
                _cleanup_free_ char *scrubbed = scrub_name(r, d->names[i]);

                if (!scrubbed)
                        return -ENOMEM;
                c->ranked = c->ranked || !streq(scrubbed, d->names[i]);
        }
        return d->error == -ENOMEM ? -ENOMEM : 0;
}

/* Returns the rank of a drop-in: how many drop-ins have names that sort before its name. */
static size_t rank(const Configuration *c, const char *name) {
        size_t n = 0;

        for (size_t i = 0; i < CONFIG_DIRECTORIES; i++)
                for (size_t j = 0; j < c->dropins[i].n; j++)
                        n += strcmp(c->dropins[i].names[j], name) < 0;
        return n;
}

/* Returns the recorded path of a drop-in. Names determine the order of drop-ins, and a name masks the same name in
 * another directory. Replacing an identifier in a name could change the order, so then all recorded names begin with
 * their rank. NULL when out of memory. */
static char *recorded_path(const Recorder *r, const Configuration *c, const Dropins *d, const char *name) {
        _cleanup_free_ char *scrubbed = scrub_name(r, name);
        size_t length = scrubbed ? strlen(scrubbed) : 0;

        if (!scrubbed)
                return NULL;
        if (!c->ranked)
                return string_format("%s/%s", d->directory, scrubbed);
        return string_format("%s/%04zu-%s", d->directory, rank(c, name),
                             scrubbed + (length > NAME_TAIL_MAX ? length - NAME_TAIL_MAX : 0));
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"
#define DIGITS  "0123456789"

/* Writes the replacement of an invalid value: none of private_keys accepts a '$', so the replacement is invalid, too.
 */
static void write_invalid(const Identities *i, const char *value, FILE *f) {
        (void) fputc('$', f);
        identities_write_hash(i, value, strlen(value), f);
}

/* Writes HOST:REST, with a hash in place of HOST. n: the length of HOST. */
static void write_host(const Identities *i, char *value, size_t n, FILE *f) {
        for (size_t k = 0; k < n; k++)
                value[k] = (char) tolower((unsigned char) value[k]);
        identities_write_hash(i, value, n, f);
        (void) fputs(value + n, f);
}

/* Writes the replacement of an Endpoint= value: "gpu1.example.org:9999 slots=2". */
static void write_endpoint(const Identities *i, char *value, FILE *f) {
        size_t host = strspn(value, LETTERS ".-"), rest = strspn(value + host, ":" DIGITS " slots=");

        if (host == 0 || value[host] != ':' || value[host + rest] || strcspn(value, " ") > ENDPOINT_MAX ||
            strchr(".-", value[0]) || value[host - 1] == '.' || memchr(value, '_', host))
                write_invalid(i, value, f);
        else
                write_host(i, value, host, f);
}

/* Writes the replacement of a Manager= value. The path of a socket is kept, as the paths in other keys are. */
static void write_manager(const Identities *i, char *value, FILE *f) {
        size_t host = strspn(value, LETTERS ".-");

        if (*value == '/')
                identities_write(i, value, false, f);
        else if (host == 0 || value[host] != ':' || value[host + 1 + strspn(value + host + 1, DIGITS)])
                write_invalid(i, value, f);
        else
                write_host(i, value, host, f);
}

static void write_word(const Identities *i, char *word, size_t n, FILE *f) {
        _cleanup_free_ char *hash = NULL;
        size_t size;
        FILE *memory = open_memstream(&hash, &size);

        if (!memory)
                return;
        identities_write_hash(i, word, n, memory);
        if (fclose(memory) == 0)
                (void) fwrite(hash, 1, MIN(n, size), f);
}

/* Writes the replacement of one value in Variables=, and returns where it ends. Keeps placeholders and punctuation. No
 * word gets longer, because the length of a line is limited. */
static char *write_value(const Identities *i, char *value, FILE *f) {
        while (*value && *value != ' ') {
                size_t n = strspn(value, LETTERS);

                if (n > 0)
                        write_word(i, value, n, f);
                else {
                        n = *value == '%' ? 2 : 1;
                        (void) fwrite(value, 1, n, f);
                }
                value += n;
        }
        return value;
}

/* Writes the replacement of a Variables= value, "NAME=VALUE ...": keeps each NAME, and replaces its VALUE. */
static void write_variables(const Identities *i, char *value, FILE *f) {
        if (!variables_are_valid(value)) {
                write_invalid(i, value, f);
                return;
        }
        for (char *word = value; *word; word += strspn(word, " ")) {
                size_t name = strcspn(word, "=") + 1;

                (void) fwrite(word, 1, name, f);
                word = write_value(i, word + name, f);
                if (*word)
                        (void) fputc(' ', f);
        }
}

/* The keys whose values name other machines or may be secrets. */
static const struct {
        const char *name;
        void (*write)(const Identities *i, char *value, FILE *f);
} private_keys[] = {
        { "Endpoint", write_endpoint },
        { "Manager", write_manager },
        { "Variables", write_variables },
};

static void trim_end(char *text) {
        for (size_t n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]); n--)
                text[n - 1] = '\0';
}

/* Turns tabs into blanks, and cuts off a comment after the value, as the parser does. */
static void trim_value(char *value) {
        for (char *tab; (tab = strchr(value, '\t'));)
                *tab = ' ';
        for (char *c = value; (c = strchr(c, ';')); c++)
                if (c[-1] == ' ') {
                        *c = '\0';
                        break;
                }
        trim_end(value);
}

/* If the line sets one of private_keys, even in a comment, and identities are not kept, writes the line with a replaced
 * value and returns true. A valid value is replaced by a valid one, an invalid value by an invalid one. */
static bool write_private(const Identities *i, char *line, FILE *f) {
        char *start = line + strspn(line, " \t"), *key = line + strspn(line, " \t#;");
        size_t n = strcspn(key, "=: \t"), length, k = 0;
        char *value = key + n + strspn(key + n, " \t");

        while (k < ELEMENTSOF(private_keys) &&
               (n != strlen(private_keys[k].name) || strncasecmp(key, private_keys[k].name, n) != 0))
                k++;
        if (i->keep || k == ELEMENTSOF(private_keys) || !*value || !strchr("=:", *value))
                return false;
        trim_end(value);
        length = strlen(start);
        value++;
        value += strspn(value, " \t");
        (void) fwrite(line, 1, (size_t) (value - line), f);
        trim_value(value);
        if (length > CONFIG_LINE_MAX)
                write_invalid(i, value, f);
        else if (*value)
                private_keys[k].write(i, value, f);
        return true;
}

static bool is_comment(const char *line) {
        line += strspn(line, " \t");
        return *line == '#' || *line == ';';
}

/* Writes a configuration file with its identifiers replaced, line by line. The host name is replaced in comments only:
 * in settings the word may mean something else. A NUL, which makes its line invalid, is kept. */
static void write_scrubbed(const Recorder *r, char *text, size_t size, FILE *f) {
        for (size_t at = 0; at < size;) {
                size_t n = strcspn(text + at, "\n");
                char *line = text + at, end = line[n];

                line[n] = '\0';
                if (!write_private(&r->identities, line, f))
                        identities_write(&r->identities, line, is_comment(line), f);
                at += n;
                if (at++ < size)
                        (void) fputc(end, f);
        }
}

/* Records a configuration file. recorded: its path in the recording. */
static int record_one(Recorder *r, const char *path, const char *recorded) {
        _cleanup_free_ char *text = NULL, *copy = NULL;
        size_t size, copy_size;
        FILE *f;
        int e = config_file_read(r->fs, path, &text, &size);

        if (e == 0 || e == -ENOMEM)
                return e;
        if (e < 0)
                return record_unreadable(r, recorded, e);
        f = open_memstream(&copy, &copy_size);
        if (!f)
                return -ENOMEM;
        write_scrubbed(r, text, size, f);
        return fclose(f) == 0 ? record_bytes(r, recorded, copy, copy_size) : -ENOMEM;
}

static int record_dropins(Recorder *r, const Configuration *c, const Dropins *d) {
        int e = d->error < 0 ? record_unreadable(r, d->directory, d->error) : 0;

        for (size_t i = 0; i < d->n && e >= 0; i++) {
                _cleanup_free_ char *path = string_format("%s/%s", d->directory, d->names[i]);
                _cleanup_free_ char *recorded = recorded_path(r, c, d, d->names[i]);

                e = path && recorded ? record_one(r, path, recorded) : -ENOMEM;
        }
        return e;
}

int record_configuration(Recorder *r) {
        _cleanup_(configuration_done) Configuration c = { 0 };
        int e = 0;

        for (size_t i = 0; i < CONFIG_DIRECTORIES && e >= 0; i++)
                e = list_dropins(r, i, &c);
        for (size_t i = 0; i < CONFIG_DIRECTORIES && e >= 0; i++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "%s/" CONFIG_MAIN_FILE, config_directories[i] + 1);
                e = record_one(r, path, path);
                if (e >= 0)
                        e = record_dropins(r, &c, &c.dropins[i]);
        }
        return e;
}
