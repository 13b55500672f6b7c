/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl gres: prints the pools of the node as GRES for the files of Slurm. */
#include <errno.h>
#include <stdio.h>

#include "document.h"
#include "reply.h"
#include "report.h"
#include "slurm/gres.h"
#include "util/strings.h"
#include "verbs.h"

/* slurmd finds no files for these devices, so each line of gres.conf has CountOnly. It ends when a name has two lines.
 */
static int print_text(const GresList *list, const char *gres) {
        printf("# gres.conf; if several nodes read it, NodeName= of this node before each line\n");
        for (size_t i = 0; i < list->n; i++) {
                const Gres *g = &list->items[i];

                printf("Name=" GRES_PREFIX "%s%s%s Count=%u Flags=CountOnly\n", g->pool, g->type ? " Type=" : "",
                       g->type ?: "", g->total);
        }
        printf("# slurm.conf: for all nodes, and in the line NodeName= of this node\nGresTypes=");
        for (size_t i = 0; i < list->n; i++)
                printf("%s" GRES_PREFIX "%s", i > 0 ? "," : "", list->items[i].pool);
        printf("\nGres=%s\n", gres);
        return 0;
}

static json_object *make_item(const Gres *g) {
        json_object *o = json_object_new_object();
        _cleanup_free_ char *name = string_format(GRES_PREFIX "%s", g->pool);

        if (o && name && document_add(o, "name", name) && document_add(o, "pool", g->pool) &&
            document_add(o, "type", g->type) &&
            json_object_object_add(o, "total", json_object_new_int64(g->total)) == 0 &&
            json_object_object_add(o, "healthy", json_object_new_int64(g->healthy)) == 0)
                return o;
        json_object_put(o);
        return NULL;
}

static int print_gres_json(const Args *args, const GresList *list, const char *gres) {
        json_object *o = json_object_new_object(), *items = json_object_new_array();
        bool ok = o && items && document_add(o, "gres", gres) && json_object_object_add(o, "resources", items) == 0;

        for (size_t i = 0; ok && i < list->n; i++) {
                json_object *item = make_item(&list->items[i]);

                ok = item && json_object_array_add(items, item) == 0;
        }
        if (ok)
                return document_print(args, o);
        json_object_put(o);
        return report_errno(args, -ENOMEM, "Cannot print");
}

int verb_gres(const Args *args) {
        _cleanup_json_ json_object *node = NULL;
        _cleanup_gres_list_ GresList list = { 0 };
        _cleanup_free_ char *gres = NULL;
        int r = reply_ask_once(args, "Describe", NULL, NULL, &node);

        if (r < 0)
                return r;
        if (gres_list_new(node, &list) < 0 || !(gres = gres_list_format(&list)))
                return report_errno(args, -ENOMEM, "Cannot print");
        return args_has(args, OPTION_JSON) ? print_gres_json(args, &list, gres) : print_text(&list, gres);
}
