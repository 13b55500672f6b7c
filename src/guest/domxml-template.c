/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Loads the initial document: the caller's template, checked and without the elements that the daemon writes, or else a
 * bootable skeleton.
 */

#include <errno.h>

#include <libxml/parser.h>

#include "domxml-internal.h"
#include "domxml-xen.h"
#include "util/strings.h"

#define SKELETON_DEVICES                                                                                               \
        "<on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>"                 \
        "<devices>"                                                                                                    \
        "<disk type='file' device='disk'>"                                                                             \
        "<driver name='qemu' type='qcow2' cache='none' io='native'/><source/><target dev='vda' bus='virtio'/>"         \
        "</disk>"                                                                                                      \
        "<controller type='usb' model='none'/>"                                                                        \
        "<interface type='network'><source network='default'/><model type='virtio'/></interface>"                      \
        "<serial type='pty'/><console type='pty'/>"                                                                    \
        "</devices>"

/* More than any element of a domain has, by far. */
#define ATTRIBUTES_MAX 64U

static const char skeleton_x86_64[] =
        "<domain type='kvm'>"
        "<os firmware='efi'><type arch='x86_64' machine='q35'>hvm</type><boot dev='hd'/></os>"
        "<features><acpi/><apic/></features>"
        "<clock offset='utc'>"
        "<timer name='rtc' tickpolicy='catchup'/><timer name='pit' tickpolicy='delay'/><timer name='hpet' "
        "present='no'/>"
        "</clock>" SKELETON_DEVICES "</domain>";

/* GICv3, because GICv2 supports only eight CPUs and no MSIs of PCI devices. */
static const char skeleton_aarch64[] =
        "<domain type='kvm'>"
        "<os firmware='efi'><type arch='aarch64' machine='virt'>hvm</type><boot dev='hd'/></os>"
        "<features><acpi/><gic version='3'/></features>"
        "<clock offset='utc'/>" SKELETON_DEVICES "</domain>";

/* SeaBIOS, and the disk and network interface that Xen's front-end drivers use. */
static const char skeleton_xen[] =
        "<domain type='xen'>"
        "<os><type arch='x86_64' machine='xenfv'>hvm</type><boot dev='hd'/></os>"
        "<features><acpi/><apic/><pae/></features>"
        "<clock offset='utc'/>"
        "<on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>"
        "<devices>"
        "<disk type='file' device='disk'>"
        "<driver name='qemu' type='qcow2'/><source/><target dev='xvda' bus='xen'/>"
        "</disk>"
        "<interface type='bridge'><source bridge='" XEN_BRIDGE "'/></interface>"
        "<serial type='pty'/><console type='pty'/>"
        "</devices></domain>";

/* Returns the last character of the comment, CDATA section or instruction that begins at `text`. NULL: none begins
 * there, or it has no end. */
static const char *find_section_end(const char *text) {
        static const struct {
                const char *begin, *end;
        } sections[] = { { "<!--", "-->" }, { "<![CDATA[", "]]>" }, { "<?", "?>" } };

        for (size_t i = 0; i < ELEMENTSOF(sections); i++) {
                size_t n = strlen(sections[i].begin);
                const char *end = strncmp(text, sections[i].begin, n) == 0 ? strstr(text + n, sections[i].end) : NULL;

                if (end)
                        return end + strlen(sections[i].end) - 1;
        }
        return NULL;
}

/*
 * Refuses text that libxml2 would parse too slowly: a DOCTYPE, and an element with more than ATTRIBUTES_MAX attributes,
 * because libxml2 compares each attribute with all others. Counts the opening quotes of a tag: each attribute has one.
 */
static Verdict check_markup(const char *text, Refusal *ret) {
        char quote = '\0';
        bool in_tag = false;
        unsigned n = 0;

        for (const char *at = text; *at; at++) {
                const char *end = quote || in_tag ? NULL : find_section_end(at);

                if (end) {
                        at = end;
                } else if (quote) {
                        if (*at == quote)
                                quote = '\0';
                } else if (in_tag && (*at == '\'' || *at == '"')) {
                        quote = *at;
                        if (++n > ATTRIBUTES_MAX)
                                return refuse_template(ret, NULL, NULL, "Remove them.",
                                                       "An element of the template has more than %u attributes.",
                                                       ATTRIBUTES_MAX);
                } else if (*at == '>') {
                        in_tag = false;
                } else if (*at == '<' && at[1] == '!') {
                        return refuse_template(ret, NULL, NULL, "Remove it.", "The template has a DOCTYPE.");
                } else if (*at == '<') {
                        in_tag = true;
                        n = 0;
                }
        }
        return VERDICT_NONE;
}

