/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Reads lines and sections. libinih splits a line into key and value. This file examines each line before libinih gets
 * it, because libinih passes no line number with a key, cuts section names at 49 bytes, does not report empty sections,
 * and reports only the first error. */

#include <errno.h>
#include <ini.h>

#include "config-internal.h"
#include "util/strings.h"

static int add_pool(ConfigParser *p, const char *name) {
        Config *c = p->config;
        Pool pool = { .place = { p->file, p->line },
                      .latest = { p->file, p->line },
                      .numa = NUMA_POLICY_PREFERRED,
                      .confidential_mode = CONFIDENTIAL_MODE_OFF };

        if (c->n_pools >= CONFIG_POOLS_MAX)
                return parser_problem(p, "[Pool %s] is ignored: there are more than %u pools.", name, CONFIG_POOLS_MAX);
        if (ARRAY_RESERVE(c->pools, c->n_pools) < 0 || string_copy(&pool.name, name) < 0)
                return -ENOMEM;
        p->pool = c->n_pools;
        c->pools[c->n_pools++] = pool;
        p->section = SECTION_POOL;
        return 0;
}

/* Begins the section of a pool. A file may continue a pool of an earlier file. A second header for the pool in the same
 * file is a mistake, such as a copy. */
static int begin_pool(ConfigParser *p, const char *name) {
        Config *c = p->config;
        size_t i = 0;

        p->section = SECTION_IGNORED;
        if (!pool_name_is_valid(name))
                return parser_problem(
                        p,
                        "[Pool %s] is ignored: the name of a pool is 1 to %u lower-case letters, digits and '-', "
                        "and does not begin with '-'.",
                        name, POOL_NAME_MAX);
        while (i < c->n_pools && !streq(c->pools[i].name, name))
                i++;
        if (i == c->n_pools)
                return add_pool(p, name);
        if (c->pools[i].latest.file == p->file)
                return parser_problem(p, "[Pool %s] is ignored: line %u already has this pool.", name,
                                      c->pools[i].latest.line);

        c->pools[i].latest = (ConfigPlace) { p->file, p->line };
        p->pool = i;
        p->section = SECTION_POOL;
        return 0;
}

static int add_service(ConfigParser *p, const char *name) {
        Config *c = p->config;
        RemoteService service = { .place = { p->file, p->line }, .latest = { p->file, p->line } };

        if (c->n_services >= REMOTE_SERVICES_MAX)
                return parser_problem(p, "[Service %s] is ignored: there are more than %u services.", name,
                                      REMOTE_SERVICES_MAX);
        if (ARRAY_RESERVE(c->services, c->n_services) < 0 || string_copy(&service.name, name) < 0)
                return -ENOMEM;
        p->service = c->n_services;
        c->services[c->n_services++] = service;
        p->section = SECTION_SERVICE;
        return 0;
}

/* Begins the section of a service, as begin_pool() does for a pool. */
static int begin_service(ConfigParser *p, const char *name) {
        Config *c = p->config;
        size_t i = 0;

        p->section = SECTION_IGNORED;
        if (!pool_name_is_valid(name))
                return parser_problem(p,
                                      "[Service %s] is ignored: the name of a service is 1 to %u lower-case letters, "
                                      "digits and '-', and does not begin with '-'.",
                                      name, POOL_NAME_MAX);
        while (i < c->n_services && !streq(c->services[i].name, name))
                i++;
        if (i == c->n_services)
                return add_service(p, name);
        if (c->services[i].latest.file == p->file)
                return parser_problem(p, "[Service %s] is ignored: line %u already has this service.", name,
                                      c->services[i].latest.line);
        c->services[i].latest = (ConfigPlace) { p->file, p->line };
        p->service = i;
        p->section = SECTION_SERVICE;
        return 0;
}

/* Begins a section. name: the text between the brackets of the header. */
static int begin_section(ConfigParser *p, const char *name) {
        if (strncmp(name, "Pool ", 5) == 0)
                return begin_pool(p, name + 5 + strspn(name + 5, " "));
        if (strncmp(name, "Service ", 8) == 0)
                return begin_service(p, name + 8 + strspn(name + 8, " "));

        p->section = SECTION_IGNORED;
        if (streq(name, "Daemon"))
                p->section = SECTION_DAEMON;
        else if (streq(name, "Fabric"))
                p->section = SECTION_FABRIC;
        else if (streq(name, "Exclude"))
                p->section = SECTION_EXCLUDE;
        else if (streq(name, "Pool"))
                return parser_problem(p, "[Pool] is ignored: it needs a name, as in [Pool gpu].");
        else if (streq(name, "Service"))
                return parser_problem(p, "[Service] is ignored: it needs a name, as in [Service remote-gpu].");
        else {
                p->suspect = true;
                return parser_problem(
                        p,
                        "Section [%s] is ignored; known: [Daemon], [Fabric], [Pool NAME], [Service NAME], "
                        "[Exclude].",
                        name);
        }
        return 0;
}

/* Returns true when a broken header begins like the header of a pool or a service, so that it cannot have meant
 * [Exclude]. */
static bool is_named_header(const char *line) {
        return (strncmp(line, "[Pool", 5) == 0 && strchr(" ]", line[5])) ||
               (strncmp(line, "[Service", 8) == 0 && strchr(" ]", line[8]));
}

