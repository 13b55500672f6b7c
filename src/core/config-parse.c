/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Text to Config. libinih splits a line into key and value; lines and section headers are looked at before it sees
 * them, because it tells no line numbers, cuts section names at 49 bytes, is silent about an empty section and reports
 * only the first error.
 */

#include <errno.h>
#include <ini.h>

#include "core/config.h"
#include "util/strings.h"

#define JOB_TIMEOUT_MAX       3600U
#define DRIVER_NAME_MAX       63U
#define DRIVER_NAME           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define VIRTUAL_FUNCTIONS_MAX 65535U /* NumVFs has 16 bits */

typedef enum Section {
        SECTION_NONE,    /* before the first header */
        SECTION_IGNORED, /* after a header that was a problem: one is enough */
        SECTION_DAEMON,
        SECTION_POOL, /* the last of config->pools */
        SECTION_EXCLUDE,
        _SECTION_MAX,
} Section;

typedef struct Parser {
        Config *config;
        const char *text; /* what follows the current line */
        const char *end;
        unsigned line;
        Section section;
        bool suspect; /* the ignored section may be a misspelt [Exclude]: a Match= in it tells */
        bool pending; /* libinih has the line and did not yet make a key of it */
        int error;    /* 0, or -ENOMEM: the end */
} Parser;

/* What the line was to exclude is not known, so nothing may be offered. The first such line is the one named. */
static int hold_back(Parser *p, const char *what) {
        Config *c = p->config;

        if (c->held_back)
                return 0;
        return string_replace(&c->held_back, "%s (%s:%u), so nothing is offered until it is mended.", what,
                              c->file ? c->file : "built in", p->line);
}

static int hold_back_header(Parser *p) {
        return hold_back(p, "A line that may be meant as the header [Exclude] could not be read");
}

static int told_problem(Parser *p, int r) {
        return r < 0 || p->section != SECTION_EXCLUDE ? r : hold_back(p, "A line of [Exclude] could not be read");
}

/* Every problem of a line is told by this: in [Exclude] it takes everything off offer. */
#define parser_problem(p, ...) told_problem((p), config_add_problem((p)->config, (p)->line, __VA_ARGS__))

/* Value parsers: 0, -ENOMEM, or another error that makes "expected ..." of the table the problem. */

static int parse_vfio_driver(Parser *p, const char *value) {
        size_t len = strspn(value, DRIVER_NAME);

        if (len == 0 || len > DRIVER_NAME_MAX || value[len])
                return -EINVAL;
        return string_copy(&p->config->vfio_driver, value);
}

static int parse_job_timeout(Parser *p, const char *value) {
        uint64_t n;
        int r = parse_unsigned(value, JOB_TIMEOUT_MAX, &n);

        if (r < 0 || n == 0)
                return -EINVAL;
        p->config->job_timeout = (unsigned) n;
        return 0;
}

static int parse_housekeeping(Parser *p, const char *value) {
        return cpuset_parse(value, &p->config->housekeeping);
}

static int parse_reserve_memory(Parser *p, const char *value) {
        return parse_size(value, &p->config->reserve_memory);
}

static int parse_after_release(Parser *p, const char *value) {
        AfterRelease a = after_release_from_string(value);

        if (a == _AFTER_RELEASE_INVALID)
                return -EINVAL;
        p->config->after_release = a;
        return 0;
}

static int parse_bind(Parser *p, const char *value) {
        PoolBind b = pool_bind_from_string(value);

        if (b == _POOL_BIND_INVALID)
                return -EINVAL;
        p->config->pools[p->config->n_pools - 1].bind = b;
        return 0;
}

static int parse_virtual_functions(Parser *p, const char *value) {
        uint64_t n;
        int r = parse_unsigned(value, VIRTUAL_FUNCTIONS_MAX, &n);

        if (r < 0)
                return r;
        p->config->pools[p->config->n_pools - 1].virtual_functions = (unsigned) n;
        p->config->pools[p->config->n_pools - 1].virtual_functions_line = p->line;
        return 0;
}

/* Gives its own sentences. */
static int add_match(Parser *p, const char *value, Match **matches, size_t *n) {
        _cleanup_free_ char *problem = NULL;
        Match m;
        int r;

        if (*n >= CONFIG_MATCHES_MAX)
                return parser_problem(p, "This section has more than %u Match= lines.", CONFIG_MATCHES_MAX);

        r = match_parse(value, &m, &problem);
        if (r == -EINVAL)
                return parser_problem(p, "%s%s", problem,
                                      p->section == SECTION_EXCLUDE ? " Nothing is offered until it is mended." : "");
        if (r < 0)
                return r;

        if (ARRAY_RESERVE(*matches, *n) < 0) {
                match_done(&m);
                return -ENOMEM;
        }
        m.line = p->line;
        (*matches)[(*n)++] = m;
        return 0;
}

