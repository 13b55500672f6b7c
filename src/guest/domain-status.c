/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "guest/domain-status.h"

#include <errno.h>

#include <libxml/parser.h>

#include "guest/xmlnode.h"
#include "util/cleanup.h"
#include "util/strings.h"

static bool read_address(const xmlNode *node, PciAddress *ret) {
        unsigned domain = 0, bus, slot, function;

        int r = node_get_number(node, "domain", UINT32_MAX, &domain);

        if ((r < 0 && r != -ENOENT) || node_get_number(node, "bus", UINT8_MAX, &bus) < 0 ||
            node_get_number(node, "slot", 31, &slot) < 0 || node_get_number(node, "function", 7, &function) < 0)
                return false;
        *ret = (PciAddress){
                .domain = domain, .bus = (uint8_t) bus, .slot = (uint8_t) slot, .function = (uint8_t) function
        };
        return true;
}

static int append_source(const xmlNode *device, DomainStatus *s) {
        const xmlNode *address = node_find(node_find(device, "source"), "address");
        PciAddress a;

        return address && read_address(address, &a) ? pci_address_append(&s->devices, &s->n_devices, a) : 0;
}

/* 0, -EINVAL when the element is missing, -ENOMEM. */
static int read_text(const xmlNode *domain, const char *name, char **ret) {
        const xmlNode *node = node_find(domain, name);

        if (!node)
                return -EINVAL;
        *ret = (char *) xmlNodeGetContent(node);
        return *ret ? 0 : -ENOMEM;
}

/*
 * libvirt writes the file before it runs QEMU, and changes the reason only when QEMU's monitor answers. QEMU
 * preallocates its memory before that.
 */
static bool is_starting(const xmlNode *root) {
        _cleanup_free_ char *reason = node_get(root, "reason");

        return reason && streq(reason, "starting up");
}

static int read_status(const xmlNode *root, DomainStatus *s) {
        const xmlNode *domain = root && node_is(root, "domstatus") ? node_find(root, "domain") : NULL;
        const xmlNode *list = node_find(domain, "devices");
        unsigned pid;
        int r;

        if (!list || node_get_number(root, "pid", INT32_MAX, &pid) < 0)
                return -EINVAL;
        s->pid = (int) pid;
        s->starting = is_starting(root);
        r = read_text(domain, "name", &s->name);
        if (r >= 0 && read_text(domain, "uuid", &s->uuid) == -ENOMEM)
                r = -ENOMEM;
        for (const xmlNode *device = list->children; r >= 0 && device; device = device->next) {
                const xmlNode *actual = node_find(device, "actual");

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
        /* Libvirt writes no DOCTYPE; entities of one could make a little text very long. */
        int r = read_status(doc && !doc->intSubset ? xmlDocGetRootElement(doc) : NULL, &s);

        xmlFreeDoc(doc);
        if (r < 0)
                return r;
        *ret = s;
        s = (DomainStatus){ 0 };
        return 0;
}
