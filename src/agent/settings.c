/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "agent/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>

#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

#define SECRET_MAX 16384U
#define FILE_MAX   65536U

typedef struct Reader {
        const AgentKey *keys;
        size_t n_keys;
        void *target;
        const char *path, *rest; /* rest: the text that was not read yet */
        unsigned line;
        int error;
} Reader;

static void *member_of(void *target, const AgentKey *k) {
        return (char *) target + k->offset;
}

int agent_parse_text(const char *value, void *member) {
        return string_copy(member, *value ? value : NULL);
}

int agent_parse_boolean(const char *value, void *member) {
        *(bool *) member = streq(value, "yes");
        return streq(value, "yes") || streq(value, "no") ? 0 : -EINVAL;
}

static int set_value(void *target, const AgentKey *k, const char *value) {
        return k->parse(*value ? value : k->initial ?: "", member_of(target, k));
}

static int set_key(const Reader *r, const char *section, const char *name, const char *value) {
        for (size_t i = 0; i < r->n_keys; i++)
                if (streq(section, r->keys[i].section) && streq(name, r->keys[i].name))
                        return set_value(r->target, &r->keys[i], value);
        return -ENOENT;
}

/* Sets the member of one key. Always returns 1, so that libinih continues and each wrong line is logged. */
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

/* Reads the next line for libinih, as fgets() does. libinih's buffer has 200 bytes, and versions of libinih differ in
 * how they handle a longer line. So each comment becomes an empty line, and any other long line is an error.
 * Indentation is removed, because libinih takes an indented line as another value of the previous key. */
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

int agent_read_settings(const char *path, const AgentKey *keys, size_t n, void *target) {
        Reader r = { .keys = keys, .n_keys = n, .target = target, .path = path };
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int line, e = path ? read_file_at(AT_FDCWD, path, FILE_MAX, &text, &size) : 0;

        for (size_t i = 0; e >= 0 && i < n; i++)
                e = set_value(target, &keys[i], "");
        if (e < 0)
                return log_error_errno(e, "Failed to read %s: %m", path ?: "the settings");
        if (text && strlen(text) != size)
                return log_error("%s: The file contains a NUL byte.", path), -EINVAL;
        r.rest = text ?: "";
        line = ini_parse_stream(next_line, &r, on_line, &r);
        if (line > 0)
                return log_error("%s:%d: The line is neither [SECTION] nor KEY=VALUE.", path, line), -EINVAL;
        return line < 0 ? log_error_errno(-ENOMEM, "Failed to read %s: %m", path) : r.error;
}

void agent_free_settings(const AgentKey *keys, size_t n, void *target) {
        for (size_t i = 0; i < n; i++)
                if (keys[i].parse == agent_parse_text)
                        free(TAKE_PTR(*(char **) member_of(target, &keys[i])));
}

int agent_read_secret(const char *path, char **ret) {
        int r = read_file_at(AT_FDCWD, path, SECRET_MAX, ret, NULL);

        if (r < 0)
                return r;
        (*ret)[strcspn(*ret, "\r\n")] = '\0';
        return 0;
}
