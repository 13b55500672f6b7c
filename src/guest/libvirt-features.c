/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Finds features in libvirt's schemas and in its cached QEMU capabilities. */

#include "guest/libvirt-features.h"

#include <limits.h>

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xmlreader.h>

#include "util/cleanup.h"
#include "util/strings.h"

#define READ_OPTIONS (XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING)

static xmlDoc *read_document(const char *text) {
        size_t size = strlen(text);

        return size > INT_MAX ? NULL : xmlReadMemory(text, (int) size, NULL, NULL, READ_OPTIONS);
}

static bool is_element(const xmlNode *node, const char *name) {
        return node->type == XML_ELEMENT_NODE && streq((const char *) node->name, name);
}

static bool is_named(const xmlNode *node, const char *element, const char *name) {
        xmlChar *value = is_element(node, element) ? xmlGetProp(node, (const xmlChar *) "name") : NULL;
        bool same = value && streq((const char *) value, name);

        xmlFree(value);
        return same;
}

/* The first element below with this name. libxml2 limits the depth of the recursion. */
static const xmlNode *find_named(const xmlNode *above, const char *element, const char *name) {
        for (const xmlNode *n = above ? above->children : NULL; n; n = n->next) {
                const xmlNode *below;

                if (is_named(n, element, name))
                        return n;
                below = n->type == XML_ELEMENT_NODE ? find_named(n, element, name) : NULL;
                if (below)
                        return below;
        }
        return NULL;
}

static bool has_value(const xmlNode *above, const char *text) {
        for (const xmlNode *n = above ? above->children : NULL; n; n = n->next) {
                xmlChar *value = is_element(n, "value") ? xmlNodeGetContent(n) : NULL;
                bool same = value && streq((const char *) value, text);

                xmlFree(value);
                if (same || (n->type == XML_ELEMENT_NODE && has_value(n, text)))
                        return true;
        }
        return false;
}

/* Of the many <driver> elements, that of a host PCI device has the name vfio. */
static void add_drivers(LibvirtFeatures *f, const xmlNode *above) {
        for (const xmlNode *n = above ? above->children : NULL; n; n = n->next) {
                const xmlNode *iommufd;

                if (n->type != XML_ELEMENT_NODE)
                        continue;
                if (!is_named(n, "element", "driver") || !has_value(find_named(n, "attribute", "name"), "vfio")) {
                        add_drivers(f, n);
                        continue;
                }
                iommufd = find_named(n, "attribute", "iommufd");
                f->driver_model = f->driver_model || find_named(n, "attribute", "model");
                f->iommufd = f->iommufd || (iommufd && find_named(iommufd, "ref", "virYesNo"));
        }
}

/* <acpi> of a device has a nodeset, <acpi> of the domain has none. */
static bool has_acpi_nodeset(const xmlNode *above) {
        for (const xmlNode *n = above->children; n; n = n->next)
                if ((is_named(n, "element", "acpi") && find_named(n, "attribute", "nodeset")) ||
                    (n->type == XML_ELEMENT_NODE && has_acpi_nodeset(n)))
                        return true;
        return false;
}

void libvirt_features_add_schema(LibvirtFeatures *f, const char *text) {
        xmlDoc *doc = read_document(text);
        const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;

        if (root && is_element(root, "grammar")) {
                f->known = true;
                f->maxphysaddr = f->maxphysaddr || find_named(root, "element", "maxphysaddr");
                f->acpi_nodeset = f->acpi_nodeset || has_acpi_nodeset(root);
                add_drivers(f, root);
        }
        xmlFreeDoc(doc);
}

typedef struct QemuFlags {
        bool kvm, iommufd, generic_initiator;
} QemuFlags;

/* Stops after the last flag that matters: flags come first, and the CPU models after them are long. */
static void read_flags(xmlTextReader *reader, QemuFlags *ret) {
        int r;

        *ret = (QemuFlags){ 0 };
        while ((r = xmlTextReaderRead(reader)) > 0 && !(ret->kvm && ret->iommufd && ret->generic_initiator)) {
                bool is_flag = xmlTextReaderNodeType(reader) == XML_READER_TYPE_ELEMENT &&
                               streq((const char *) xmlTextReaderConstName(reader), "flag");
                xmlChar *name = is_flag ? xmlTextReaderGetAttribute(reader, (const xmlChar *) "name") : NULL;

                if (name) {
                        ret->kvm = ret->kvm || streq((const char *) name, "kvm");
                        ret->iommufd = ret->iommufd || streq((const char *) name, "iommufd");
                        ret->generic_initiator =
                                ret->generic_initiator || streq((const char *) name, "acpi-generic-initiator");
                }
                xmlFree(name);
        }
        if (r < 0)
                *ret = (QemuFlags){ .kvm = true }; /* malformed: assume KVM and no other flag */
}

bool libvirt_features_limit(LibvirtFeatures *f, const char *text) {
        size_t size = strlen(text);
        xmlTextReader *reader = size > INT_MAX ? NULL : xmlReaderForMemory(text, (int) size, NULL, NULL, READ_OPTIONS);
        QemuFlags flags = { .kvm = true };

        if (reader)
                read_flags(reader, &flags);
        xmlFreeTextReader(reader);
        if (!flags.kvm)
                return false;
        f->iommufd = f->iommufd && flags.iommufd;
        f->acpi_nodeset = f->acpi_nodeset && flags.generic_initiator;
        return true;
}