static int parse_header(ConfigParser *p, char *line) {
        char *end = strchr(line, ']');
        const char *rest = end ? end + 1 + strspn(end + 1, " ") : "";

        p->suspect = false;
        if (!end || (*rest && !strchr(";#", *rest))) {
                p->section = SECTION_IGNORED;
                p->suspect = !is_named_header(line);
                return parser_problem(p,
                                      "'%s' is not a section header, so the lines after it are ignored: write "
                                      "[Section] and nothing else.",
                                      line);
        }
        *end = 0;
        return begin_section(p, line + 1);
}

/* Copies the next line, without its indentation and the spaces at its end, to buf. Cuts the copy off if buf is too
 * small; *ret_len is the length of the uncut copy. The indentation is left out, because libinih would take an indented
 * line as a continuation. Tabs become spaces. Returns false at the end of the text. */
static bool next_line(ConfigParser *p, char *buf, size_t size, size_t *ret_len) {
        const char *start = p->text, *end;
        size_t len;

        if (start == p->end)
                return false;
        end = memchr(start, '\n', (size_t) (p->end - start));
        p->text = end ? end + 1 : p->end;
        p->line++;

        if (!end)
                end = p->end;
        while (start < end && (*start == ' ' || *start == '\t'))
                start++;
        while (start < end && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
                end--;

        len = (size_t) (end - start);
        *ret_len = len;
        len = MIN(len, size - 1);
        memcpy(buf, start, len);
        buf[len] = 0;
        for (char *t = memchr(buf, '\t', len); t; t = memchr(t, '\t', (size_t) (buf + len - t)))
                *t = ' ';
        return true;
}

/* Handles a line that could not be read and may have been a section header. buf has the first n bytes of the line. */
static int handle_unreadable_line(ConfigParser *p, const char *buf, size_t n) {
        if (buf[0] == '[') {
                p->section = SECTION_IGNORED;
                return is_named_header(buf) ? 0 : parser_hold_back_header(p);
        }
        return memchr(buf, '=', n) ? 0 : parser_hold_back_header(p);
}

/* Examines the line that next_line() has put into buf, and handles a section header. `len`: the uncut length of the
 * line. Returns true when the line may be a key, which libinih then parses. */
static bool preview_line(ConfigParser *p, char *buf, size_t size, size_t len) {
        size_t n = MIN(len, size - 1);
        int r;

        if (memchr(buf, 0, n))
                r = parser_problem(p, "The line contains a NUL byte.");
        else if (!buf[0] || strchr(";#", buf[0]))
                return false;
        else if (len > CONFIG_LINE_MAX)
                r = parser_problem(p, "The line has %zu bytes; the limit is %u.", len, CONFIG_LINE_MAX);
        else if (!text_is_clean(buf))
                r = parser_problem(p, "The line contains control or invisible characters or is not UTF-8.");
        else if (buf[0] == '[') {
                p->error = parse_header(p, buf);
                return false;
        } else {
                p->resets = streq(buf, "Match=");
                return true;
        }
        p->error = r < 0 ? r : handle_unreadable_line(p, buf, n);
        return false;
}

/* Handles a line in which libinih found no key. */
static int no_key(ConfigParser *p, const char *line) {
        int r = parser_problem(p, "The line is neither [Section] nor Key=value nor a comment.");

        return r < 0 || !config_may_be_header(line) ? r : parser_hold_back_header(p);
}

/* Reads the next line for libinih, as fgets() does. If libinih has reported no key since the last call, the last line
 * had none. */
static char *read_line(char *buf, int size, void *userdata) {
        ConfigParser *p = userdata;
        size_t len;

        if (p->pending && p->section != SECTION_IGNORED)
                p->error = no_key(p, buf);
        p->pending = false;

        while (p->error >= 0 && next_line(p, buf, (size_t) size, &len))
                if (preview_line(p, buf, (size_t) size, len)) {
                        p->pending = true;
                        return buf;
                }
        return NULL;
}

static int on_key(void *userdata, const char *section _unused_, const char *name, const char *value) {
        ConfigParser *p = userdata;

        p->pending = false;
        if (p->error >= 0)
                p->error = config_parse_key(p, name, value);
        return 1;
}

static int add_file(Config *c, const char *file) {
        if (ARRAY_RESERVE(c->files, c->n_files) < 0)
                return -ENOMEM;
        c->files[c->n_files] = strdup(file);
        if (!c->files[c->n_files])
                return -ENOMEM;
        c->n_files++;
        return 0;
}

int config_read_text(Config *c, const char *file, const char *text, size_t size) {
        static const char mark[] = "\xef\xbb\xbf"; /* byte order mark */
        ConfigParser p = { .config = c, .text = text, .end = text + size };

        if (size > CONFIG_TEXT_MAX - c->size)
                return config_read_failed(c, file, "the configuration is too large; the limit is 1 MiB",
                                          "Shorten the configuration, then reload it.");
        if (add_file(c, file) < 0)
                return -ENOMEM;

        c->size += size;
        p.file = c->files[c->n_files - 1];
        if (size >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0)
                p.text += strlen(mark);
        /* Ignore a positive result, the number of a line without a key: read_line() has reported that line. */
        return ini_parse_stream(read_line, &p, on_key, &p) < 0 ? -ENOMEM : p.error;
}

int config_parse(const char *file, const char *text, size_t size, Config **ret) {
        _cleanup_(cleanup_config_free) Config *c = config_new();
        int r;

        if (!c)
                return -ENOMEM;
        r = config_read_text(c, file, text, size);
        if (r < 0)
                return r;
        r = config_finish(c);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(c);
        return 0;
}
