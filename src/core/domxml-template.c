/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The document we start from: the caller's template, checked and with everything that is ours taken out, or a bootable
 * skeleton. */

#include <errno.h>

#include <libxml/parser.h>

#include "domxml-internal.h"
#include "util/strings.h"

#define PCI_INDEX_MAX 255U
#define QUOTE_MAX     64U

static const char skeleton[] =
        "<domain type='kvm'>"
        "<os firmware='efi'><type arch='x86_64' machine='q35'>hvm</type><boot dev='hd'/></os>"
        "<features><acpi/><apic/></features>"
        "<clock offset='utc'>"
        "<timer name='rtc' tickpolicy='catchup'/><timer name='pit' tickpolicy='delay'/><timer name='hpet' "
        "present='no'/>"
        "</clock>"
        "<on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>"
        "<devices>"
        "<disk type='file' device='disk'>"
        "<driver name='qemu' type='qcow2' cache='none' io='native'/><source/><target dev='vda' bus='virtio'/>"
        "</disk>"
        "<controller type='usb' model='none'/>"
        "<interface type='network'><source network='default'/><model type='virtio'/></interface>"
        "<serial type='pty'/><console type='pty'/>"
        "</devices>"
        "</domain>";

static Verdict refuse_template(Refusal *ret, const char *remedy, const char *message) {
        return refuse(ret, VERDICT_INVALID_TEMPLATE, NULL, remedy, "%s", message);
}

/* Text of the template that may stand in a sentence. */
static const char *quotable(const char *s) {
        return s && strlen(s) <= QUOTE_MAX && text_is_clean(s) ? s : "(unprintable)";
}

/* Entities are never expanded, nothing is ever loaded. */
static Verdict parse(const char *text, size_t size, xmlDoc **ret, Refusal *ret_refusal) {
        const int options = XML_PARSE_NONET | XML_PARSE_NOBLANKS | XML_PARSE_NOERROR | XML_PARSE_NOWARNING;
        xmlParserCtxt *ctxt = xmlNewParserCtxt();
        const xmlError *error;
        Verdict v = VERDICT_NONE;

        if (!ctxt)
                return domain_refuse_memory(ret_refusal);
        *ret = xmlCtxtReadMemory(ctxt, text, (int) size, NULL, NULL, options);
        error = xmlCtxtGetLastError(ctxt);
        if (!*ret && error && error->code == XML_ERR_NO_MEMORY)
                v = domain_refuse_memory(ret_refusal);
        else if (!*ret)
                v = refuse(ret_refusal, VERDICT_INVALID_TEMPLATE, NULL, "Try it with virt-xml-validate.",
                           "The template is not well-formed XML: see line %d.", error ? error->line : 0);
        xmlFreeParserCtxt(ctxt);
        return v;
}

static Verdict load_text(Domain *d, const char *text, Refusal *ret) {
        size_t size = strnlen(text, DOMXML_TEMPLATE_MAX + 1U);
        Verdict v;

        if (size > DOMXML_TEMPLATE_MAX)
                return refuse(ret, VERDICT_INVALID_TEMPLATE, NULL, NULL, "The template is larger than %s.",
                              FORMAT_SIZE(DOMXML_TEMPLATE_MAX));
        v = parse(text, size, &d->doc, ret);
        if (v != VERDICT_NONE)
                return v;
        if (d->doc->intSubset || d->doc->extSubset)
                return refuse_template(ret, "Remove it.", "The template has a DOCTYPE.");

        d->root = xmlDocGetRootElement(d->doc);
        if (!d->root || !node_is(d->root, "domain"))
                return refuse_template(ret, "Take the output of virsh dumpxml --inactive.",
                                       "The template is not a <domain>.");
        return VERDICT_NONE;
}

