/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "guest/domain-facts.h"

#include <errno.h>
#include <limits.h>

#include <libxml/parser.h>

#include "domain-facts-internal.h"
#include "model/json-parse.h"
#include "model/json-value.h"
#include "model/pciaddr.h"
#include "util/cleanup.h"
#include "util/fileio.h"
#include "util/strings.h"

#define VERSION_OF(major, minor) ((major) * 1000000UL + (minor) * 1000UL)

/* Refuses a DOCTYPE: libvirt writes none, and entities could expand to a very long text. */
xmlDoc *domain_document_read(const char *xml) {
        size_t size = strlen(xml);
        xmlDoc *doc =
                size > INT_MAX
                        ? NULL
                        : xmlReadMemory(xml, (int) size, NULL, NULL,
                                        XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_HUGE);

        if (!doc || !doc->intSubset)
                return doc;
        xmlFreeDoc(doc);
        return NULL;
}

static bool read_address(const xmlNode *node, PciAddress *ret) {
        unsigned domain = 0, bus, slot, function;
        int r = node_get_number(node, "domain", UINT32_MAX, &domain);

        if ((r < 0 && r != -ENOENT) || node_get_number(node, "bus", UINT8_MAX, &bus) < 0 ||
            node_get_number(node, "slot", 31, &slot) < 0 || node_get_number(node, "function", 7, &function) < 0)
                return false;
        *ret = (PciAddress) {
                .domain = domain, .bus = (uint8_t) bus, .slot = (uint8_t) slot, .function = (uint8_t) function
        };
        return true;
}

const xmlNode *domain_document_devices(const xmlDoc *doc) {
        const xmlNode *root = doc ? xmlDocGetRootElement((xmlDoc *) doc) : NULL;

        return root && node_is(root, "domain") ? node_find(root, "devices") : NULL;
}

bool domain_device_source(const xmlNode *device, char ret[static UUID_STRING_MAX]) {
        const xmlNode *address = node_find(node_find(device, "source"), "address");
        _cleanup_free_ char *uuid = address ? node_get(address, "uuid") : NULL;
        PciAddress a;

        if (!address || (uuid ? !text_is_uuid(uuid) : !read_address(address, &a)))
                return false;
        (void) stpcpy(ret, uuid ?: PCI_ADDRESS_STR(a));
        return true;
}

bool domain_device_address(const xmlNode *device, PciAddress *ret) {
        const xmlNode *address = node_find(device, "address");

        return address && node_has(address, "type", "pci") && read_address(address, ret);
}

bool domain_facts_xen(const char *xml) {
        xmlDoc *doc = domain_document_read(xml);
        const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
        bool xen = root && node_is(root, "domain") && node_has(root, "type", "xen");

        xmlFreeDoc(doc);
        return xen;
}

/* Formats the name of the host device and, unless buses is NULL, its place in the guest if the document has it. NULL
 * when out of memory. */
static char *describe_device(const xmlNode *device, const char *source, const DomainBuses *buses) {
        char place[GUEST_PLACE_TEXT_MAX];
        GuestPlace p;

        return buses && domain_buses_find(buses, device, &p)
                       ? string_format("%s %s", source, guest_place_format(&p, place))
                       : strdup(source);
}

static int list_devices(const char *xml, bool with_places, char ***ret, size_t *ret_n) {
        xmlDoc *doc = domain_document_read(xml);
        const xmlNode *devices = domain_document_devices(doc);
        char **names = NULL, source[UUID_STRING_MAX];
        int r = devices ? 0 : -EINVAL;
        DomainBuses buses;
        size_t n = 0;

        if (devices && with_places)
                domain_buses_read(devices, &buses);
        for (const xmlNode *device = devices ? devices->children : NULL; r >= 0 && device; device = device->next)
                if (domain_device_source(device, source)) {
                        r = ARRAY_RESERVE(names, n);
                        if (r >= 0)
                                r = (names[n] = describe_device(device, source, with_places ? &buses : NULL)) ? 0
                                                                                                              : -ENOMEM;
                        n += r >= 0;
                }
        xmlFreeDoc(doc);
        if (r >= 0)
                r = ARRAY_RESERVE(names, n);
        if (r < 0) {
                (void) free_names(names, n);
                return r;
        }
        names[n] = NULL;
        *ret = names;
        *ret_n = n;
        return 0;
}