/*
 * Parses a template. Expands no entities and loads no files; the encoding is UTF-8, whatever the XML declaration says.
 */
static Verdict parse(const char *text, size_t size, xmlDoc **ret, Refusal *ret_refusal) {
        const int options =
                XML_PARSE_NONET | XML_PARSE_NOBLANKS | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_BIG_LINES;
        xmlParserCtxt *ctxt = xmlNewParserCtxt();
        const xmlError *error;
        Verdict v = VERDICT_NONE;

        if (!ctxt)
                return refuse_no_memory(ret_refusal);
        *ret = xmlCtxtReadMemory(ctxt, text, (int) size, NULL, "UTF-8", options);
        error = xmlCtxtGetLastError(ctxt);
        if (!*ret && error && error->code == XML_ERR_NO_MEMORY)
                v = refuse_no_memory(ret_refusal);
        else if (!*ret)
                v = refuse_template(ret_refusal, NULL, NULL, "Try it with virt-xml-validate.",
                                    "The template is not well-formed XML: see line %d.", error ? error->line : 0);
        xmlFreeParserCtxt(ctxt);
        return v;
}

/* Returns false when the URI of a namespace has < or &: libxml2 writes them unescaped, which is no XML. */
static bool namespaces_can_be_written(const xmlNode *node) {
        for (const xmlNs *ns = node->nsDef; ns; ns = ns->next)
                if (ns->href && strpbrk((const char *) ns->href, "<&"))
                        return false;
        for (const xmlNode *n = node->children; n; n = n->next)
                if (n->type == XML_ELEMENT_NODE && !namespaces_can_be_written(n))
                        return false;
        return true;
}

Verdict domxml_check_size(const char *text, Refusal *ret) {
        if (strnlen(text, DOMXML_TEMPLATE_MAX + 1U) <= DOMXML_TEMPLATE_MAX)
                return VERDICT_NONE;
        return refuse_template(ret, NULL, NULL, NULL, "The template is larger than %s.",
                               FORMAT_SIZE(DOMXML_TEMPLATE_MAX));
}

static Verdict load_text(Domain *d, const char *text, Refusal *ret) {
        Verdict v = domxml_check_size(text, ret);

        if (v == VERDICT_NONE)
                v = check_markup(text, ret);
        if (v == VERDICT_NONE)
                v = parse(text, strlen(text), &d->doc, ret);
        if (v != VERDICT_NONE)
                return v;
        d->root = xmlDocGetRootElement(d->doc);
        if (!d->root || !node_is(d->root, "domain"))
                return refuse_template(ret, d->root, NULL, "Take the output of virsh dumpxml --inactive.",
                                       "The template is not a <domain>.");
        if (!namespaces_can_be_written(d->root))
                return refuse_template(ret, NULL, NULL, "Use another URI.",
                                       "The template has a namespace with '<' or '&' in its URI.");
        return VERDICT_NONE;
}

static Verdict check_type(Domain *d, Refusal *ret) {
        _cleanup_free_ char *type = node_get(d->root, "type");

        if (d->xen)
                return type && streq(type, "xen")
                               ? VERDICT_NONE
                               : refuse_template(ret, d->root, NULL, "Use type='xen'.",
                                                 "The template's domain type is '%s', and the guests of this node are "
                                                 "of type 'xen'.",
                                                 type ? QUOTABLE(type) : "");
        d->emulated = type && streq(type, "qemu");
        if (!d->emulated && (!type || !streq(type, "kvm")))
                return refuse_template(
                        ret, d->root, NULL, "Use type='kvm'.",
                        "The template's domain type is '%s'; devices can be passed to 'kvm' and 'qemu' only.",
                        type ? QUOTABLE(type) : "");
        return VERDICT_NONE;
}

/* Refuses <cputune> elements for vCPUs that the guest lacks: libvirt refuses such a <vcpusched>, and drops such a
 * <cachetune> or <memorytune>. */
