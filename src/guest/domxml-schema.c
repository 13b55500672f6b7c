/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Refuses elements that <domain> repeats, because passthroughd would misread them, and text between elements, because
 * libvirt names no line for it. libvirt validates the rest with its schema.
 */

#include <errno.h>
#include <libxml/hash.h>

#include "domxml-internal.h"
#include "util/strings.h"

static const char space[] = " \t\r\n";

static bool is_text(const xmlNode *node) {
        const char *s = (const char *) node->content;

        return (node->type == XML_TEXT_NODE || node->type == XML_CDATA_SECTION_NODE) && s && s[strspn(s, space)];
}

/* Returns true when the schema may permit text in the element; in <emulator> the text is a path. */
static bool may_have_text(const Domain *d, const xmlNode *element) {
        if (element == d->root || element == d->devices || (element->ns && element->parent == d->root))
                return false;
        return (element->parent != d->devices || node_is(element, "emulator")) &&
               !xmlFirstElementChild((xmlNode *) element);
}

/* Refuses text between elements, in this element and in all elements inside it. The elements in <metadata> may have any
 * content. The depth is bounded: libxml2 limits the nesting of elements. */
static Verdict check_element(const Domain *d, const xmlNode *element, Refusal *ret) {
        bool is_metadata = element->parent == d->root && node_is(element, "metadata");
        Verdict v = VERDICT_NONE;

        for (const xmlNode *n = element->children; n && v == VERDICT_NONE; n = n->next) {
                if (is_text(n) && (is_metadata || !may_have_text(d, element)))
                        return refuse_template(ret, n, NULL, "Remove it.",
                                               "The template has text in its <%s>, where only elements are.",
                                               QUOTABLE((const char *) element->name));
                if (n->type != XML_ELEMENT_NODE || is_metadata)
                        continue;
                v = check_element(d, n, ret);
        }
        return v;
}

/* Refuses repeated elements other than <sysinfo> and <seclabel>. The hash table is for templates with very many
 * elements. */
static Verdict check_once(const xmlNode *parent, Refusal *ret) {
        xmlHashTable *seen = xmlHashCreate(0);
        Verdict v = seen ? VERDICT_NONE : refuse_no_memory(ret);

        for (xmlNode *n = parent->children; n && v == VERDICT_NONE; n = n->next) {
                const xmlChar *uri = n->type == XML_ELEMENT_NODE && n->ns ? n->ns->href : NULL;

                if (n->type != XML_ELEMENT_NODE || node_is(n, "sysinfo") || node_is(n, "seclabel") ||
                    xmlHashAddEntry2(seen, n->name, uri, n) == 0)
                        continue;
                v = xmlHashLookup2(seen, n->name, uri)
                            ? refuse_template(ret, n, NULL, NULL, "The template has more than one <%s>.",
                                              QUOTABLE((const char *) n->name))
                            : refuse_no_memory(ret);
        }
        xmlHashFree(seen, NULL);
        return v;
}

Verdict domain_check_schema(const Domain *d, Refusal *ret) {
        Verdict v = check_element(d, d->root, ret);

        return v == VERDICT_NONE ? check_once(d->root, ret) : v;
}
