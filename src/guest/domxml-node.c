/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Writes nodes, and formats them. Callers need not check for errors: out of memory sets d->failed. */

#include <libxml/xmlsave.h>

#include "domxml-internal.h"
#include "util/strings.h"

xmlNode *node_add(Domain *d, xmlNode *parent, const char *name) {
        xmlNode *node = parent ? xmlNewChild(parent, NULL, (const xmlChar *) name, NULL) : NULL;

        if (!node)
                d->failed = true;
        return node;
}

xmlNode *node_need(Domain *d, xmlNode *parent, const char *name) {
        xmlNode *node = node_find(parent, name);

        return node ? node : node_add(d, parent, name);
}

void node_set(Domain *d, xmlNode *node, const char *attribute, const char *format, ...) {
        _cleanup_free_ char *s = FORMAT_ARGUMENTS(format);

        d->failed |= !s;
        if (node && s && !xmlSetProp(node, (const xmlChar *) attribute, (const xmlChar *) s))
                d->failed = true;
}

void node_set_text(Domain *d, xmlNode *node, const char *format, ...) {
        _cleanup_free_ char *s = FORMAT_ARGUMENTS(format);
        xmlNode *text;

        d->failed |= !s;
        if (!node || !s)
                return;

        xmlNodeSetContent(node, NULL);
        text = xmlNewDocText(d->doc, (const xmlChar *) s);
        if (!text || !xmlAddChild(node, text))
                d->failed = true;
}

void node_set_cpus(Domain *d, xmlNode *node, const char *attribute, const CpuSet *set) {
        _cleanup_free_ char *s = cpuset_format(set);

        if (s)
                node_set(d, node, attribute, "%s", s);
        else
                d->failed = true;
}

void node_set_size(Domain *d, xmlNode *node, const char *attribute, uint64_t bytes) {
        static const struct {
                unsigned shift;
                const char *name;
        } units[] = { { 30, "GiB" }, { 20, "MiB" }, { 10, "KiB" }, { 0, "b" } };
        size_t i = 0;

        while (bytes & ((1ULL << units[i].shift) - 1))
                i++;
        if (attribute)
                node_set(d, node, attribute, "%llu", (unsigned long long) (bytes >> units[i].shift));
        else
                node_set_text(d, node, "%llu", (unsigned long long) (bytes >> units[i].shift));
        node_set(d, node, "unit", "%s", units[i].name);
}

static xmlNode *domain_insert(Domain *d, xmlNode *node) {
        xmlNode *inserted = NULL;

        if (node)
                inserted = d->anchor ? xmlAddPrevSibling(d->anchor, node) : xmlAddChild(d->root, node);
        if (!inserted) {
                d->failed = true;
                xmlFreeNode(node);
        }
        return inserted;
}

xmlNode *domain_add(Domain *d, const char *name) {
        return domain_insert(d, xmlNewDocNode(d->doc, NULL, (const xmlChar *) name, NULL));
}

xmlNode *domain_take(Domain *d, const char *name) {
        xmlNode *node = node_find(d->root, name);

        if (!node)
                return domain_add(d, name);
        if (node == d->anchor)
                d->anchor = xmlNextElementSibling(node);
        xmlUnlinkNode(node);
        return domain_insert(d, node);
}

void domain_add_comment(Domain *d, const char *format, ...) {
        _cleanup_free_ char *text = FORMAT_ARGUMENTS(format), *padded = text ? string_format(" %s ", text) : NULL;
        xmlNode *comment = padded ? xmlNewDocComment(d->doc, (const xmlChar *) padded) : NULL;

        if (!comment || !xmlAddPrevSibling(d->root, comment))
                d->failed = true;
}

char *document_text(xmlDoc *doc, xmlNode *node) {
        xmlBuffer *buffer = xmlBufferCreate();
        xmlSaveCtxt *save = buffer ? xmlSaveToBuffer(buffer, "UTF-8", XML_SAVE_FORMAT | XML_SAVE_NO_DECL) : NULL;
        bool ok = save && (node ? xmlSaveTree(save, node) : xmlSaveDoc(save, doc)) >= 0;
        char *text = NULL;

        if (save && xmlSaveClose(save) < 0)
                ok = false;
        if (ok)
                text = strdup((const char *) xmlBufferContent(buffer));
        xmlBufferFree(buffer);
        return text;
}
