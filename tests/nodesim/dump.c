/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the present tree in the .tree format, sorted, with one full path per line. Two dumps can be compared, and a
 * dump can be served again. */
#include <stdio.h>
#include <string.h>

#include "dump.h"
#include "util/tree.h"
#include "vfattr.h"

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
        if (d->max_vfs)
                fprintf(f, " max-vfs=%lu", d->max_vfs);
        fprintf(f, "%s%s%s%s\n", d->sriov ? " sriov" : "", d->keeps_vfs ? " keeps-vfs" : "", d->vfio ? " vfio" : "",
                d->any ? " any" : "");
        dump_ids("# new_id ", d->new_ids, d->n_new_ids, f);
        if (d->n_new_ids)
                fputc('\n', f);
}

static void dump_vf(const VfTemplate *vf, FILE *f) {
        fprintf(f, "%%vf %s device=%s offset=%lu stride=%lu group=%s", vf->pf, vf->device, vf->offset, vf->stride,
                vf->group_of_pf ? "pf" : "own");
        if (vf->kind != VF_KIND_NONE)
                fprintf(f, " attributes=%s", vf_kind_name(vf->kind));
        if (vf->total)
                fprintf(f, " total=%lu", vf->total);
        for (const char *method = vf->reset_method; method && *method; method += strspn(method, " ")) {
                size_t n = strcspn(method, " ");

                fprintf(f, "%s%.*s", method == vf->reset_method ? " reset=" : ",", (int) n, method);
                method += n;
        }
        fputc('\n', f);
}

static void dump_directives(const Sim *sim, FILE *f) {
        for (size_t i = 0; i < sim->n_drivers; i++)
                dump_driver(sim->drivers[i], f);
        for (size_t i = 0; i < sim->n_vfs; i++)
                dump_vf(&sim->vfs[i], f);
        if (sim->no_iommu)
                fputs("%iommu off\n", f);
}

void sim_dump(const Sim *sim, FILE *f) {
        dump_directives(sim, f);
        dump_node(sim, sim->root, "", f);
}

void sim_print(const Sim *sim, FILE *f) {
        dump_node(sim, sim->root, "", f);
}
