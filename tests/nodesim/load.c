/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes nodes from the items of a .tree file, and kernel state from its directives. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "expand.h"
#include "load.h"
#include "shorthand.h"
#include "sriov.h"

enum {
        CONFIG_SIZE = 256
};

static void append(Node *file, const char *text, size_t size) {
        _cleanup_free_ char *longer = xrealloc(NULL, file->size + size + 1, 1);

        if (file->data)
                memcpy(longer, file->data, file->size);
        memcpy(longer + file->size, text, size);
        node_set(file, longer, file->size + size);
}

int tree_value_set(Node *file, const char *value) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = tree_unescape(value, &text, &size);

        if (r < 0)
                return r;
        text[size++] = '\n';
        node_set(file, text, size);
        return 0;
}

static void config_resize(Node *config, size_t size) {
        static const char zeros[TREE_CONFIG_MAX];

        if (config->size < size)
                append(config, zeros, size - config->size);
}

static void set_config(Node *config, const TreeLine *line) {
        config_resize(config, line->offset + line->size > CONFIG_SIZE ? TREE_CONFIG_MAX : CONFIG_SIZE);
        memcpy(config->data + line->offset, line->value, line->size);
}

int tree_link_set(Sim *sim, const char *path, const char *target) {
        Node *link;
        int r = node_make_at(sim->root, path, NODE_LINK, &link);

        if (r < 0)
                return r;
        /* Links in sysfs are relative, those in proc absolute. */
        _cleanup_free_ char *text = *target == '/' && strncmp(path + strspn(path, "/"), "proc/", 5) != 0
                                            ? node_relative(link->parent, target)
                                            : xstrdup(target);
        _cleanup_free_ char *name = xstrdup(link->name); /* node_link_text() may replace the node */
        node_link_text(link->parent, name, text);
        return 0;
}

static int add_vf(const char *pf, const char *options, void *userdata) {
        return vf_template_add(userdata, pf, options);
}

static int take_directive(const char *directive, const char *words, void *userdata) {
        Sim *sim = userdata;
        size_t n = strcspn(words, " \t");
        _cleanup_free_ char *name = xstrndup(words, n);
        const char *rest = words + n + strspn(words + n, " \t");

        if (n == 0)
                return -EINVAL;
        if (strcmp(directive, "%driver") == 0)
                return driver_declare(sim, name, rest);
        if (strcmp(directive, "%vf") == 0)
                return tree_expand(name, rest, add_vf, sim);
        if (strcmp(directive, "%iommu") == 0 && strcmp(name, "off") == 0) {
                sim->no_iommu = true;
                return 0;
        }
        return -EINVAL;
}

static int take_file(Sim *sim, const TreeLine *line, bool is_more) {
        Node *file;
        int r = node_make_at(sim->root, line->path, NODE_FILE, &file);

        if (r < 0)
                return r;
        if (line->item == TREE_CONFIG)
                set_config(file, line);
        else if (is_more)
                append(file, line->value, line->size);
        else
                node_set(file, line->value, line->size);
        if (line->item == TREE_ERROR) {
                node_set(file, "", 0);
                file->error = tree_error_number(line->value);
        }
        return 0;
}

static int take_line(const TreeLine *line, bool is_more, void *userdata) {
        Sim *sim = userdata;
        Node *dir;

        switch (line->item) {
        case TREE_LINK:
                return tree_link_set(sim, line->path, line->value);
        case TREE_DIRECTORY:
                return node_make_at(sim->root, line->path, NODE_DIR, &dir);
        default:
                return take_file(sim, line, is_more);
        }
}

int tree_load(Sim *sim, const char *path) {
        static const ShorthandFunctions functions = { take_line, take_directive };

        return shorthand_read(path, &functions, sim);
}
