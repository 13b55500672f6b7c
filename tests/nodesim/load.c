/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads .tree files: lines into nodes, directives into what the kernel knows. */
#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "expand.h"
#include "fault.h"
#include "load.h"
#include "sriov.h"

enum {
        INCLUDES_MAX = 8,
        CONFIG_SIZE = 256,
        CONFIG_SIZE_EXTENDED = 4096
};

typedef enum LineType {
        LINE_TEXT,   /* NAME=VALUE */
        LINE_APPEND, /* NAME+=VALUE */
        LINE_RAW,    /* NAME:=VALUE */
        LINE_CONFIG, /* config@OFFSET=HEX */
        LINE_LINK,
        LINE_DIRECTORY,
        LINE_ERROR, /* NAME!ERRNO */
} LineType;

typedef struct Loader {
        Sim *sim;
        const char *file;
        char *section;
        LineType type;
        unsigned depth;
} Loader;

static int load_file(Sim *sim, const char *path, unsigned depth);

static int set_text(Node *file, const char *value, bool append, const char *end) {
        size_t size;
        _cleanup_free_ char *text = unescape(value, &size);

        if (!text)
                return -EINVAL;
        strcpy(text + size, end);
        size += strlen(end);
        if (append && file->data) {
                char *longer = xrealloc(NULL, file->size + size + 1, 1);
                memcpy(longer, file->data, file->size);
                memcpy(longer + file->size, text, size);
                node_set(file, longer, file->size + size);
                free(longer);
        } else
                node_set(file, text, size);
        return 0;
}

int tree_value_set(Node *file, const char *value) {
        return set_text(file, value, false, "\n");
}

static void config_resize(Node *config, size_t size) {
        static const char zeros[CONFIG_SIZE_EXTENDED];
        size_t before = config->size;

        if (before >= size)
                return;
        _cleanup_free_ char *bytes = xrealloc(NULL, size, 1);
        memcpy(bytes, config->data ?: zeros, before);
        memcpy(bytes + before, zeros, size - before);
        node_set(config, bytes, size);
}

static int set_config(Node *config, const char *offset, const char *hex) {
        char *end;
        size_t at = strtoul(offset, &end, 0);

        if (end == offset || *end != '\0')
                return -EINVAL;
        config_resize(config, CONFIG_SIZE);
        for (unsigned byte; *hex; hex += 2, at++) {
                hex += strspn(hex, " \t");
                if (!*hex)
                        break;
                if (at >= CONFIG_SIZE_EXTENDED || strspn(hex, "0123456789abcdefABCDEF") < 2)
                        return -EINVAL;
                if (at >= CONFIG_SIZE)
                        config_resize(config, CONFIG_SIZE_EXTENDED);
                (void) sscanf(hex, "%2x", &byte);
                config->data[at] = (char) byte;
        }
        return 0;
}

int tree_link_set(Sim *sim, const char *path, const char *target) {
        Node *link;
        int r = node_make_at(sim->root, path, NODE_LINK, &link);

        if (r < 0)
                return r;
        /* Links of proc, unlike those of sysfs, are absolute. */
        _cleanup_free_ char *text = *target == '/' && strncmp(path + strspn(path, "/"), "proc/", 5) != 0
                                            ? node_relative(link->parent, target)
                                            : xstrdup(target);
        _cleanup_free_ char *name = xstrdup(link->name); /* the node may be replaced */
        node_link_text(link->parent, name, text);
        return 0;
}

static int apply(void *userdata, const char *path, const char *value) {
        Loader *l = userdata;
        const char *at = l->type == LINE_CONFIG ? strrchr(path, '@') : path + strlen(path);
        _cleanup_free_ char *name = xstrndup(path, (size_t) (at - path));
        Node *node;
        int r;

        if (l->type == LINE_LINK)
                return tree_link_set(l->sim, name, value);
        r = node_make_at(l->sim->root, name, l->type == LINE_DIRECTORY ? NODE_DIR : NODE_FILE, &node);
        if (r < 0)
                return r;
        switch (l->type) {
        case LINE_CONFIG:
                return set_config(node, at + 1, value);
        case LINE_ERROR:
                node_set(node, "", 0);
                node->error = errno_from_name(value);
                return node->error > 0 ? 0 : -EINVAL;
        case LINE_DIRECTORY:
                return 0;
        default:
                return set_text(node, value, l->type == LINE_APPEND, l->type == LINE_RAW ? "" : "\n");
        }
}

