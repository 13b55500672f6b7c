/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Expands each line of a hand-written .tree file into lines that the program's parser then reads. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "expand.h"
#include "shorthand.h"
#include "util/fileio.h"
#include "util/strings.h"

enum {
        INCLUDE_MAX = 8 /* depth of %include */
};

typedef struct Reader {
        const char *file;
        unsigned line;
        unsigned depth;
        char *section;
        bool append;      /* the current line has += */
        char *problem;    /* the parser's error text */
        bool is_reported; /* the reader of an included file has printed it */
        const ShorthandFunctions *functions;
        void *userdata;
} Reader;

static int take_item(const TreeLine *line, void *userdata) {
        const Reader *r = userdata;

        return r->functions->item(line, r->append, r->userdata);
}

/* rest: the text after the path. */
static int take_path(const char *path, const char *rest, void *userdata) {
        Reader *r = userdata;
        _cleanup_free_ char *text = string_format("%s%s", path, rest);

        return text ? tree_parse(r->file, text, strlen(text), take_item, r, &r->problem) : -ENOMEM;
}

static int take_section(Reader *r, char *line) {
        size_t n = strlen(line);

        if (line[n - 1] != ']')
                return -EINVAL;
        line[n - 1] = '\0';
        if (string_copy(&r->section, line + 1) < 0)
                return -ENOMEM;
        return *r->section ? tree_expand(r->section, "/", take_path, r) : 0;
}

static int shorthand_parse(Reader *r);

static int include(Reader *r, const char *name) {
        const char *slash = strrchr(r->file, '/');
        _cleanup_free_ char *path =
                string_format("%.*s%s", *name != '/' && slash ? (int) (slash - r->file) + 1 : 0, r->file, name);
        Reader below = { .file = path, .depth = r->depth + 1, .functions = r->functions, .userdata = r->userdata };
        int e = !path ? -ENOMEM : below.depth > INCLUDE_MAX ? -E2BIG : shorthand_parse(&below);

        r->is_reported = below.is_reported;
        return e;
}

static int take_directive(Reader *r, char *line) {
        char *rest = line + strcspn(line, " \t");

        if (*rest)
                *rest++ = '\0';
        rest += strspn(rest, " \t");
        return streq(line, "%include") ? include(r, rest) : r->functions->directive(line, rest, r->userdata);
}

/* Returns the text after the path of an item: "=VALUE", " -> TARGET", "/", "!ERRNO" or "". */
static char *find_rest(char *line) {
        char *arrow = strstr(line, " -> "), *equals = strchr(line, '='), *bang = strrchr(line, '!');
        size_t n = strlen(line);

        if (arrow && (!equals || arrow < equals))
                return arrow;
        if (equals)
                return equals - (equals > line && strchr("+:", equals[-1]) != NULL);
        if (line[n - 1] == '/')
                return line + n - 1;
        return bang ? bang : line + n;
}

static int take_line(char *line, void *userdata) {
        Reader *r = userdata;
        _cleanup_free_ char *path = NULL;
        char *rest;

        r->line++;
        line[strcspn(line, "\n")] = '\0';
        line += strspn(line, " \t");
        if (*line == '\0' || *line == '#')
                return 0;
        if (*line == '[')
                return take_section(r, line);
        if (*line == '%')
                return take_directive(r, line);
        rest = find_rest(line);
        path = string_format("%s/%.*s", r->section ?: "", (int) (rest - line), line);
        r->append = *rest == '+';
        return path ? tree_expand(path, rest + r->append, take_path, r) : -ENOMEM;
}

static int shorthand_parse(Reader *r) {
        int fd = open(r->file, O_RDONLY | O_CLOEXEC), e = fd < 0 ? -errno : read_lines_fd(fd, take_line, r);

        if (e < 0 && !r->is_reported)
                fprintf(stderr, "%s:%u: %s\n", r->file, r->line,
                        r->problem ? strstr(r->problem, ": ") + 2 : strerror(-e));
        r->is_reported = e < 0;
        free(r->section);
        free(r->problem);
        return e;
}

int shorthand_read(const char *file, const ShorthandFunctions *functions, void *userdata) {
        return shorthand_parse(&(Reader) { .file = file, .functions = functions, .userdata = userdata });
}