int domain_facts_devices(const char *xml, char ***ret, size_t *ret_n) {
        return list_devices(xml, false, ret, ret_n);
}

int domain_facts_places(const char *xml, char ***ret, size_t *ret_n) {
        return list_devices(xml, true, ret, ret_n);
}

/*
 * Elements that a <hostdev> may have, each once. A row lists the attributes that the element may have; "name=value"
 * permits only this value.
 */
static const struct {
        const char *parent, *name, *attributes;
} hostdev_parts[] = {
        { NULL, "hostdev", "mode=subsystem type=pci managed=no" },
        { NULL, "hostdev", "mode=subsystem type=mdev model=vfio-pci" },
        { "hostdev", "driver", "name=vfio model iommufd" },
        { "hostdev", "source", "" },
        { "source", "address", "domain bus slot function" },
        { "source", "address", "uuid" },
        { "hostdev", "rom", "bar=off" },
        { "hostdev", "acpi", "nodeset" },
        { "hostdev", "alias", "name" },
        { "hostdev", "address", "type=pci domain bus slot function multifunction" },
};

static bool has_attribute(const char *list, const char *name, const char *value) {
        _cleanup_free_ char *words = strdup(list);
        char *rest = words, *word;

        while (words && (word = string_next_word(&rest))) {
                char *required = strchr(word, '=');

                if (required)
                        *required++ = '\0';
                if (streq(word, name))
                        return !required || streq(required, value);
        }
        return false;
}

static bool attributes_are_plain(const xmlNode *node, const char *list) {
        for (const xmlAttr *a = node->properties; a; a = a->next) {
                _cleanup_free_ char *value = node_get(node, (const char *) a->name);

                if (a->ns || !value || !has_attribute(list, (const char *) a->name, value))
                        return false;
        }
        return true;
}

static bool is_plain(const xmlNode *node, const char *parent) {
        for (size_t i = 0; i < ELEMENTSOF(hostdev_parts); i++)
                if (streq_ptr(hostdev_parts[i].parent, parent) && node_is(node, hostdev_parts[i].name) &&
                    attributes_are_plain(node, hostdev_parts[i].attributes))
                        return true;
        return false;
}

/* Refuses elements that hostdev_parts[] does not list, and repeated elements, of which libvirt reads sometimes the
 * last, sometimes all. */
static bool children_are_plain(const xmlNode *node) {
        for (const xmlNode *n = node->children; n; n = n->next)
                if (!xmlIsBlankNode(n) && (!is_plain(n, (const char *) node->name) ||
                                           node_find(node, (const char *) n->name) != n || !children_are_plain(n)))
                        return false;
        return true;
}

int domain_facts_hostdev(const char *xml, char ret[static UUID_STRING_MAX]) {
        xmlDoc *doc = domain_document_read(xml);
        const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
        bool plain = root && is_plain(root, NULL) && node_has(root, "mode", "subsystem") && children_are_plain(root) &&
                     domain_device_source(root, ret) &&
                     (text_is_uuid(ret) ? node_has(root, "type", "mdev") && node_has(root, "model", "vfio-pci")
                                        : node_has(root, "type", "pci") && node_has(root, "managed", "no"));

        xmlFreeDoc(doc);
        return plain ? 0 : -EINVAL;
}

char *domain_facts_alias(const char *xml, const char *device) {
        xmlDoc *doc = domain_document_read(xml);
        const xmlNode *devices = domain_document_devices(doc), *alias;
        char *name = NULL;

        for (const xmlNode *n = devices ? devices->children : NULL; n && !name; n = n->next) {
                char source[UUID_STRING_MAX];

                if (domain_device_source(n, source) && streq(source, device) && (alias = node_find(n, "alias")))
                        name = node_get(alias, "name");
        }
        xmlFreeDoc(doc);
        return name;
}

