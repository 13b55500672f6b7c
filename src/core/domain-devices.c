/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "core/domain-devices.h"

#include <errno.h>
#include <libxml/parser.h>
#include <stdlib.h>

#include "util/cleanup.h"
#include "util/strings.h"

static const xmlNode *find_child(const xmlNode *node, const char *name) {
        for (const xmlNode *child = node->children; child; child = child->next)
                if (child->type == XML_ELEMENT_NODE && streq((const char *) child->name, name))
                        return child;
        return NULL;
}

/* "0x82", "130". -EINVAL when it is not there. */
static int read_number(const xmlNode *node, const char *name, unsigned max, unsigned *ret) {
        xmlChar *text = xmlGetProp(node, (const xmlChar *) name);
        unsigned long value;
        char *end;

        if (!text)
                return -EINVAL;
        errno = 0;
        value = strtoul((const char *) text, &end, 0);
        if (errno != 0 || *text == '\0' || *end != '\0' || value > max) {
                xmlFree(text);
                return -EINVAL;
        }
        xmlFree(text);
        *ret = (unsigned) value;
        return 0;
}

static bool read_address(const xmlNode *node, PciAddress *ret) {
        unsigned domain = 0, bus, slot, function;

        (void) read_number(node, "domain", UINT32_MAX, &domain);
        if (read_number(node, "bus", UINT8_MAX, &bus) < 0 || read_number(node, "slot", 31, &slot) < 0 ||
            read_number(node, "function", 7, &function) < 0)
                return false;
        *ret = (PciAddress){
                .domain = domain, .bus = (uint8_t) bus, .slot = (uint8_t) slot, .function = (uint8_t) function
        };
        return true;
}

int domain_devices_append(const char *xml, PciAddress **devices, size_t *n) {
        xmlDoc *doc = xmlReadMemory(xml, (int) strlen(xml), NULL, NULL,
                                    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
        const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
        const xmlNode *list = root && streq((const char *) root->name, "domain") ? find_child(root, "devices") : NULL;
        int r = list ? 0 : -EINVAL;

        for (const xmlNode *device = list ? list->children : NULL; r >= 0 && device; device = device->next) {
                const xmlNode *source = find_child(device, "source");
                const xmlNode *address = source ? find_child(source, "address") : NULL;
                PciAddress a;

                if (address && read_address(address, &a))
                        r = pci_address_append(devices, n, a);
        }
        xmlFreeDoc(doc);
        return r;
}