static int parse_pool_match(Parser *p, const char *value) {
        Pool *pool = &p->config->pools[p->config->n_pools - 1];

        return add_match(p, value, &pool->matches, &pool->n_matches);
}

static int parse_exclude_match(Parser *p, const char *value) {
        return add_match(p, value, &p->config->excludes, &p->config->n_excludes);
}

static const struct Key {
        Section section;
        const char *name;
        int (*parse)(Parser *p, const char *value);
        const char *expected;
} keys[] = {
        { SECTION_DAEMON, "VfioDriver", parse_vfio_driver, "the name of a kernel driver, as in vfio-pci" },
        { SECTION_DAEMON, "JobTimeoutSec", parse_job_timeout, "a number of seconds from 1 to 3600" },
        { SECTION_DAEMON, "HousekeepingCpus", parse_housekeeping, "a list of CPUs, as in 0-3,16" },
        { SECTION_DAEMON, "ReserveMemory", parse_reserve_memory, "a size, as in 512M or 2G" },
        { SECTION_DAEMON, "AfterRelease", parse_after_release, "restore or keep" },
        { SECTION_POOL, "Match", parse_pool_match, "terms" },
        { SECTION_POOL, "VirtualFunctions", parse_virtual_functions, "a number from 0 to 65535" },
        { SECTION_POOL, "Bind", parse_bind, "allocate or start" },
        { SECTION_EXCLUDE, "Match", parse_exclude_match, "terms" },
};

static const char *const section_names[_SECTION_MAX] = {
        [SECTION_DAEMON] = "[Daemon]",
        [SECTION_POOL] = "[Pool]",
        [SECTION_EXCLUDE] = "[Exclude]",
};

/* "Exclude]", "[Exclude": after it the lines of [Exclude] would be taken for those of the section before. */
static bool may_be_header(const char *text) {
        return strpbrk(text, "[]") || strcasestr(text, "exclude");
}

static int unknown_key(Parser *p, const char *name) {
        _cleanup_free_ char *known = NULL;

        if (may_be_header(name) && hold_back_header(p) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (keys[i].section == p->section &&
                    string_replace(&known, "%s%s%s=", known ? known : "", known ? ", " : "", keys[i].name) < 0)
                        return -ENOMEM;
        return parser_problem(p, "Unknown key '%s=' in %s; known: %s.", name, section_names[p->section], known);
}

static int parse_key(Parser *p, const char *name, const char *value) {
        int r;

        if (p->section == SECTION_IGNORED)
                return p->suspect && streq(name, "Match")
                               ? hold_back(p, "A Match= line under an unknown header, perhaps a misspelt [Exclude], "
                                              "could not be read")
                               : 0;
        if (p->section == SECTION_NONE)
                return parser_problem(
                        p, "'%s=' stands before any section; expected [Daemon], [Pool NAME] or [Exclude] first.", name);

        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                if (keys[i].section != p->section || !streq(keys[i].name, name))
                        continue;
                r = keys[i].parse(p, value);
                if (r < 0 && r != -ENOMEM)
                        return parser_problem(p, "%s=%s is not understood: expected %s.", name, value,
                                              keys[i].expected);
                return r;
        }
        return unknown_key(p, name);
}

static int begin_pool(Parser *p, const char *name) {
        Config *c = p->config;
        const Pool *other = config_find_pool(c, name);
        Pool pool = { .line = p->line };

        p->section = SECTION_IGNORED;
        if (!pool_name_is_valid(name))
                return parser_problem(
                        p,
                        "[Pool %s] is ignored: the name of a pool is 1 to %u lower-case letters, digits and '-', "
                        "and does not begin with '-'.",
                        name, POOL_NAME_MAX);
        if (other)
                return parser_problem(p, "[Pool %s] is ignored: line %u has that pool already.", name, other->line);
        if (c->n_pools >= CONFIG_POOLS_MAX)
                return parser_problem(p, "[Pool %s] is ignored: there are more than %u pools.", name, CONFIG_POOLS_MAX);

        if (ARRAY_RESERVE(c->pools, c->n_pools) < 0 || string_copy(&pool.name, name) < 0)
                return -ENOMEM;
        c->pools[c->n_pools++] = pool;
        p->section = SECTION_POOL;
        return 0;
}

/* name: between the brackets. */
static int begin_section(Parser *p, const char *name) {
        if (strncmp(name, "Pool ", 5) == 0)
                return begin_pool(p, name + 5 + strspn(name + 5, " "));

        p->section = SECTION_IGNORED;
        if (streq(name, "Daemon"))
                p->section = SECTION_DAEMON;
        else if (streq(name, "Exclude"))
                p->section = SECTION_EXCLUDE;
        else if (streq(name, "Pool"))
                return parser_problem(p, "[Pool] is ignored: it needs a name, as in [Pool gpu].");
        else {
                p->suspect = true;
                return parser_problem(p, "Section [%s] is ignored; known: [Daemon], [Pool NAME], [Exclude].", name);
        }
        return 0;
}

