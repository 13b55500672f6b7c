/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats a suggested configuration as text. */

#include <stdio.h>

#include "plan/device-state.h"
#include "suggest-internal.h"
#include "util/strings.h"

#define WIDTH         78U /* of a line of a comment after its "# " */
#define ADDRESSES_MAX 64U /* the most devices that a comment names */

typedef struct Text {
        char *text;
        bool failed;
} Text;

static _printf_(2, 3) void add(Text *t, const char *format, ...) {
        _cleanup_free_ char *line = FORMAT_ARGUMENTS(format);

        t->failed |= !line || string_append(&t->text, "", "%s", line) < 0;
}

/* Replaces control characters: a newline would end the comment. */
static void sanitize(char *text) {
        for (; *text; text++)
                if ((unsigned char) *text < ' ')
                        *text = '?';
}

/* Adds a paragraph of comment lines, wrapped at WIDTH. In an item ("- ") further lines are indented. */
static _printf_(2, 3) void comment(Text *t, const char *format, ...) {
        _cleanup_free_ char *text = FORMAT_ARGUMENTS(format);
        const char *rest, *indent = "";

        t->failed |= !text;
        if (!text)
                return;
        sanitize(text);
        for (rest = text; *rest;) {
                size_t n = strlen(rest), width = WIDTH - strlen(indent);

                if (n > width) {
                        n = width;
                        while (n > 0 && rest[n] != ' ')
                                n--;
                        n = n > 0 ? n : strcspn(rest, " ");
                }
                add(t, "# %s%.*s\n", indent, (int) n, rest);
                rest += n + strspn(rest + n, " ");
                indent = *text == '-' ? "  " : "";
        }
}

/* Formats a list of devices: "0000:01:00.0 0000:02:00.0 and 3 others". When out of memory, the list is shorter, or
 * NULL. */
static char *list_addresses(const PciAddress *devices, size_t n) {
        char *text = NULL;

        for (size_t i = 0; i < MIN(n, ADDRESSES_MAX); i++)
                if (string_append(&text, " ", "%s", PCI_ADDRESS_STR(devices[i])) < 0)
                        return text;
        if (n > ADDRESSES_MAX)
                (void) string_append(&text, "", " and %zu others", n - ADDRESSES_MAX);
        return text;
}

/* Formats the name and ids of a model: "NVIDIA Corporation GH100 [H100] (10de:2330)". A name that has the ids already
 * is not changed. */
static char *describe_model(const PciDevice *dev) {
        char id[16];

        (void) snprintf(id, sizeof(id), "%04x:%04x", dev->vendor, dev->device);
        if (!dev->name)
                return strdup(id);
        return strstr(dev->name, id) ? strdup(dev->name) : string_format("%s (%s)", dev->name, id);
}

static bool has_device(const Choice *c, const PciDevice *dev) {
        bool vf = dev->type == PCI_TYPE_VF;

        return vf == c->of_vfs && pci_addresses_have(c->devices, c->n, vf ? dev->physfn : dev->address);
}

/* Adds a comment if devices of the pool have this verdict: the address of the first such device, the number of the
 * others, and why the first cannot be allocated. */
static void write_verdict(Text *t, const Policy *policy, const Choice *c, Verdict verdict) {
        const Inventory *inv = policy->inventory;
        _cleanup_refusal_ Refusal why = { 0 };
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (has_device(c, &inv->devices[i]) && policy_verdict(policy, &inv->devices[i]) == verdict) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (!first)
                return;
        (void) policy_check(policy, first, &why);
        comment(t, "%s%s cannot be allocated yet. %s %s", PCI_ADDRESS_STR(first->address), AND_MORE(n - 1),
                why.message ?: "", why.remedy ?: "");
}

/* Adds a comment if a release cannot reset a device of the pool: the first such device, and why. */
static void write_reset(Text *t, const Policy *policy, const Choice *c) {
        const Inventory *inv = policy->inventory;

        for (size_t i = 0; i < inv->n_devices; i++) {
                _cleanup_refusal_ Refusal why = { 0 };

                if (!has_device(c, &inv->devices[i]) || device_can_be_reset(policy, &inv->devices[i], &why))
                        continue;
                comment(t, "%s %s", why.message ?: "", why.remedy ?: "");
                return;
        }
}

