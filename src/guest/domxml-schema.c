/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Refuses what no version of libvirt's schema permits in a domain: text between elements, elements and attributes of
 * other namespaces, repeated elements, addresses out of range. Kinds of devices and their settings are left to libvirt.
 */

#include <ctype.h>
#include <errno.h>
#include <libxml/hash.h>

#include "domxml-internal.h"
#include "util/strings.h"

static const char space[] = " \t\r\n";

static bool is_text(const xmlNode *node) {
        const char *s = (const char *) node->content;

        return (node->type == XML_TEXT_NODE || node->type == XML_CDATA_SECTION_NODE) && s && s[strspn(s, space)];
}

/* True when the schema permits text in the element. An <emulator> contains a path. */
static bool may_have_text(const Domain *d, const xmlNode *element) {
        if (element == d->root || element == d->devices || (element->ns && element->parent == d->root))
                return false;
        return (element->parent != d->devices || node_is(element, "emulator")) &&
               !xmlFirstElementChild((xmlNode *) element);
}

/* Only QEMU's elements in <domain> may have a namespace. */
static bool may_have_namespace(const Domain *d, const xmlNode *element) {
        const xmlNode *parent = element->parent;

        return streq((const char *) element->ns->href, DOMXML_QEMU_NAMESPACE) &&
               (parent == d->root || (parent->ns && streq((const char *) parent->ns->href, DOMXML_QEMU_NAMESPACE)));
}

static Verdict check_attributes(const Domain *d, const xmlNode *element, Refusal *ret) {
        for (const xmlAttr *a = element->properties; a; a = a->next)
                if (a->ns || element == d->devices)
                        return refuse_template(ret, element, NULL, "Remove the attribute.",
                                               "The template's <%s> has an attribute '%s%s%s', which no <%s> has.",
                                               QUOTABLE((const char *) element->name),
                                               a->ns && a->ns->prefix ? QUOTABLE((const char *) a->ns->prefix) : "",
                                               a->ns && a->ns->prefix ? ":" : "", QUOTABLE((const char *) a->name),
                                               QUOTABLE((const char *) element->name));
        return VERDICT_NONE;
}

/* <metadata> may contain anything but text of its own. libxml2 limits the nesting. */
static Verdict check_element(const Domain *d, const xmlNode *element, Refusal *ret) {
        bool is_metadata = element->parent == d->root && node_is(element, "metadata");
        Verdict v = check_attributes(d, element, ret);

        for (const xmlNode *n = element->children; n && v == VERDICT_NONE; n = n->next) {
                if (is_text(n) && (is_metadata || !may_have_text(d, element)))
                        return refuse_template(ret, n, NULL, "Remove it.",
                                               "The template has text in its <%s>, where only elements are.",
                                               QUOTABLE((const char *) element->name));
                if (n->type != XML_ELEMENT_NODE || is_metadata)
                        continue;
                if (n->ns && !may_have_namespace(d, n))
                        return refuse_template(ret, n, NULL, "Remove it, or put it into <metadata>.",
                                               "The template has an element <%s> of another namespace in its <%s>.",
                                               QUOTABLE((const char *) n->name),
                                               QUOTABLE((const char *) element->name));
                v = check_element(d, n, ret);
        }
        return v;
}

static bool is_among(const xmlNode *node, const char *const *names) {
        for (; *names; names++)
                if (node_is(node, *names))
                        return true;
        return false;
}

/*
 * Refuses repeated elements. names: the elements that may be repeated (may), or those that may not. A hash table,
 * because a template may have very many elements.
 */
