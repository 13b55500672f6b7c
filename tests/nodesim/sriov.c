/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates and removes virtual functions. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "attr.h"
#include "device.h"
#include "driver.h"
#include "mlx4.h"
#include "park.h"
#include "sriov.h"
#include "uevent.h"
#include "vfattr.h"

enum {
        CONFIG_SIZE = 256,
        CONFIG_SIZE_EXTENDED = 4096,
        VF_BAR_SIZE = 0x4000
};

int vf_template_add(Sim *sim, const char *pf, const char *options) {
        _cleanup_free_ char *words = xstrdup(options);
        VfTemplate vf = { .offset = 1, .stride = 1 };
        const char *device = NULL, *reset = NULL;
        char *state = NULL;

        for (char *word = strtok_r(words, " \t", &state); word; word = strtok_r(NULL, " \t", &state))
                if (strncmp(word, "device=", 7) == 0)
                        device = word + 7;
                else if (strncmp(word, "stride=", 7) == 0)
                        vf.stride = strtoul(word + 7, NULL, 0);
                else if (strncmp(word, "offset=", 7) == 0)
                        vf.offset = strtoul(word + 7, NULL, 0);
                else if (strncmp(word, "total=", 6) == 0)
                        vf.total = strtoul(word + 6, NULL, 0);
                else if (strncmp(word, "created=", 8) == 0)
                        vf.created = strtoul(word + 8, NULL, 0);
                else if (strncmp(word, "reset=", 6) == 0)
                        reset = word + 6;
                else if (strncmp(word, "attributes=", 11) == 0) {
                        if (vf_kind_parse(word + 11, &vf.kind) < 0)
                                return -EINVAL;
                } else if (strcmp(word, "group=own") == 0 || strcmp(word, "group=pf") == 0)
                        vf.group_of_pf = strcmp(word, "group=pf") == 0;
                else
                        return -EINVAL;
        if (!device || !address_is_valid(pf))
                return -EINVAL;
        vf.pf = xstrdup(pf);
        vf.device = xstrdup(device);
        vf.reset_method = reset ? xstrdup(reset) : NULL;
        for (char *c = vf.reset_method; c && *c; c++)
                if (*c == ',')
                        *c = ' ';
        sim->vfs = xrealloc(sim->vfs, sim->n_vfs + 1, sizeof(VfTemplate));
        sim->vfs[sim->n_vfs++] = vf;
        return 0;
}

/* Returns the last %vf line of the PF, else a template from the PF's own files. */
static VfTemplate vf_template_of(const Sim *sim, const Node *pf) {
        for (size_t i = sim->n_vfs; i-- > 0;)
                if (strcmp(sim->vfs[i].pf, pf->name) == 0)
                        return sim->vfs[i];
        return (VfTemplate) {
                .offset = node_number(pf, "sriov_offset", 1),
                .stride = node_number(pf, "sriov_stride", 1),
        };
}

VfKind sriov_kind(const Sim *sim, const Node *pf) {
        return vf_template_of(sim, pf).kind;
}

unsigned sriov_count(const Node *pf) {
        return (unsigned) node_number(pf, "sriov_numvfs", 0);
}

/* files of a VF */

static void copy_file(const Node *from, Node *to, const char *name) {
        const Node *file = node_child(from, name);

        if (file && file->type == NODE_FILE && file->data)
                node_set(node_make(to, name, NODE_FILE), file->data, file->size);
}

static void write_device_id(const Node *pf, Node *vf, const VfTemplate *template) {
        if (template->device)
                node_write(vf, "device", "0x%s\n", template->device);
        else {
                _cleanup_free_ char *id = node_text(pf, "sriov_vf_device");
                if (id) /* sriov_vf_device has no leading zeros */
                        node_write(vf, "device", "0x%04lx\n", strtoul(id, NULL, 16));
                else
                        copy_file(pf, vf, "device");
        }
}

/* Writes the config space of an express endpoint with FLR. Vendor and device ID of a VF read ffff: the kernel has them
 * from the PF. */
static void write_config(const Node *pf, Node *vf) {
        static const uint8_t express[] = { 0x10, 0x00, 0x02, 0x00, 0x00, 0x80, 0x00, 0x10 };
        const Node *config = node_child(pf, "config");
        uint8_t bytes[CONFIG_SIZE_EXTENDED] = { 0xff, 0xff, 0xff, 0xff, [0x06] = 0x10, [0x34] = 0x40 };
        size_t size;

        if (!config || config->size < CONFIG_SIZE)
                return;
        size = config->size < sizeof(bytes) ? CONFIG_SIZE : sizeof(bytes);
        memcpy(bytes + 0x08, config->data + 0x08, 4); /* revision and class */
        memcpy(bytes + 0x2c, config->data + 0x2c, 4); /* subsystem */
        memcpy(bytes + 0x40, express, sizeof(express));
        node_set(node_make(vf, "config", NODE_FILE), (const char *) bytes, size);
}

static void write_resource(const Node *pf, Node *vf, unsigned rid) {
        uint64_t start = UINT64_C(0x380000000000) + (uint64_t) rid * VF_BAR_SIZE;
        char *text = NULL;
        size_t size;
        FILE *f;

        if (!node_child(pf, "resource"))
                return;
        f = open_memstream(&text, &size);
        if (!f)
                abort();
        fprintf(f, "0x%016jx 0x%016jx 0x000000000014220c\n", (uintmax_t) start, (uintmax_t) start + VF_BAR_SIZE - 1);
        for (unsigned i = 1; i < 13; i++)
                fputs("0x0000000000000000 0x0000000000000000 0x0000000000000000\n", f);
        fclose(f);
        node_set(node_make(vf, "resource", NODE_FILE), text, size);
        free(text);
}