static Verdict check_vcpus(const Domain *d, const xmlNode *cputune, Refusal *ret) {
        for (const xmlNode *n = cputune ? cputune->children : NULL; n; n = n->next) {
                _cleanup_free_ char *vcpus = n->type == XML_ELEMENT_NODE ? node_get(n, "vcpus") : NULL;
                CpuSet set;

                if (vcpus && cpuset_parse(vcpus, &set) == 0 && cpuset_next(&set, (unsigned) d->a->n_pins) >= 0)
                        return refuse_template(ret, n, NULL, "Name only vCPUs of the guest.",
                                               "The template has <%s vcpus='%s'>, and the guest has %zu vCPUs.",
                                               QUOTABLE((const char *) n->name), QUOTABLE(vcpus), d->a->n_pins);
        }
        return VERDICT_NONE;
}

/* Refuses <cputune> elements that need a thread for each vCPU: neither Xen nor QEMU without KVM has such threads. With
 * Xen, refuses all that is left of <cputune>, or of <cpu>. */
static Verdict check_cpus(const Domain *d, Refusal *ret) {
        static const char *const of_vcpus[] = { "vcpusched", "cachetune", "memorytune", "period", "quota" };
        xmlNode *cputune = node_find(d->root, "cputune");
        const xmlNode *found = NULL;

        for (size_t i = 0; d->emulated && !found && i < ELEMENTSOF(of_vcpus); i++)
                found = node_find(cputune, of_vcpus[i]);
        if (d->xen)
                found = xmlFirstElementChild(cputune ?: node_find(d->root, "cpu"));
        if (!found)
                return check_vcpus(d, cputune, ret);
        return refuse_template(ret, found, NULL, d->xen ? "Remove it." : "Remove it, or use type='kvm'.",
                               "The template has <%s> in <%s>, which has no effect on %s.",
                               QUOTABLE((const char *) found->name), (const char *) found->parent->name,
                               d->xen ? "a guest of Xen" : "a guest without KVM");
}

static bool machine_is_q35(const char *machine) {
        return streq(machine, "q35") || strncmp(machine, "pc-q35", 6) == 0;
}

static bool machine_is_i440fx(const char *machine) {
        return streq(machine, "pc") || strncmp(machine, "pc-", 3) == 0;
}

/* Returns true for "virt", and for a version such as "virt-8.0". */
static bool machine_is_virt(const char *machine) {
        return streq(machine, "virt") || strncmp(machine, "virt-", 5) == 0;
}

/* Sets the machine: q35, 'virt' on AArch64, or xenfv for a guest of Xen. The layout needs PCI Express: on x86 i440fx
 * becomes q35; any other machine of the template is refused. */
static Verdict set_machine(Domain *d, xmlNode *type, Refusal *ret) {
        const char *wanted = d->aarch64 ? "virt" : "q35",
                   *remedy = d->aarch64 ? "Use machine='virt'." : "Use machine='q35'.";
        _cleanup_free_ char *machine = node_get(type, "machine");

        if (d->xen) {
                node_set(d, type, "machine", "xenfv");
                return VERDICT_NONE;
        }

        if (machine && (d->aarch64 ? machine_is_virt(machine) : machine_is_q35(machine)))
                return VERDICT_NONE;
        if (machine && (d->aarch64 || !machine_is_i440fx(machine)))
                return refuse_template(ret, type, NULL, remedy, "The template's machine '%s' is not %s.",
                                       QUOTABLE(machine), wanted);
        node_set(d, type, "machine", "%s", wanted);
        return VERDICT_NONE;
}

static Verdict set_os(Domain *d, Refusal *ret) {
        xmlNode *os = node_find(d->root, "os"), *type = node_find(os, "type");
        const char *wanted = inventory_architecture(d->inv);
        _cleanup_free_ char *arch = NULL, *text = NULL;

        if (!os)
                os = node_add(d, d->root, "os");
        if (!type)
                type = node_add(d, os, "type");
        if (!type)
                return VERDICT_NONE;
        text = node_get_text(type);
        if (text && !*text)
                node_set_text(d, type, "hvm");
        else if (text && !streq(text, "hvm"))
                return refuse_template(ret, type, NULL, "Use <type>hvm</type>.",
                                       "The template's operating system type is '%s': devices can be passed to 'hvm' "
                                       "only.",
                                       QUOTABLE(text));

        arch = node_get(type, "arch");
        if (!arch)
                node_set(d, type, "arch", "%s", wanted);
        else if (!streq(arch, wanted))
                return refuse_template(ret, type, NULL, NULL, "The template is for '%s'; this node makes %s domains.",
                                       QUOTABLE(arch), wanted);
        return set_machine(d, type, ret);
}