const char *domain_facts_iommufd(const char *xml) {
        xmlDoc *doc = domain_document_read(xml);
        const xmlNode *devices = domain_document_devices(doc);
        const char *value = NULL;

        for (const xmlNode *n = devices ? devices->children : NULL; n && !value; n = n->next) {
                const xmlNode *driver = node_find(n, "driver");

                if (node_is(n, "hostdev") && node_has(n, "type", "pci"))
                        value = !driver                              ? ""
                                : node_has(driver, "iommufd", "yes") ? "yes"
                                : node_has(driver, "iommufd", "no")  ? "no"
                                                                     : "";
        }
        xmlFreeDoc(doc);
        return value;
}

static bool has_value(const xmlNode *list, const char *value) {
        for (const xmlNode *n = list->children; n; n = n->next) {
                _cleanup_free_ char *text = node_is(n, "value") ? node_get_text(n) : NULL;

                if (text && streq(text, value))
                        return true;
        }
        return false;
}

/* Returns the <enum> with this name and its values; NULL: libvirt does not report it. */
static const xmlNode *find_enum(const xmlNode *parent, const char *name) {
        for (const xmlNode *n = parent ? parent->children : NULL; n; n = n->next)
                if (node_is(n, "enum") && node_has(n, "name", name))
                        return n;
        return NULL;
}

/* Reads which confidential guests libvirt can run: from <launchSecurity> since 10.5, from <sev> before. */
static void read_security(const xmlNode *features, LibvirtFeatures *f) {
        const xmlNode *types = find_enum(node_find(features, "launchSecurity"), "sectype");
        const xmlNode *sev = node_find(features, "sev");

        f->security[CONFIDENTIAL_SEV] = sev && node_has(sev, "supported", "yes");
        for (Confidential c = CONFIDENTIAL_NONE + 1; types && c < _CONFIDENTIAL_MAX; c++)
                f->security[c] = has_value(types, confidential_libvirt_name(c));
}

/* Reads features from the capabilities. Before 12.2 they do not tell whether there is iommufd, so the versions
 * decide about that. */
static void read_capabilities(const char *capabilities, LibvirtFeatures *f) {
        xmlDoc *doc = domain_document_read(capabilities);
        const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
        const xmlNode *iommufd = find_enum(node_find(node_find(root, "devices"), "hostdev"), "iommufd");

        if (iommufd)
                f->iommufd = has_value(iommufd, "yes");
        read_security(node_find(root, "features"), f);
        xmlFreeDoc(doc);
}

/*
 * libvirt has <sysinfo type='fwcfg'> since 6.5.0, <maxphysaddr> since 8.7.0, <driver model=> since 10.0.0,
 * <acpi nodeset=> since 11.8.0 and <driver iommufd=> since 12.1.0. QEMU has the objects acpi-generic-initiator and
 * iommufd since 9.0, and 32 files in fw_cfg since 2.9, before that 16.
 */
LibvirtFeatures domain_facts_features(unsigned long libvirt, unsigned long qemu, const char *capabilities) {
        LibvirtFeatures f = {
                .known = true,
                .maxphysaddr = libvirt >= VERSION_OF(8, 7),
                .driver_model = libvirt >= VERSION_OF(10, 0),
                .iommufd = libvirt >= VERSION_OF(12, 1) && qemu >= VERSION_OF(9, 0),
                .acpi_nodeset = libvirt >= VERSION_OF(11, 8) && qemu >= VERSION_OF(9, 0),
                .fwcfg = libvirt >= VERSION_OF(6, 5) && qemu >= VERSION_OF(2, 9),
                .libvirt = (unsigned) libvirt,
                .qemu = (unsigned) qemu,
        };

        if (capabilities)
                read_capabilities(capabilities, &f);
        return f;
}

static bool has_text(json_object *array, const char *text) {
        for (size_t i = 0; i < json_length(array); i++)
                if (streq_ptr(json_object_get_string(json_at(array, i)), text))
                        return true;
        return false;
}

void domain_facts_firmware(const char *descriptor, size_t size, LibvirtFeatures *f) {
        _cleanup_json_ json_object *o = NULL;
        json_object *features;

        if (json_parse(descriptor, size, &o) < 0 || !streq_ptr(member_text(member(o, "mapping"), "device"), "memory"))
                return;
        features = member(o, "features");
        f->firmware[CONFIDENTIAL_SNP] |= has_text(features, "amd-sev-snp");
        f->firmware[CONFIDENTIAL_TDX] |= has_text(features, "intel-tdx");
}