/* However broken, it cannot be meant as [Exclude]. */
static bool is_pool_header(const char *line) {
        return strncmp(line, "[Pool", 5) == 0 && strchr(" ]", line[5]);
}

static int parse_header(Parser *p, char *line) {
        char *end = strchr(line, ']');
        const char *rest = end ? end + 1 + strspn(end + 1, " ") : "";

        p->suspect = false;
        if (!end || (*rest && !strchr(";#", *rest))) {
                p->section = SECTION_IGNORED;
                p->suspect = !is_pool_header(line);
                return parser_problem(
                        p,
                        "'%s' is no section header, so what follows it is ignored: write [Section] and nothing else.",
                        line);
        }
        *end = 0;
        return begin_section(p, line + 1);
}

/* Copies the next line without its indentation, which libinih would take for a continuation. Tabs become spaces. */
static bool next_line(Parser *p, char *buf, size_t size, size_t *ret_len) {
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

/* The line as a whole is lost, though it may have been a header. n: bytes of it that buf has. */
static int lose_line(Parser *p, const char *buf, size_t n) {
        if (buf[0] == '[') {
                p->section = SECTION_IGNORED;
                return is_pool_header(buf) ? 0 : hold_back_header(p);
        }
        return memchr(buf, '=', n) ? 0 : hold_back_header(p);
}

/* True when the line in buf is one for libinih. */
static bool preview_line(Parser *p, char *buf, size_t size, size_t len) {
        size_t n = MIN(len, size - 1);
        int r;

        if (memchr(buf, 0, n))
                r = parser_problem(p, "The line contains a NUL byte.");
        else if (!buf[0] || strchr(";#", buf[0]))
                return false;
        else if (len > CONFIG_LINE_MAX)
                r = parser_problem(p, "The line has %zu bytes; the limit is %u.", len, CONFIG_LINE_MAX);
        else if (!text_is_clean(buf))
                r = parser_problem(p, "The line contains control characters or is not UTF-8.");
        else if (buf[0] == '[') {
                p->error = parse_header(p, buf);
                return false;
        } else
                return true;
        p->error = r < 0 ? r : lose_line(p, buf, n);
        return false;
}

/* The line that libinih made no key of. It cut off the '=' that it found, if any, and what follows. */
static int no_key(Parser *p, const char *line) {
        int r = parser_problem(p, "The line is neither [Section] nor Key=value nor a comment.");

        return r < 0 || !may_be_header(line) ? r : hold_back_header(p);
}

/* fgets() for libinih. It asks for a line when it is done with the one before: if that one made no key, it was none. */
static char *read_line(char *buf, int size, void *userdata) {
        Parser *p = userdata;
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
        Parser *p = userdata;

        p->pending = false;
        if (p->error >= 0)
                p->error = parse_key(p, name, value);
        return 1;
}

/* A VF that is not there yet has no address that could match. */
static int check_virtual_functions(Config *c, Pool *pool) {
        for (size_t i = 0; i < pool->n_matches && pool->virtual_functions > 0; i++) {
                if (!pool->matches[i].address)
                        continue;
                pool->virtual_functions = 0;
                return config_add_problem(
                        c, pool->virtual_functions_line,
                        "VirtualFunctions= is ignored: Match= in line %u uses address=, but VFs that are to be "
                        "created have no address yet; write pf= with the address of their PF.",
                        pool->matches[i].line);
        }
        return 0;
}

static int check_pools(Config *c) {
        for (size_t i = 0; i < c->n_pools; i++) {
                Pool *pool = &c->pools[i];
                int r;

                if (pool->n_matches > 0)
                        r = check_virtual_functions(c, pool);
                else
                        r = config_add_problem(c, pool->line,
                                               "[Pool %s] has no valid Match= line, so it offers nothing.", pool->name);
                if (r < 0)
                        return r;
        }
        return 0;
}

int config_parse(const char *file, const char *text, size_t size, Config **ret) {
        static const char mark[] = "\xef\xbb\xbf"; /* byte order mark */
        _cleanup_(cleanup_config_free) Config *c = config_new();
        Parser p = { .config = c, .text = text, .end = text + size };
        int r;

        if (!c || string_copy(&c->file, file) < 0)
                return -ENOMEM;

        if (size > CONFIG_TEXT_MAX)
                r = config_add_problem(c, 0, "The file is ignored: it has more than %u bytes.", CONFIG_TEXT_MAX);
        else {
                if (size >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0)
                        p.text += strlen(mark);
                (void) ini_parse_stream(read_line, &p, on_key, &p);
                r = p.error < 0 ? p.error : check_pools(c);
        }
        if (r < 0)
                return r;

        *ret = TAKE_PTR(c);
        return 0;
}
