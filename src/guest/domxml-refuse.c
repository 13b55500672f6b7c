/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Refuses a template, with the line of the problem. */

#include "domxml-internal.h"
#include "util/strings.h"

/* Returns the line where a text begins: libxml2 tells where it ends. */
static long text_line(const xmlNode *text) {
        const char *s = (const char *) text->content;
        long line = xmlGetLineNo(text);

        for (s += strspn(s, " \t\r\n"); *s; s++)
                line -= *s == '\n';
        return line;
}

long node_line(const xmlNode *node) {
        return node->type == XML_TEXT_NODE ? text_line(node) : xmlGetLineNo(node);
}

Verdict refuse_template(Refusal *ret, const xmlNode *at, const PciAddress *device, const char *remedy,
                        const char *format, ...) {
        _cleanup_free_ char *text = NULL;

        if (!ret)
                return VERDICT_INVALID_TEMPLATE;
        text = FORMAT_ARGUMENTS(format);
        if (!text)
                return refuse(ret, VERDICT_INVALID_TEMPLATE, device, remedy, "Out of memory.");
        if (!at)
                return refuse(ret, VERDICT_INVALID_TEMPLATE, device, remedy, "%s", text);
        return refuse(ret, VERDICT_INVALID_TEMPLATE, device, remedy, "%s See line %ld.", text, node_line(at));
}
