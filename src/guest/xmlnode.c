/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "guest/xmlnode.h"

#include <errno.h>

#include "util/strings.h"

bool node_is(const xmlNode *node, const char *name) {
        return node->type == XML_ELEMENT_NODE && !node->ns && streq((const char *) node->name, name);
}

xmlNode *node_find(const xmlNode *parent, const char *name) {
        for (xmlNode *n = parent ? parent->children : NULL; n; n = n->next)
                if (node_is(n, name))
                        return n;
        return NULL;
}

void node_remove(xmlNode *node) {
        xmlUnlinkNode(node);
        xmlFreeNode(node);
}

void node_remove_all(xmlNode *parent, const char *name) {
        for (xmlNode *n = parent ? parent->children : NULL, *next; n; n = next) {
                next = n->next;
                if (node_is(n, name))
                        node_remove(n);
        }
}

char *node_get(const xmlNode *node, const char *attribute) {
        return (char *) xmlGetProp(node, (const xmlChar *) attribute);
}

char *node_get_text(const xmlNode *node) {
        static const char space[] = " \t\r\n";
        char *s = (char *) xmlNodeGetContent(node);
        size_t skip, size;

        if (!s)
                return NULL;
        skip = strspn(s, space);
        size = strlen(s + skip);
        while (size > 0 && strchr(space, s[skip + size - 1]))
                size--;
        memmove(s, s + skip, size);
        s[size] = '\0';
        return s;
}

bool node_has(const xmlNode *node, const char *attribute, const char *value) {
        _cleanup_free_ char *s = node_get(node, attribute);

        return s && streq(s, value);
}

int node_get_number(const xmlNode *node, const char *attribute, unsigned max, unsigned *ret) {
        _cleanup_free_ char *s = node_get(node, attribute);
        const char *digits = s ? s + strspn(s, " \t\r\n") : NULL; /* libvirt skips blanks, too */
        unsigned long long n;
        char *end;

        if (!s)
                return -ENOENT;
        if (digits[0] < '0' || digits[0] > '9')
                return -EINVAL;
        errno = 0;
        n = strtoull(digits, &end, 0);
        if (*end != '\0')
                return -EINVAL;
        if (errno != 0 || n > max)
                return -ERANGE;
        *ret = (unsigned) n;
        return 0;
}

uint64_t node_get_size(const xmlNode *node) {
        _cleanup_free_ char *number = node_get_text(node), *unit = node_get(node, "unit"), *text = NULL;
        uint64_t n;

        if (!number || string_replace(&text, "%s%s", number, unit ? unit : "KiB") < 0 || parse_size(text, &n) < 0)
                return 0;
        return n;
}
