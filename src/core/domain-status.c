/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "core/domain-status.h"

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

static int append_source(const xmlNode *device, DomainStatus *s) {
        const xmlNode *source = find_child(device, "source");
        const xmlNode *address = source ? find_child(source, "address") : NULL;
        PciAddress a;

        return address && read_address(address, &a) ? pci_address_append(&s->devices, &s->n_devices, a) : 0;
}

/* -EINVAL when it is not there. */
static int read_text(const xmlNode *domain, const char *name, char **ret) {
        const xmlNode *node = find_child(domain, name);
        xmlChar *text = node ? xmlNodeGetContent(node) : NULL;
        int r = text ? string_copy(ret, (const char *) text) : -EINVAL;

        xmlFree(text);
        return r;
}

static int read_status(const xmlNode *root, DomainStatus *s) {
        const xmlNode *domain =
                root && streq((const char *) root->name, "domstatus") ? find_child(root, "domain") : NULL;
        const xmlNode *list = domain ? find_child(domain, "devices") : NULL;
        unsigned pid;
        int r = list ? read_number(root, "pid", INT32_MAX, &pid) : -EINVAL;

        if (r < 0)
                return r;
        s->pid = (int) pid;
        r = read_text(domain, "name", &s->name);
        if (r >= 0 && read_text(domain, "uuid", &s->uuid) == -ENOMEM)
                r = -ENOMEM;
        for (const xmlNode *device = list->children; r >= 0 && device; device = device->next) {
                const xmlNode *actual = find_child(device, "actual");

                r = append_source(device, s);
                if (r >= 0 && actual)
                        r = append_source(actual, s);
        }
        return r;
}

void domain_status_done(DomainStatus *s) {
        free(s->name);
        free(s->uuid);
        free(s->devices);
}

int domain_status_parse(const char *xml, DomainStatus *ret) {
        _cleanup_(domain_status_done) DomainStatus s = { 0 };
        xmlDoc *doc = xmlReadMemory(xml, (int) strlen(xml), NULL, NULL,
                                    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_HUGE);
        int r = read_status(doc ? xmlDocGetRootElement(doc) : NULL, &s);

        xmlFreeDoc(doc);
        if (r < 0)
                return r;
        *ret = s;
        s = (DomainStatus){ 0 };
        return 0;
}