static void write_choice(Text *t, const Choice *c, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, c->devices[0]);
        _cleanup_free_ char *model = describe_model(dev), *list = list_addresses(c->devices, c->n);

        if (c->kind != CHOICE_NIC) {
                comment(t, "%s%zu %s%s: %s, %s.%s", c->of_vfs ? "VFs of " : "", c->n,
                        c->kind == CHOICE_GPU ? "GPU" : "accelerator", PLURAL(c->n), model ?: "", list ?: "",
                        c->of_vfs ? " Another program created them, such as AMD's driver gim, and changes their number."
                                  : "");
                return;
        }
        comment(t, "VFs of %zu NIC%s that the host does not need: %s, %s.", c->n, PLURAL(c->n), model ?: "",
                list ?: "");
        if (dev->n_vfs > 0 && !inventory_find(inv, dev->vfs[0])->expected)
                comment(t,
                        "VirtualFunctions= is the present number of VFs on %s, of %u at most; a change removes all "
                        "VFs of a PF.",
                        PCI_ADDRESS_STR(dev->address), dev->total_vfs);
        else
                comment(t, "VirtualFunctions= is the number of VFs that passthroughd creates on each, of %u at most%s.",
                        dev->total_vfs, pci_device_is_mlx4_pf(dev) ? ", when mlx4_core is loaded the next time" : "");
}

static void write_section(Text *t, const Choice *c, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, c->devices[0]);

        add(t, "[Pool %s]\n", c->pool);
        if (c->by_id && c->of_vfs)
                add(t, "Match=id=%04x:%04x type=vf\n", c->vendor, dev->vf_device);
        else if (c->by_id)
                add(t, "Match=id=%04x:%04x%s\n", c->vendor, c->device, c->type == PCI_TYPE_PF ? " type=pf" : "");
        for (size_t i = 0; !c->by_id && i < MIN(c->n, CONFIG_MATCHES_MAX); i++)
                add(t, "Match=%s=%s\n", c->of_vfs ? "type=vf pf" : "address", PCI_ADDRESS_STR(c->devices[i]));
        if (c->kind == CHOICE_NIC)
                add(t, "VirtualFunctions=%u\n", c->virtual_functions);
        else if (c->of_vfs)
                add(t, "VirtualFunctions=external\n");
}

static void write_omission(Text *t, const Omission *o, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, o->devices[0]);
        _cleanup_free_ char *model = describe_model(dev), *list = list_addresses(o->devices, o->n);
        bool same = true;

        for (size_t i = 1; i < o->n; i++) {
                const PciDevice *other = inventory_find(inv, o->devices[i]);

                same = same && other->vendor == dev->vendor && other->device == dev->device;
        }
        comment(t, "- %s%s%s%s: %s", list ?: "", same ? " (" : "", same ? model ?: "" : "", same ? ")" : "", o->why);
}

static void write_omissions(Text *t, const Suggestion *s, const Inventory *inv) {
        add(t, "\n");
        if (s->n_omissions > 0)
                comment(t, "Left out, so the host keeps them:");
        for (size_t i = 0; i < s->n_omissions; i++)
                write_omission(t, &s->omissions[i], inv);
        comment(t, "%s are not considered: bridges, storage controllers, USB and the like.",
                s->n_omissions > 0 ? "Other devices" : "Devices other than GPUs, accelerators and NICs");
}

char *suggestion_cpus(const CpuSet *cpus) {
        _cleanup_free_ char *list = cpuset_is_empty(cpus) ? NULL : cpuset_format(cpus);

        return list ? string_format("HousekeepingCpus=%s", list) : NULL;
}

char *suggestion_write(const Suggestion *s, const Inventory *inv, const Policy *policy) {
        _cleanup_free_ char *cpus = suggestion_cpus(&s->housekeeping);
        Text t = { 0 };

        if (policy)
                comment(&t, "Suggested by passthroughctl for this node. Review it, save it as "
                            "/etc/passthroughd/passthroughd.conf, and run 'passthroughctl reload'. "
                            "'passthroughctl check' tells what the node lacks; passthroughd.conf(5) has all settings.");
        add(&t, "%s[Daemon]\n", policy ? "\n" : "");
        if (inv->xen)
                add(&t, "Hypervisor=xen\n");
        if (policy)
                comment(&t, "%s", s->housekeeping_why);
        if (cpus)
                add(&t, "%s\n", cpus);
        if (policy && s->n_choices == 0)
                comment(&t, "There is no pool, because this node has no GPU, no other accelerator and no NIC with VFs "
                            "to offer.");
        for (size_t i = 0; i < s->n_choices; i++) {
                add(&t, "\n");
                if (policy) {
                        write_choice(&t, &s->choices[i], inv);
                        for (Verdict v = VERDICT_NONE + 1; v < _VERDICT_MAX; v++)
                                write_verdict(&t, policy, &s->choices[i], v);
                        write_reset(&t, policy, &s->choices[i]);
                }
                write_section(&t, &s->choices[i], inv);
        }
        if (policy)
                write_omissions(&t, s, inv);
        if (t.failed)
                free(t.text);
        return t.failed ? NULL : t.text;
}
