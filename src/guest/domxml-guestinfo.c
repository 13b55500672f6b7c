/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Facts that only the host knows, as files for the guest in QEMU's fw_cfg. Linux shows them below
 * /sys/firmware/qemu_fw_cfg. In the document they are entries of <sysinfo type='fwcfg'>. Their text is base64,
 * because libvirt 9.0 damages plain text: it escapes & < > and quotes as in XML, and does not double commas, so that
 * QEMU would refuse the argument.
 */

#include <libxml/tree.h>

#include "domxml-internal.h"
#include "model/json-text.h"
#include "services.h"
#include "util/strings.h"

/* Prefix and name together have at most 55 bytes (FW_CFG_MAX_FILE_PATH of QEMU). */
#define PREFIX "opt/org.passthroughd1/"

/* Linux limits one argument of a program to MAX_ARG_STRLEN bytes, including the NUL. */
#define ARGUMENT_MAX ((size_t) 128 * 1024)

/* fw_cfg has 32 files (QEMU, x-file-slots), of which QEMU needs about 20. QEMU aborts when there are more. */
#define FILES_MAX 10U

static bool is_ours(const xmlNode *entry) {
        _cleanup_free_ char *name = node_is(entry, "entry") ? node_get(entry, "name") : NULL;

        return name && strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

static bool is_fwcfg(const xmlNode *node) {
        return node_is(node, "sysinfo") && node_has(node, "type", "fwcfg");
}

void domain_remove_guest_info(Domain *d) {
        for (xmlNode *sysinfo = d->root->children, *next; sysinfo; sysinfo = next) {
                next = sysinfo->next;
                if (!is_fwcfg(sysinfo))
                        continue;
                for (xmlNode *n = sysinfo->children, *after; n; n = after) {
                        after = n->next;
                        if (is_ours(n))
                                node_remove(n);
                }
                if (!xmlFirstElementChild(sysinfo))
                        node_remove(sysinfo);
        }
}

static bool has_expander(const GuestPci *pci) {
        for (size_t i = 0; i < pci->n_used; i++)
                if (pci->controllers[i].type == GUEST_EXPANDER_BUS)
                        return true;
        return false;
}

/* Makes the topology file for NCCL. NULL without an expander, because bus numbers are unknown then, or when out of
 * memory. */
static char *make_nccl_topology(Domain *d, GuestInfo info) {
        _cleanup_free_ GuestPlace *places = has_expander(d->pci) ? guest_pci_places(d->pci, d->a) : NULL;
        xmlDoc *doc = places ? domain_nccl(d, places) : NULL;
        char *text = doc ? document_text(doc, NULL) : NULL;

        d->failed |= has_expander(d->pci) && !text;
        xmlFreeDoc(doc);
        return text;
}

static void append_device(const Domain *d, JsonText *t, const GuestFunction *f, GuestInfo info) {
        const AllocationDevice *dev = &d->a->devices[f->device];

        json_text_first_member(t, "slot", string, dev->slot);
        json_text_member(t, "pool", string, dev->pool);
        json_text_member(t, "guest_address", address, f->guest);
        json_text_key(t, "seen_address");
        if (guest_pci_port(d->pci, f)->bus_nr > 0)
                json_text_address(t, guest_pci_seen(d->pci, f));
        else
                json_text_string(t, NULL);
        if (info == GUEST_INFO_HOST) {
                json_text_member(t, "address", address, dev->address);
        }
        json_text_literal(t, "}");
}

/* Formats a JSON object that has a line for each device, with the keys of the daemon's JSON. NULL without devices, or
 * when out of memory. */
static char *make_devices(Domain *d, GuestInfo info) {
        JsonText t;
        char *text;

        if (d->pci->n_functions == 0)
                return NULL;
        t = json_text_new();
        json_text_literal(&t, "{\"devices\":[\n");
        for (size_t i = 0; i < d->pci->n_functions; i++) {
                if (i > 0)
                        json_text_literal(&t, ",\n");
                append_device(d, &t, &d->pci->functions[i], info);
        }
        json_text_literal(&t, "\n]}\n");
        text = json_text_finish(&t);
        d->failed |= !text;
        return text;
}

static char *make_services(Domain *d, GuestInfo info _unused_) {
        char *text = NULL;

        d->failed |= services_env(d->a, &text) < 0;
        return text;
}

static char *make_gvirtus(Domain *d, GuestInfo info _unused_) {
        char *text = NULL;

        d->failed |= services_gvirtus(d->a, &text) < 0;
        return text;
}

/*
 * The files. make() returns a text, which the caller frees; NULL: the guest does not need the file, or out of memory.
 */
static const struct {
        const char *name;
        char *(*make)(Domain *d, GuestInfo info);
} entries[] = {
        { PREFIX "nccl-topology.xml", make_nccl_topology },
        { PREFIX "devices.json", make_devices },
        { PREFIX "services.env", make_services },
        { PREFIX "gvirtus.json", make_gvirtus },
};

/* Encodes base64 (RFC 4648) in one line. The caller frees; NULL when out of memory. */
static char *encode(const char *text) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        size_t n = strlen(text), at = 0;
        char *out = malloc((n + 2) / 3 * 4 + 1);

        for (size_t i = 0; out && i < n; i += 3) {
                unsigned bits = 0;

                for (size_t j = 0; j < 3; j++)
                        bits = bits << 8 | (i + j < n ? (unsigned char) text[i + j] : 0);
                for (size_t j = 0; j < 4; j++)
                        out[at++] = j <= n - i ? digits[bits >> (18 - 6 * j) & 63] : '=';
        }
        if (out)
                out[at] = '\0';
        return out;
}