static void vf_fill(const Node *pf, Node *vf, const VfTemplate *template, unsigned rid) {
        static const char *const inherited[] = { "vendor",           "class",      "subsystem_vendor",
                                                 "subsystem_device", "revision",   "numa_node",
                                                 "local_cpulist",    "local_cpus", "dma_mask_bits" };

        for (size_t i = 0; i < sizeof(inherited) / sizeof(*inherited); i++)
                copy_file(pf, vf, inherited[i]);
        write_device_id(pf, vf, template);
        node_write(vf, "driver_override", "(null)\n");
        node_write(vf, "reset_method", "%s\n", template->reset_method ?: "flr");
        node_write(vf, "power_state", "unknown\n");
        node_write(vf, "enable", "0\n");
        node_write(vf, "irq", "0\n");
        write_config(pf, vf);
        write_resource(pf, vf, rid);
}

/* making and unmaking */

typedef struct Address {
        unsigned domain, bus, device, function;
} Address;

static unsigned pf_rid(const Node *pf, unsigned *ret_domain) {
        Address a = {};

        (void) sscanf(pf->name, "%x:%x:%x.%x", &a.domain, &a.bus, &a.device, &a.function);
        *ret_domain = a.domain;
        return a.bus << 8 | a.device << 3 | a.function;
}

static char *vf_name(const Node *pf, const VfTemplate *template, unsigned i, unsigned *ret_rid) {
        unsigned domain, rid = pf_rid(pf, &domain);

        *ret_rid = rid += (unsigned) (template->offset + i * template->stride);
        return xasprintf("%04x:%02x:%02x.%x", domain, rid >> 8, rid >> 3 & 0x1f, rid & 7);
}

static void vf_create(Sim *sim, Node *pf, const VfTemplate *template, unsigned i) {
        unsigned rid;
        _cleanup_free_ char *name = vf_name(pf, template, i, &rid), *link = xasprintf("virtfn%u", i);
        Node *vf = node_make(pf->parent, name, NODE_DIR);
        int group = group_of(pf);

        vf_fill(pf, vf, template, rid);
        if (driver_of(sim, pf) && driver_of(sim, pf)->vfio) /* VFs of a PF on VFIO get an override for its driver */
                node_write(vf, "driver_override", "%s\n", driver_of(sim, pf)->name);
        node_link(vf, "physfn", pf);
        node_link(pf, link, vf);
        vfattr_make(sim, pf, template->kind, i);
        device_register(sim, vf, group < 0 || template->group_of_pf ? group : group_lowest_free(sim));
        uevent_device(sim, "change", vf); /* an event for the links, which the kernel makes after the add */
        driver_probe(sim, vf);            /* regardless of the bus's drivers_autoprobe */
}

static int sriov_create(Sim *sim, Node *pf, unsigned n) {
        const VfTemplate template = vf_template_of(sim, pf);

        for (unsigned i = 0; i < n; i++) { /* checks all first: creates all VFs or none */
                unsigned rid;
                _cleanup_free_ char *name = vf_name(pf, &template, i, &rid);

                if (rid > 0xffff)
                        return -ENOMEM;
                if (device_find(sim, name))
                        return -EIO;
        }
        for (unsigned i = 0; i < n; i++)
                vf_create(sim, pf, &template, i);
        node_write(pf, "sriov_numvfs", "%u\n", n);
        uevent_device(sim, "change", pf);
        return 0;
}

void sriov_create_declared(Sim *sim) {
        for (size_t i = 0; i < sim->n_vfs; i++) {
                Node *pf = device_find(sim, sim->vfs[i].pf);

                if (pf && sim->vfs[i].created > 0 && sriov_count(pf) == 0)
                        (void) sriov_create(sim, pf, (unsigned) sim->vfs[i].created);
        }
}

void sriov_complete(Sim *sim, Node *pf) {
        const VfKind kind = sriov_kind(sim, pf);

        for (unsigned i = 0; i < sriov_count(pf); i++)
                vfattr_make(sim, pf, kind, i);
        if (kind == VF_KIND_MLX4)
                mlx4_make(pf, sriov_count(pf));
}

void sriov_destroy(Sim *sim, Node *pf) {
        const VfKind kind = sriov_kind(sim, pf);

        for (unsigned i = sriov_count(pf); i-- > 0;) {
                _cleanup_free_ char *link = xasprintf("virtfn%u", i);
                Node *vf = node_at(pf, link);

                node_remove_child(pf, link);
                vfattr_remove(sim, pf, kind, i);
                if (!vf)
                        continue;
                device_unregister(sim, vf);
                device_forget(sim, vf);
                node_remove(vf);
        }
        if (node_child(pf, "sriov_numvfs"))
                node_write(pf, "sriov_numvfs", "0\n");
}

void sriov_limit(const Sim *sim, Node *pf, const Driver *driver) {
        unsigned long total = vf_template_of(sim, pf).total;

        if (total == 0)
                return;
        if (driver && driver->max_vfs > 0 && driver->max_vfs < total)
                total = driver->max_vfs;
        node_write(pf, "sriov_totalvfs", "%lu\n", total);
}

int sriov_set(Sim *sim, Node *pf, const char *value) {
        const Driver *driver = driver_of(sim, pf);
        unsigned long n;
        int r = parse_number(value, &n);

        if (r < 0 || n > UINT16_MAX)
                return -EINVAL;
        if (n > node_number(pf, "sriov_totalvfs", 0))
                return -ERANGE;
        if (n == sriov_count(pf))
                return 0;
        if (!driver || !driver_enables_vfs(sim, driver))
                return -ENOENT;
        if (n > 0)
                return sriov_count(pf) > 0 ? -EBUSY : sriov_create(sim, pf, (unsigned) n);
        sriov_destroy(sim, pf);
        return 0;
}