/* libvirt reads every <devices> there is; so that nothing hides in a second one, there is only one. */
static Verdict check_once(const Domain *d, Refusal *ret) {
        static const char *const names[] = { "devices", "metadata", "memoryBacking", "memtune", "os" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (node_count(d->root, names[i]) > 1)
                        return refuse(ret, VERDICT_INVALID_TEMPLATE, NULL, NULL, "The template has more than one <%s>.",
                                      names[i]);
        return VERDICT_NONE;
}

static Verdict check_type(Domain *d, Refusal *ret) {
        _cleanup_free_ char *type = node_get(d->root, "type");

        d->emulated = type && streq(type, "qemu");
        if (!d->emulated && (!type || !streq(type, "kvm")))
                return refuse(ret, VERDICT_INVALID_TEMPLATE, NULL, "Use type='kvm'.",
                              "The template's domain type is '%s'; devices can be passed to 'kvm' and 'qemu' only.",
                              type ? quotable(type) : "");
        return VERDICT_NONE;
}

static bool machine_is_q35(const char *machine) {
        return streq(machine, "q35") || strncmp(machine, "pc-q35", 6) == 0;
}

static bool machine_is_i440fx(const char *machine) {
        return streq(machine, "pc") || strncmp(machine, "pc-", 3) == 0;
}

/* The PCI layout needs PCI Express: the old PC becomes its successor, other machines are somebody else's. */
static Verdict set_machine(Domain *d, Refusal *ret) {
        xmlNode *os = node_find(d->root, "os"), *type = node_find(os, "type");
        _cleanup_free_ char *machine = NULL, *arch = NULL;

        if (!os)
                os = node_add(d, d->root, "os");
        if (!type) {
                type = node_add(d, os, "type");
                node_set_text(d, type, "hvm");
        }
        if (!type)
                return VERDICT_NONE;

        arch = node_get(type, "arch");
        if (!arch)
                node_set(d, type, "arch", "x86_64");
        else if (!streq(arch, "x86_64"))
                return refuse(ret, VERDICT_INVALID_TEMPLATE, NULL, NULL,
                              "The template is for '%s'; this node makes x86_64 domains.", quotable(arch));

        machine = node_get(type, "machine");
        if (machine && machine_is_q35(machine))
                return VERDICT_NONE;
        if (machine && !machine_is_i440fx(machine))
                return refuse(ret, VERDICT_INVALID_TEMPLATE, NULL, "Use machine='q35'.",
                              "The template's machine '%s' is not q35.", quotable(machine));
        node_set(d, type, "machine", "q35");
        return VERDICT_NONE;
}

/* The <address> with a host PCI address somewhere below; false when there is none that can be read. */
static bool find_host_address(const xmlNode *node, PciAddress *ret) {
        unsigned domain = 0, bus, slot, function = 0;
        const xmlNode *address = node_find(node_find(node, "source"), "address");

        if (!address || node_get_number(address, "domain", UINT32_MAX, &domain) == -EINVAL ||
            node_get_number(address, "bus", 255, &bus) < 0 || node_get_number(address, "slot", 31, &slot) < 0 ||
            node_get_number(address, "function", 7, &function) == -EINVAL)
                return false;
        *ret = (PciAddress){ domain, (uint8_t) bus, (uint8_t) slot, (uint8_t) function };
        return true;
}

/* Everything by which libvirt hands a host PCI function to a guest. */
static bool is_host_pci(const xmlNode *node) {
        return (node_is(node, "hostdev") && node_has(node, "type", "pci")) ||
               (node_is(node, "interface") && node_has(node, "type", "hostdev")) ||
               (node_is(node, "disk") && node_has(node, "type", "nvme"));
}

/* Only what was allocated is handed out. */
static Verdict check_device(const xmlNode *node, Refusal *ret) {
        static const char remedy[] = "Remove it from the template and allocate the device.";
        PciAddress address;

        if (node_is(node, "memory"))
                return refuse_template(ret, "Remove it and ask for the memory in the allocation.",
                                       "The template has a memory device, which is memory outside of the allocation.");
        if (!is_host_pci(node))
                return VERDICT_NONE;
        if (!find_host_address(node, &address))
                return refuse(ret, VERDICT_INVALID_TEMPLATE, NULL, remedy,
                              "The template has a host PCI device of its own, in an <%s>.", (const char *) node->name);
        return refuse(ret, VERDICT_INVALID_TEMPLATE, &address, remedy, "The template hands out %s itself, in an <%s>.",
                      PCI_ADDRESS_STR(address), (const char *) node->name);
}

/* A vfio-pci device on QEMU's own command line is a hostdev by another name. Its properties (-set, -global) are fine.
 */
static Verdict check_commandline(const Domain *d, Refusal *ret) {
        for (const xmlNode *line = d->root->children; line; line = line->next) {
                if (line->type != XML_ELEMENT_NODE || !line->ns || !streq((const char *) line->name, "commandline"))
                        continue;
                for (const xmlNode *arg = line->children; arg; arg = arg->next) {
                        _cleanup_free_ char *value = arg->type == XML_ELEMENT_NODE ? node_get(arg, "value") : NULL;

                        if (value && strstr(value, "vfio-pci") && (strstr(value, "host") || strstr(value, "sysfsdev")))
                                return refuse_template(ret, "Remove it and allocate the device.",
                                                       "The template has a vfio-pci device on QEMU's command line.");
                }
        }
        return VERDICT_NONE;
}

/* Also learns where our indices and bus numbers may begin. */
static Verdict check_controller(Domain *d, xmlNode *node, Refusal *ret) {
        unsigned index = 0, bus_nr = GUEST_BUSES_MAX;
        const xmlNode *target = node_find(node, "target");
        int r = node_get_number(node, "index", PCI_INDEX_MAX, &index);
        bool is_root = node_has(node, "model", "pcie-root");

        if (r < 0 && r != -ENOENT)
                return refuse_template(ret, NULL,
                                       "The template has a PCI controller whose index is not a number up to 255.");
        if (node_has(node, "model", "pci-root"))
                return refuse_template(
                        ret, "Remove its PCI controllers and use machine='q35'.",
                        "The template's PCI root is 'pci-root': it describes a machine without PCI Express.");
        if (r == 0 && is_root != (index == 0))
                return refuse_template(ret, NULL, "The template's PCI controller 0 is not its pcie-root.");
        if (is_root)
                node_set(d, node, "index", "0");
        d->room.first_index = MAX(d->room.first_index, index + 1);

        r = target ? node_get_number(target, "busNr", GUEST_BUSES_MAX - 1, &bus_nr) : -ENOENT;
        if (r < 0 && r != -ENOENT)
                return refuse_template(ret, NULL,
                                       "The template has a PCI controller whose busNr is not a number up to 255.");
        d->room.bus_end = MIN(d->room.bus_end, bus_nr);
        return VERDICT_NONE;
}

static Verdict check_devices(Domain *d, Refusal *ret) {
        Verdict v = check_commandline(d, ret);

        d->room = GUEST_PCI_ROOM_DEFAULT;
        for (xmlNode *n = xmlFirstElementChild(d->devices); n && v == VERDICT_NONE; n = xmlNextElementSibling(n)) {
                const xmlNode *address = node_find(n, "address");
                unsigned bus;

                v = check_device(n, ret);
                if (v == VERDICT_NONE && node_is(n, "controller") && node_has(n, "type", "pci"))
                        v = check_controller(d, n, ret);
                if (address && node_has(address, "type", "pci") &&
                    node_get_number(address, "bus", PCI_INDEX_MAX, &bus) == 0)
                        d->room.first_index = MAX(d->room.first_index, bus + 1);
        }
        /* Each may need a port, and a few stay free for hot-plug. */
        d->room.others = MAX(d->room.others, (unsigned) xmlChildElementCount(d->devices) + 8);
        return v;
}

/* libvirt refuses a domain whose SMBIOS tables tell another UUID. */
static void set_sysinfo_uuid(Domain *d) {
        xmlNode *system = node_find(node_find(d->root, "sysinfo"), "system");

        for (xmlNode *n = system ? system->children : NULL; n; n = n->next)
                if (node_is(n, "entry") && node_has(n, "name", "uuid"))
                        node_set_text(d, n, "%s", d->a->id);
}

static void remove_ours(Domain *d) {
        static const char *const names[] = {
                "name", "uuid", "memory", "currentMemory", "maxMemory", "vcpu", "vcpus", "cputune", "numatune", "cpu",
        };
        xmlNode *metadata = node_find(d->root, "metadata");

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                node_remove_all(d->root, names[i]);
        for (xmlNode *n = metadata ? metadata->children : NULL, *next; n; n = next) {
                next = n->next;
                if (n->type == XML_ELEMENT_NODE && n->ns && streq((const char *) n->ns->href, DOMXML_NAMESPACE))
                        node_remove(n);
        }
        d->anchor = xmlFirstElementChild(d->root);
}

static void name_disk(Domain *d) {
        node_set(d, node_find(node_find(d->devices, "disk"), "source"), "file", "/var/lib/libvirt/images/%s.qcow2",
                 d->a->name);
}

Verdict domain_load(Domain *d, const char *text, Refusal *ret) {
        Verdict v = load_text(d, text ? text : skeleton, ret);

        if (v != VERDICT_NONE)
                return v;
        v = check_once(d, ret);
        if (v != VERDICT_NONE)
                return v;
        v = check_type(d, ret);
        if (v != VERDICT_NONE)
                return v;
        v = set_machine(d, ret);
        if (v != VERDICT_NONE)
                return v;

        d->devices = node_find(d->root, "devices");
        if (!d->devices)
                d->devices = node_add(d, d->root, "devices");
        if (!d->devices)
                return VERDICT_NONE; /* out of memory: d->failed says so */
        v = check_devices(d, ret);
        if (v != VERDICT_NONE)
                return v;

        if (!text)
                name_disk(d);
        remove_ours(d);
        set_sysinfo_uuid(d);
        return VERDICT_NONE;
}