static bool is_config(const char *name) {
        const char *slash = strrchr(name, '/');

        return strncmp(slash ? slash + 1 : name, "config@", 7) == 0;
}

/* Cuts the line into name and value. */
static int line_split(char *line, LineType *ret_type, char **ret_value) {
        char *arrow = strstr(line, " -> "), *equals = strchr(line, '='), *bang = strrchr(line, '!');
        size_t n = strlen(line);

        if (arrow && (!equals || arrow < equals)) {
                *arrow = '\0';
                *ret_type = LINE_LINK;
                *ret_value = arrow + 4;
        } else if (equals && equals > line) {
                char *end = equals - (equals[-1] == '+' || equals[-1] == ':');

                *ret_type = end == equals ? LINE_TEXT : *end == '+' ? LINE_APPEND : LINE_RAW;
                *end = '\0';
                if (is_config(line))
                        *ret_type = LINE_CONFIG;
                *ret_value = equals + 1;
        } else if (n > 1 && line[n - 1] == '/') {
                *ret_type = LINE_DIRECTORY;
                *ret_value = line + n;
        } else if (bang && bang > line) {
                *bang = '\0';
                *ret_type = LINE_ERROR;
                *ret_value = bang + 1;
        } else
                return -EINVAL;
        return 0;
}

static int load_section(Loader *l, char *line) {
        size_t n = strlen(line);

        if (line[n - 1] != ']')
                return -EINVAL;
        free(l->section);
        l->section = xstrndup(line + 1, n - 2);
        l->type = LINE_DIRECTORY;
        return *l->section ? expand(l->section, "", apply, l) : 0;
}

static int apply_vf(void *userdata, const char *pf, const char *options) {
        Loader *l = userdata;

        return vf_template_add(l->sim, pf, options);
}

static int load_directive(Loader *l, char *line) {
        char *word = strtok(line, " \t"), *name = strtok(NULL, " \t"), *rest = strtok(NULL, "");

        if (!name)
                return -EINVAL;
        if (strcmp(word, "%driver") == 0)
                return driver_declare(l->sim, name, rest ?: "");
        if (strcmp(word, "%vf") == 0)
                return expand(name, rest ?: "", apply_vf, l);
        if (strcmp(word, "%iommu") == 0 && strcmp(name, "off") == 0) {
                l->sim->no_iommu = true;
                return 0;
        }
        if (strcmp(word, "%include") == 0) {
                _cleanup_free_ char *copy = xstrdup(l->file);
                _cleanup_free_ char *path = *name == '/' ? xstrdup(name) : xasprintf("%s/%s", dirname(copy), name);
                return load_file(l->sim, path, l->depth + 1);
        }
        return -EINVAL;
}

static int load_line(Loader *l, char *line) {
        char *value;
        int r;

        line += strspn(line, " \t");
        if (*line == '\0' || *line == '#')
                return 0;
        if (*line == '[')
                return load_section(l, line);
        if (*line == '%')
                return load_directive(l, line);
        r = line_split(line, &l->type, &value);
        if (r < 0)
                return r;
        _cleanup_free_ char *path = xasprintf("%s/%s", l->section ?: "", line);
        return expand(path, value, apply, l);
}

static int load_lines(Loader *l, FILE *f) {
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        ssize_t n;
        int r = 0;

        for (unsigned number = 1; r == 0 && (n = getline(&line, &size, f)) >= 0; number++) {
                line[strcspn(line, "\n")] = '\0';
                _cleanup_free_ char *copy = xstrdup(line);
                r = load_line(l, line);
                if (r < 0)
                        fprintf(stderr, "%s:%u: %s: %s\n", l->file, number, copy, strerror(-r));
        }
        return r;
}

static int load_file(Sim *sim, const char *path, unsigned depth) {
        Loader l = { .sim = sim, .file = path, .depth = depth };
        FILE *f = depth < INCLUDES_MAX ? fopen(path, "re") : NULL;
        int r;

        if (!f) {
                r = depth < INCLUDES_MAX ? -errno : -ELOOP;
                fprintf(stderr, "Failed to read %s: %s\n", path, strerror(-r));
                return r;
        }
        r = load_lines(&l, f);
        free(l.section);
        fclose(f);
        return r;
}

int tree_load(Sim *sim, const char *path) {
        return load_file(sim, path, 0);
}
