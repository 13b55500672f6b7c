/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the tree as it is now in the .tree format, sorted, one full path a line: two dumps can be compared, and a dump
 * can be served again. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include "dump.h"
#include "expand.h"

enum {
        ROW = 16
};

static void dump_config(const Node *config, const char *path, FILE *f) {
        static const char zeros[ROW];
        bool shown_extended = config->size <= 256, shown = false;

        for (size_t at = 0; at < config->size; at += ROW) {
                if (at + ROW > config->size || memcmp(config->data + at, zeros, ROW) == 0)
                        continue;
                fprintf(f, "%s@0x%zx=", path, at);
                for (size_t i = 0; i < ROW; i++)
                        fprintf(f, "%s%02x", i ? " " : "", (unsigned char) config->data[at + i]);
                fputc('\n', f);
                shown = true;
                shown_extended = shown_extended || at >= 256;
        }
        if (!shown || !shown_extended) /* keeps the length */
                fprintf(f, "%s@0x%x=00\n", path, config->size > 256 ? 256 : 0);
}

static void dump_file(const Node *file, const char *path, FILE *f) {
        bool newline = file->size > 0 && file->data[file->size - 1] == '\n';

        if (file->error > 0)
                fprintf(f, "%s!%s\n", path, strerrorname_np(file->error));
        else if (strcmp(file->name, "config") == 0 && file->size >= 256)
                dump_config(file, path, f);
        else {
                fprintf(f, "%s%s", path, newline ? "=" : ":=");
                escape(f, file->data ?: "", file->size - newline);
                fputc('\n', f);
        }
}

static void dump_node(const Sim *sim, const Node *node, const char *path, FILE *f) {
        if (node->type == NODE_LINK)
                fprintf(f, "%s -> %s\n", path, node->data);
        else if (node->type == NODE_FILE)
                dump_file(node, path, f);
        else if (node->n_children == 0)
                fprintf(f, "%s/\n", path);
        else
                for (size_t i = 0; i < node->n_children; i++) {
                        const Node *child = node->children[i];

                        if (child == sim->control)
                                continue;
                        _cleanup_free_ char *below = xasprintf("%s%s%s", path, *path ? "/" : "", child->name);
                        dump_node(sim, child, below, f);
                }
}

static void dump_ids(const char *start, const DriverId *ids, size_t n, FILE *f) {
        for (size_t i = 0; i < n; i++)
                fprintf(f, "%s%s:%s", i ? "," : start, ids[i].vendor, ids[i].device);
}

static void dump_driver(const Driver *d, FILE *f) {
        fprintf(f, "%%driver %s", d->name);
        dump_ids(" ids=", d->ids, d->n_ids, f);
        if (d->class_prefix)
                fprintf(f, " class=%s", d->class_prefix);
        fprintf(f, "%s%s%s\n", d->sriov ? " sriov" : "", d->vfio ? " vfio" : "", d->any ? " any" : "");
        dump_ids("# new_id ", d->new_ids, d->n_new_ids, f);
        if (d->n_new_ids)
                fputc('\n', f);
}

void sim_dump(const Sim *sim, FILE *f) {
        for (size_t i = 0; i < sim->n_drivers; i++)
                dump_driver(sim->drivers[i], f);
        for (size_t i = 0; i < sim->n_vfs; i++)
                fprintf(f, "%%vf %s device=%s offset=%lu stride=%lu group=%s\n", sim->vfs[i].pf, sim->vfs[i].device,
                        sim->vfs[i].offset, sim->vfs[i].stride, sim->vfs[i].group_of_pf ? "pf" : "own");
        if (sim->no_iommu)
                fputs("%iommu off\n", f);
        dump_node(sim, sim->root, "", f);
}
