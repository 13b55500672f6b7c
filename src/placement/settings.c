/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>

#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

#define SECRET_NAME "passthrough-placement.secret"
#define SECRET_MAX  4096U
#define FILE_MAX    65536U

typedef struct Key {
        const char *section, *name;
        size_t offset; /* of the text in Settings */
} Key;

static const Key keys[] = {
        { "Placement", "Url", offsetof(Settings, url) },
        { "Placement", "Token", offsetof(Settings, token) },
        { "Placement", "CaFile", offsetof(Settings, ca_file) },
        { "Placement", "Host", offsetof(Settings, host) },
        { "Placement", "Project", offsetof(Settings, project) },
        { "Placement", "User", offsetof(Settings, user) },
        { "Keystone", "Url", offsetof(Settings, keystone_url) },
        { "Keystone", "Credential", offsetof(Settings, credential) },
        { "Keystone", "Region", offsetof(Settings, region) },
        { "Keystone", "Interface", offsetof(Settings, interface) },
};

typedef struct Reader {
        Settings *settings;
        char *secret_file;
        const char *path, *rest; /* the text that is not read yet */
        unsigned line;
        int error;
} Reader;

void settings_done(Settings *s) {
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                free(*(char **) ((char *) s + keys[i].offset));
        free(s->secret);
        *s = (Settings) { 0 };
}

static int set_text(char **target, const char *value) {
        return string_copy(target, *value ? value : NULL);
}

static int set_boolean(Reader *r, const char *value) {
        r->settings->add_root = !streq(value, "no");
        return !*value || streq(value, "yes") || streq(value, "no") ? 0 : -EINVAL;
}

static int set_key(Reader *r, const char *section, const char *name, const char *value) {
        if (streq(section, "Keystone") && streq(name, "SecretFile"))
                return set_text(&r->secret_file, value);
        if (streq(section, "Placement") && streq(name, "AddRoot"))
                return set_boolean(r, value);
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (streq(section, keys[i].section) && streq(name, keys[i].name))
                        return set_text((char **) ((char *) r->settings + keys[i].offset), value);
        return -ENOENT;
}

/* Returns 1: the parser continues, so that each wrong line is logged. */
static int on_line(void *userdata, const char *section, const char *name, const char *value) {
        Reader *r = userdata;
        int error = set_key(r, section, name, value ?: "");

        if (error == -ENOENT)
                log_error("%s:%u: [%s] has no key '%s'.", r->path, r->line, QUOTABLE(section), QUOTABLE(name));
        else if (error < 0)
                log_error("%s:%u: '%s' is no value of [%s] %s=.", r->path, r->line, QUOTABLE(value ?: ""), section,
                          name);
        if (error < 0)
                r->error = -EINVAL;
        return 1;
}

/*
 * fgets() for libinih, whose buffer has 200 bytes. Versions of libinih differ in what they do with a longer line, so it
 * gets none: a comment is an empty line, and another long line is an error. Indentation is removed, because libinih
 * takes an indented line for a further value of the key before it.
 */
static char *next_line(char *buf, int size, void *userdata) {
        Reader *r = userdata;
        const char *start = r->rest + strspn(r->rest, " \t");
        size_t n = strcspn(start, "\n");
        bool is_comment = *start == '#' || *start == ';';

        if (!*r->rest)
                return NULL;
        r->line++;
        if (!is_comment && n + sizeof("\n") > (size_t) size) {
                log_error("%s:%u: The line is too long.", r->path, r->line);
                r->error = -EINVAL;
                is_comment = true;
        }
        (void) snprintf(buf, (size_t) size, "%.*s\n", is_comment ? 0 : (int) n, start);
        r->rest = start + n + (start[n] == '\n');
        return buf;
}

static int read_file(Reader *r) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int line, e = read_file_at(AT_FDCWD, r->path, FILE_MAX, &text, &size);

        if (e < 0)
                return log_error_errno(e, "Failed to read %s: %m", r->path);
        if (strlen(text) != size)
                return log_error("%s: The file contains a NUL byte.", r->path), -EINVAL;
        r->rest = text;
        line = ini_parse_stream(next_line, r, on_line, r);
        if (line > 0)
                return log_error("%s:%d: The line is neither [SECTION] nor KEY=VALUE.", r->path, line), -EINVAL;
        return line < 0 ? log_error_errno(-ENOMEM, "Failed to read %s: %m", r->path) : r->error;
}

static int read_secret(Reader *r) {
        const char *directory = getenv("CREDENTIALS_DIRECTORY");
        char path[PATH_MAX];
        int e;

        if (r->secret_file)
                (void) snprintf(path, sizeof(path), "%s", r->secret_file);
        else if (directory)
                (void) snprintf(path, sizeof(path), "%s/" SECRET_NAME, directory);
        else
                return log_error("%s: [Keystone] needs SecretFile=, because this is no service of systemd.", r->path),
                       -EINVAL;
        e = read_file_at(AT_FDCWD, path, SECRET_MAX, &r->settings->secret, NULL);
        if (e < 0)
                return log_error_errno(e, "Failed to read the secret of the application credential, %s: %m", path);
        r->settings->secret[strcspn(r->settings->secret, "\r\n")] = '\0';
        return 0;
}

static int set_default(char **target, const char *value) {
        return *target ? 0 : string_copy(target, value);
}

static int complete(Reader *r) {
        Settings *s = r->settings;
        char host[HOST_NAME_MAX + 1] = "";

        if (gethostname(host, sizeof(host) - 1) < 0)
                return log_error_errno(-errno, "Failed to read the name of the host: %m");
        if (set_default(&s->host, host) < 0 || set_default(&s->project, "passthroughd") < 0 ||
            set_default(&s->user, "passthroughd") < 0 || set_default(&s->interface, "internal") < 0)
                return log_error_errno(-ENOMEM, "Failed to complete the settings: %m");
        if (!s->url && !s->keystone_url)
                return log_error("%s: Neither [Placement] Url= nor [Keystone] Url= is set.", r->path), -EINVAL;
        if (s->keystone_url && !s->credential)
                return log_error("%s: [Keystone] needs Credential=.", r->path), -EINVAL;
        return s->keystone_url ? read_secret(r) : 0;
}

int settings_read(const char *path, Settings *ret) {
        Reader r = { .settings = ret, .path = path };
        int e;

        *ret = (Settings) { .add_root = true };
        e = read_file(&r);
        if (e >= 0)
                e = complete(&r);
        free(r.secret_file);
        if (e < 0)
                settings_done(ret);
        return e;
}