static Verdict write_entry(Domain *d, xmlNode **sysinfo, const char *name, const char *text, Refusal *ret) {
        _cleanup_free_ char *encoded = encode(text);
        xmlNode *entry;

        if (!encoded)
                return refuse_no_memory(ret);
        if (sizeof("name=,string=") + strlen(name) + strlen(encoded) > ARGUMENT_MAX)
                return refuse_request(ret, "Ask for fewer devices, or leave it out with --no-guest-info.",
                                      "QEMU takes %s as an argument, which Linux limits to %s.", name,
                                      FORMAT_SIZE(ARGUMENT_MAX));
        if (!*sysinfo) {
                *sysinfo = domain_add(d, "sysinfo");
                node_set(d, *sysinfo, "type", "fwcfg");
        }
        entry = node_add(d, *sysinfo, "entry");
        node_set(d, entry, "name", "%s", name);
        node_set_text(d, entry, "%s", encoded);
        return VERDICT_NONE;
}

static Verdict check_files(const Domain *d, const xmlNode *sysinfo, Refusal *ret) {
        unsigned long n = 0;

        for (xmlNode *s = d->root->children; s; s = s->next)
                n += is_fwcfg(s) ? xmlChildElementCount(s) : 0;
        if (n <= FILES_MAX)
                return VERDICT_NONE;
        return refuse_template(ret, sysinfo, NULL,
                               "Remove entries of the template, or leave out those of passthroughd with "
                               "--no-guest-info.",
                               "The domain has %lu entries in <sysinfo type='fwcfg'>, for which QEMU has room for %u.",
                               n, FILES_MAX);
}

Verdict domain_write_guest_info(Domain *d, GuestInfo info, Refusal *ret) {
        const LibvirtFeatures *f = &d->inv->libvirt;
        xmlNode *sysinfo = d->root->children;
        Verdict v = VERDICT_NONE;

        if (info == GUEST_INFO_NONE || (f->known && !f->fwcfg))
                return VERDICT_NONE;
        while (sysinfo && !is_fwcfg(sysinfo))
                sysinfo = sysinfo->next;
        for (size_t i = 0; i < ELEMENTSOF(entries) && v == VERDICT_NONE; i++) {
                _cleanup_free_ char *text = entries[i].make(d, info);

                if (text)
                        v = write_entry(d, &sysinfo, entries[i].name, text, ret);
        }
        return v == VERDICT_NONE ? check_files(d, sysinfo, ret) : v;
}
