/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Formats the configuration of a guest of Xen for xl. */

#include "guest/xlcfg.h"

#include <errno.h>

#include "domxml-internal.h"
#include "domxml-xen.h"
#include "util/strings.h"

#define MIB (1024U * 1024U)

/* Returns the memory of a cell in MiB, the unit of xl, rounded down. */
static uint64_t cell_size(const Cell *cell) {
        return cell->memory / MIB;
}

/* Appends the sentences about what the guest lacks as comments. 0 or -ENOMEM. */
static int write_losses(char **text, char *losses) {
        char *line;
        int r = 0;

        while (r >= 0 && (line = strsep(&losses, "\n")))
                if (*line)
                        r = string_append(text, "", "# %s\n", line);
        return r;
}

/* Appends the number of vCPUs, and the CPU of each. 0 or -ENOMEM. */
static int write_pins(char **text, const Allocation *a) {
        int r = string_append(text, "", "vcpus = %zu\ncpus = [ ", a->n_pins);

        for (size_t i = 0; i < a->n_pins && r >= 0; i++)
                r = string_append(text, "", "%s\"%u\"", i > 0 ? ", " : "", a->pins[i].cpu);
        return r < 0 ? r : string_append(text, "", " ]\n");
}

static int write_cell(char **text, const Inventory *inv, const Allocation *a, size_t cell) {
        _cleanup_free_ char *vcpus = cpuset_format(&a->cells[cell].vcpus);
        int r = vcpus ? string_append(text, "", "    [ \"pnode=%d\", \"size=%llu\", \"vcpus=%s\", \"vdistances=",
                                      cell_memory_node(&a->cells[cell]),
                                      (unsigned long long) cell_size(&a->cells[cell]), vcpus)
                      : -ENOMEM;

        for (size_t to = 0; to < a->n_cells && r >= 0; to++)
                r = string_append(text, "", "%s%u", to > 0 ? "," : "", guest_cell_distance(inv, a, 0, cell, to));
        return r < 0 ? r : string_append(text, "", "\" ],\n");
}

static int write_cells(char **text, const Inventory *inv, const Allocation *a) {
        int r = string_append(text, "", "vnuma = [\n");

        for (size_t i = 0; i < a->n_cells && r >= 0; i++)
                r = write_cell(text, inv, a, i);
        return r < 0 ? r : string_append(text, "", "]\n");
}

static int write_config(char **text, const Inventory *inv, const Allocation *a, GuestInfo info) {
        _cleanup_free_ char *losses = NULL;
        unsigned long long memory = 0;
        int r = xen_losses(a, info, XEN_DOCUMENT_XL, &losses);

        for (size_t i = 0; i < a->n_cells; i++)
                memory += cell_size(&a->cells[i]);
        if (r < 0)
                return r;
        r = write_losses(text, losses);
        if (r < 0)
                return r;
        r = string_append(text, "", "name = \"%s\"\nuuid = \"%s\"\ntype = \"hvm\"\nmemory = %llu\nmaxmem = %llu\n",
                          a->name, a->id, memory, memory);
        if (r < 0)
                return r;
        r = write_pins(text, a);
        if (r < 0)
                return r;
        r = write_cells(text, inv, a);
        if (r < 0)
                return r;
        r = string_append(text, "",
                          "on_poweroff = \"destroy\"\non_reboot = \"restart\"\non_crash = \"destroy\"\n"
                          "disk = [ \"format=qcow2,vdev=xvda,access=rw,target=" DOMXML_DISK "\" ]\n"
                          "vif = [ \"bridge=" XEN_BRIDGE "\" ]\nserial = \"pty\"\npci = [\n",
                          a->name);
        if (r < 0)
                return r;
        /* permissive=0: QEMU filters the guest's writes to the configuration space. rdm_policy=strict: the guest does
         * not start when its memory conflicts with memory that the host's firmware reserves for the device. */
        for (size_t i = 0; i < a->n_devices && r >= 0; i++)
                if (guest_pci_shows(&a->devices[i]))
                        r = string_append(text, "", "    \"%s,permissive=0,rdm_policy=strict\",\n",
                                          PCI_ADDRESS_STR(a->devices[i].address));
        return r < 0 ? r : string_append(text, "", "]\n");
}

Verdict xl_config_make(const Inventory *inv, const Config *config, const Allocation *a, GuestInfo info, char **ret,
                       Refusal *ret_refusal) {
        _cleanup_free_ char *text = NULL;
        Verdict v;

        if (config->hypervisor != HYPERVISOR_XEN)
                return refuse(ret_refusal, VERDICT_NOT_SUPPORTED, NULL,
                              "Ask for the format 'xml', or set Hypervisor=xen in [Daemon] on a node with Xen.",
                              "The format 'xl' is for Xen, and the guests of this node run with KVM.");
        v = domain_check(a, ret_refusal);
        if (v == VERDICT_NONE)
                v = xen_check(inv, a, ret_refusal);
        if (v != VERDICT_NONE)
                return v;
        if (write_config(&text, inv, a, info) < 0)
                return refuse_no_memory(ret_refusal);
        *ret = TAKE_PTR(text);
        return VERDICT_NONE;
}