static Verdict check_once(const xmlNode *parent, const char *const *names, bool may, Refusal *ret) {
        xmlHashTable *seen = xmlHashCreate(0);
        Verdict v = seen ? VERDICT_NONE : refuse_no_memory(ret);

        for (xmlNode *n = parent->children; n && v == VERDICT_NONE; n = n->next) {
                const xmlChar *uri = n->type == XML_ELEMENT_NODE && n->ns ? n->ns->href : NULL;

                if (n->type != XML_ELEMENT_NODE || is_among(n, names) == may ||
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

/* A number in an address: the most decimal digits, and the most hexadecimal digits after "0x"; 0: not in that base. */
typedef struct Field {
        const char *name;
        unsigned decimal, hex, max;
        bool required;
} Field;

#define FIELDS_MAX 4

static const struct AddressType {
        const char *name;
        Field fields[FIELDS_MAX];
} address_types[] = {
        { "pci",
          { { "domain", 10, 8, UINT32_MAX }, { "bus", 3, 2, 255 }, { "slot", 2, 2, 31 }, { "function", 1, 1, 7 } } },
        { "drive",
          { { "controller", 2, 0, 99 }, { "bus", 2, 0, 99 }, { "target", 2, 0, 99 }, { "unit", 5, 0, 99999 } } },
        { "virtio-serial", { { "controller", 2, 0, 99, true }, { "bus", 2, 0, 99 }, { "port", 2, 0, 99 } } },
        { "ccid", { { "controller", 2, 0, 99, true }, { "slot", 2, 0, 99 } } },
        { "usb", { { "bus", 3, 3, 0xfff, true } } },
        { "spapr-vio", { { "reg", 8, 8, UINT32_MAX } } },
        { "ccw", { { "cssid", 3, 2, 254 }, { "ssid", 1, 1, 3 }, { "devno", 5, 4, UINT16_MAX } } },
        { "isa", { { "iobase", 0, 4, UINT16_MAX }, { "irq", 0, 1, 15 } } },
        { "dimm", { { NULL } } },
        { "virtio-mmio", { { NULL } } },
        { "unassigned", { { NULL } } },
};

static const struct AddressType *find_address_type(const char *name) {
        for (size_t i = 0; name && i < ELEMENTSOF(address_types); i++)
                if (streq(address_types[i].name, name))
                        return &address_types[i];
        return NULL;
}

static bool is_number(const Field *f, const char *text) {
        bool hex = strncmp(text, "0x", 2) == 0;
        const char *digits = hex ? text + 2 : text;
        size_t n = strlen(digits);
        uint64_t value;

        if (n == 0 || n > (hex ? f->hex : f->decimal))
                return false;
        return (hex ? parse_hex(digits, f->max, &value) : parse_unsigned(digits, f->max, &value)) >= 0;
}

/* Up to four port numbers, one for each hub: "1.2". */
static bool is_usb_port(const char *text) {
        static const Field hop = { "port", 3, 3, 0xfff };
        char copy[32], *rest = copy, *word;
        unsigned n = 0;

        if (strlen(text) >= sizeof(copy))
                return false;
        strcpy(copy, text);
        while ((word = strsep(&rest, ".")))
                if (!is_number(&hop, word) || ++n > 4)
                        return false;
        return true;
}

static Verdict refuse_address(const xmlNode *address, const char *name, const char *value, Refusal *ret) {
        return refuse_template(ret, address, NULL, "Write it as 'virsh dumpxml' does, or leave the <address> out.",
                               "The template has an <address> whose %s is '%s'.", name, QUOTABLE(value));
}

static Verdict check_address(const xmlNode *address, Refusal *ret) {
        _cleanup_free_ char *type = node_get(address, "type"), *port = NULL, *multifunction = NULL;
        const struct AddressType *t = find_address_type(type);

        if (!t)
                return refuse_address(address, "type", type ?: "", ret);
        for (size_t i = 0; i < FIELDS_MAX && t->fields[i].name; i++) {
                const Field *f = &t->fields[i];
                _cleanup_free_ char *value = node_get(address, f->name);

                if (value ? !is_number(f, value) : f->required)
                        return refuse_address(address, f->name, value ?: "", ret);
        }
        port = streq(t->name, "usb") ? node_get(address, "port") : NULL;
        if (port && !is_usb_port(port))
                return refuse_address(address, "port", port, ret);
        multifunction = streq(t->name, "pci") ? node_get(address, "multifunction") : NULL;
        if (multifunction && !streq(multifunction, "on") && !streq(multifunction, "off"))
                return refuse_address(address, "multifunction", multifunction, ret);
        return VERDICT_NONE;
}

static Verdict check_addresses(const xmlNode *devices, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (const xmlNode *dev = devices->children; dev && v == VERDICT_NONE; dev = dev->next)
                for (const xmlNode *n = dev->type == XML_ELEMENT_NODE ? dev->children : NULL; n && v == VERDICT_NONE;
                     n = n->next)
                        if (node_is(n, "address"))
                                v = check_address(n, ret);
        return v;
}

Verdict domain_check_schema(const Domain *d, Refusal *ret) {
        static const char *const repeated[] = { "sysinfo", "seclabel", NULL };
        static const char *const once[] = { "emulator", "nvram", "vsock", NULL };
        Verdict v = check_element(d, d->root, ret);

        if (v == VERDICT_NONE)
                v = check_once(d->root, repeated, true, ret);
        if (v == VERDICT_NONE && d->devices)
                v = check_once(d->devices, once, false, ret);
        if (v == VERDICT_NONE && d->devices)
                v = check_addresses(d->devices, ret);
        return v;
}
