/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the tree as it is now in the .tree format, sorted, one full path a line: two dumps can be compared, and a dump
 * can be served again. */
#include <stdio.h>

#include "dump.h"
#include "util/tree.h"

static void dump_file(const Node *file, const char *path, FILE *f) {
        if (file->error > 0)
                tree_write_error(f, path, file->error);
        else
                tree_write_file(f, path, file->data ?: "", file->size);
}

static void dump_node(const Sim *sim, const Node *node, const char *path, FILE *f) {
        if (node->type == NODE_LINK)
                tree_write_link(f, path, node->data);
        else if (node->type == NODE_FILE)
                dump_file(node, path, f);
        else if (node->n_children == 0)
                tree_write_directory(f, path);
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