/* Sets GICv3 unless the template has a <gic>: libvirt may choose GICv2, which has no interrupts for PCI devices of
 * guests. */
static void set_gic(Domain *d) {
        xmlNode *features = node_find(d->root, "features"), *gic;

        if (!d->aarch64)
                return;
        if (!features)
                features = node_add(d, d->root, "features");
        gic = node_find(features, "gic");
        if (!gic)
                node_set(d, node_add(d, features, "gic"), "version", "3");
}

/* Sets the UUID in the template's SMBIOS tables: libvirt refuses one that is not the UUID of the domain. */
static void set_sysinfo_uuid(Domain *d) {
        for (xmlNode *sysinfo = d->root->children; sysinfo; sysinfo = sysinfo->next) {
                xmlNode *system = node_is(sysinfo, "sysinfo") ? node_find(sysinfo, "system") : NULL;

                for (xmlNode *n = system ? system->children : NULL; n; n = n->next)
                        if (node_is(n, "entry") && node_has(n, "name", "uuid"))
                                node_set_text(d, n, "%s", d->a->id);
        }
}

/*
 * Removes what the daemon writes: attributes of <cpu> and <cputune>, all of <cpu> but features, and pins of <cputune>.
 */
static void remove_our_cpus(Domain *d) {
        static const char *const pins[] = { "vcpupin", "emulatorpin", "iothreadpin" };

        for (xmlNode *n = d->root->children, *next; n; n = next) {
                next = n->next;
                if (!node_is(n, "cpu") && !node_is(n, "cputune"))
                        continue;
                for (size_t i = 0; i < ELEMENTSOF(pins); i++)
                        node_remove_all(n, pins[i]);
                for (xmlNode *child = n->children, *after; node_is(n, "cpu") && child; child = after) {
                        after = child->next;
                        if (!node_is(child, "feature"))
                                node_remove(child);
                }
                while (n->properties)
                        (void) xmlRemoveProp(n->properties);
                if (!xmlFirstElementChild(n))
                        node_remove(n);
        }
}

static void remove_ours(Domain *d) {
        static const char *const names[] = {
                "name", "uuid", "memory", "currentMemory", "maxMemory", "vcpu", "vcpus", "numatune",
        };
        xmlNode *metadata = node_find(d->root, "metadata");

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                node_remove_all(d->root, names[i]);
        remove_our_cpus(d);
        for (xmlNode *n = metadata ? metadata->children : NULL, *next; n; n = next) {
                next = n->next;
                if (n->type == XML_ELEMENT_NODE && n->ns && streq((const char *) n->ns->href, DOMXML_NAMESPACE))
                        node_remove(n);
        }
        domain_remove_guest_info(d);
}

static void name_disk(Domain *d) {
        node_set(d, node_find(node_find(d->devices, "disk"), "source"), "file", DOMXML_DISK, d->a->name);
}

Verdict domain_load(Domain *d, const DomainTemplate *template, Refusal *ret) {
        Verdict v;

        d->aarch64 = streq(inventory_architecture(d->inv), ARCHITECTURE_AARCH64);
        v = load_text(d,
                      template     ? template->text
                      : d->xen     ? skeleton_xen
                      : d->aarch64 ? skeleton_aarch64
                                   : skeleton_x86_64,
                      ret);

        if (v != VERDICT_NONE)
                return v;
        remove_ours(d);
        d->devices = node_find(d->root, "devices");
        v = domain_check_schema(d, ret);
        if (v != VERDICT_NONE)
                return v;
        v = check_type(d, ret);
        if (v == VERDICT_NONE)
                v = check_cpus(d, ret);
        if (v != VERDICT_NONE)
                return v;
        v = set_os(d, ret);
        if (v != VERDICT_NONE)
                return v;
        set_gic(d);

        if (!d->devices)
                d->devices = node_add(d, d->root, "devices");
        if (!d->devices)
                return VERDICT_NONE; /* out of memory: d->failed is set */
        v = domain_check_permitted(d, template && template->qemu_commandline, ret);
        if (v != VERDICT_NONE)
                return v;
        v = domain_check_devices(d, ret);
        if (v != VERDICT_NONE)
                return v;

        if (!template)
                name_disk(d);
        d->anchor = xmlFirstElementChild(d->root);
        set_sysinfo_uuid(d);
        return VERDICT_NONE;
}
