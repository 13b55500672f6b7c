/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The attributes of VFs that a PF has, and the writes that drivers refuse. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "mlx4.h"
#include "netdev.h"
#include "sriov.h"
#include "vfattr.h"

#define STATE "vf-netlink" /* not in a real kernel */
#define KEPT  "kept"
#define OFED  "sriov"

#define ETHERNET (1U << VF_KIND_ETHERNET | 1U << VF_KIND_ICE | 1U << VF_KIND_IGB | 1U << VF_KIND_MLX4_EN)

static const char *const kind_names[] = {
        [VF_KIND_NONE] = "none", [VF_KIND_ETHERNET] = "ethernet", [VF_KIND_ICE] = "ice",
        [VF_KIND_IGB] = "igb",   [VF_KIND_MLX4_EN] = "mlx4_en",   [VF_KIND_INFINIBAND] = "infiniband",
        [VF_KIND_OFED] = "ofed", [VF_KIND_MLX4] = "mlx4",
};

typedef struct Rule {
        Node *file;
        VfKind kind;
        bool switchdev;
} Rule;

typedef struct VfFile {
        unsigned kinds;
        const char *dir, *name, *initial;
        int (*store)(const Rule *rule, const char *value);
} VfFile;

int vf_kind_parse(const char *name, VfKind *ret) {
        for (int i = VF_KIND_NONE + 1; i < _VF_KIND_MAX; i++)
                if (strcmp(kind_names[i], name) == 0) {
                        *ret = (VfKind) i;
                        return 0;
                }
        return -EINVAL;
}

const char *vf_kind_name(VfKind kind) {
        return kind_names[kind];
}

/* Rules of the drivers */

static int keep(const Rule *rule, const char *value) {
        node_write(rule->file->parent, rule->file->name, "%.*s\n", (int) strcspn(value, "\n"), value);
        return 0;
}

static int store_mac(const Rule *rule, const char *value) {
        unsigned b[6];

        if (sscanf(value, "%2x:%2x:%2x:%2x:%2x:%2x", b, b + 1, b + 2, b + 3, b + 4, b + 5) != 6 || (b[0] & 1))
                return -EINVAL;
        return keep(rule, value);
}

/* value: "VLAN QOS PROTOCOL", in one file because the driver gets them in one call. */
static int store_vlan(const Rule *rule, const char *value) {
        char protocol[8] = "";
        unsigned vlan, qos;

        if (sscanf(value, "%u %u %7s", &vlan, &qos, protocol) != 3)
                return -EINVAL;
        if (strcmp(protocol, "802.1q") != 0 && (rule->kind != VF_KIND_ICE || strcmp(protocol, "802.1ad") != 0))
                return -EPROTONOSUPPORT;
        if (vlan > 4095 || qos > 7)
                return -EINVAL;
        if (rule->switchdev) /* VLAN 0 is accepted, because libvirt writes it */
                return vlan == 0 ? 0 : -EOPNOTSUPP;
        return keep(rule, value);
}

/* value: "MIN MAX". */
static int store_rate(const Rule *rule, const char *value) {
        unsigned low, high;

        if (sscanf(value, "%u %u", &low, &high) != 2 || (high > 0 && low > high))
                return -EINVAL;
        return rule->kind == VF_KIND_IGB && low > 0 ? -EINVAL : keep(rule, value);
}

static int store_switch(const Rule *rule, const char *value) {
        if (strcmp(value, "on\n") != 0 && strcmp(value, "off\n") != 0)
                return -EINVAL;
        return rule->switchdev ? -EOPNOTSUPP : keep(rule, value);
}

static int store_link(const Rule *rule, const char *value) {
        if (strcmp(value, "auto\n") != 0 && strcmp(value, "enable\n") != 0 && strcmp(value, "disable\n") != 0)
                return -EINVAL;
        return keep(rule, value);
}

static int store_guid(const Rule *rule, const char *value) {
        unsigned b[8];

        if (sscanf(value, "%02x:%02x:%02x:%02x:%02x:%02x:%02x:%02x", b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6,
                   b + 7) != 8)
                return -EINVAL;
        node_write(rule->file->parent, rule->file->name, "%02x:%02x:%02x:%02x:%02x:%02x:%02x:%02x\n", b[0], b[1], b[2],
                   b[3], b[4], b[5], b[6], b[7]);
        return 0;
}

/* The driver compares the value with its newline. */
static int store_policy(const Rule *rule, const char *value) {
        if (strcmp(value, "Down\n") != 0 && strcmp(value, "Up\n") != 0 && strcmp(value, "Follow\n") != 0)
                return -EINVAL;
        return keep(rule, value);
}

static const char no_guid[] = "00:00:00:00:00:00:00:00";

static const VfFile vf_files[] = {
        { ETHERNET, STATE, "mac", "00:00:00:00:00:00", store_mac },
        { ETHERNET, STATE, "vlan", "0 0 802.1q", store_vlan },
        { ETHERNET, STATE, "rate", "0 0", store_rate },
        { ETHERNET, STATE, "spoofchk", "on", store_switch },
        { ETHERNET & ~(1U << VF_KIND_MLX4_EN), STATE, "trust", "off", store_switch },
        { ETHERNET & ~(1U << VF_KIND_IGB), STATE, "link_state", "auto", store_link },
        { 1U << VF_KIND_INFINIBAND, STATE, "link_state", "disable", store_link },
        { 1U << VF_KIND_INFINIBAND, STATE, "node_guid", no_guid, store_guid },
        { 1U << VF_KIND_INFINIBAND, STATE, "port_guid", no_guid, store_guid },
        { 1U << VF_KIND_OFED, OFED, "node", no_guid, store_guid },
        { 1U << VF_KIND_OFED, OFED, "port", no_guid, store_guid },
        { 1U << VF_KIND_OFED, OFED, "policy", "Down", store_policy },
};
enum {
        N_FILES = sizeof(vf_files) / sizeof(*vf_files)
};

/* writes */

static bool is_named(const Node *node, const char *name) {
        return node && strcmp(node->name, name) == 0;
}

static const VfFile *vf_file(const Node *file) {
        const Node *all = file->parent ? file->parent->parent : NULL;

        if (!all || !node_is_device(all->parent))
                return NULL;
        for (size_t i = 0; i < N_FILES; i++)
                if (is_named(all, vf_files[i].dir) && is_named(file, vf_files[i].name))
                        return vf_files + i;
        return NULL;
}

bool vfattr_is_writable(const Node *file) {
        return vf_file(file) || mlx4_is_writable(file);
}

static bool is_switchdev(const Node *pf) {
        const Node *state = node_child(pf, STATE);
        _cleanup_free_ char *mode = state ? node_text(state, "eswitch_mode") : NULL;

        return mode && strcmp(mode, "switchdev") == 0;
}

int vfattr_write(Sim *sim, Node *file, const char *value) {
        const Node *pf = file->parent->parent->parent;

        if (mlx4_is_writable(file))
                return mlx4_write(file, value);
        return vf_file(file)->store(
                &(Rule) {
                        .file = file,
                        .kind = sriov_kind(sim, pf),
                        .switchdev = is_switchdev(pf),
                },
                value);
}

/* making and unmaking */

static const char *directory_of(VfKind kind) {
        return kind == VF_KIND_OFED ? OFED : STATE;
}

static bool is_kept(VfKind kind) {
        return kind == VF_KIND_OFED || kind == VF_KIND_INFINIBAND;
}

/* Restores the attributes of a VF that is created again, as the driver does. */
static bool take_kept(Node *pf, Node *all, const char *index) {
        Node *kept = node_atf(pf, "%s/%s/%s", STATE, KEPT, index), *dir;

        if (!kept || node_child(all, index))
                return false;
        dir = kept->parent;
        node_detach(kept);
        node_attach(all, kept);
        node_renew(kept);
        if (dir->n_children == 0)
                node_remove(dir);
        return true;
}

void vfattr_make(Sim *sim, Node *pf, VfKind kind, unsigned vf) {
        if (kind == VF_KIND_NONE || kind == VF_KIND_MLX4)
                return;
        _cleanup_free_ char *index = xasprintf("%u", vf);
        Node *all = node_make(pf, directory_of(kind), NODE_DIR);

        if (is_switchdev(pf))
                representor_make(sim, pf, vf);
        if (is_kept(kind) && take_kept(pf, all, index))
                return;
        Node *dir = node_make(all, index, NODE_DIR);
        for (size_t i = 0; i < N_FILES; i++)
                if (vf_files[i].kinds & 1U << kind && !node_child(dir, vf_files[i].name))
                        node_write(dir, vf_files[i].name, "%s\n", vf_files[i].initial);
}

static bool is_initial(const Node *dir, VfKind kind) {
        for (size_t i = 0; i < N_FILES; i++) {
                _cleanup_free_ char *text = node_text(dir, vf_files[i].name);

                if (vf_files[i].kinds & 1U << kind && (!text || strcmp(text, vf_files[i].initial) != 0))
                        return false;
        }
        return true;
}

void vfattr_remove(Sim *sim, Node *pf, VfKind kind, unsigned vf) {
        _cleanup_free_ char *index = xasprintf("%u", vf);
        Node *all = node_child(pf, directory_of(kind)), *dir = all ? node_child(all, index) : NULL;

        if (kind == VF_KIND_NONE || !dir)
                return;
        if (is_kept(kind) && !is_initial(dir, kind)) {
                node_detach(dir);
                node_attach(node_make(node_make(pf, STATE, NODE_DIR), KEPT, NODE_DIR), dir);
        } else
                node_remove(dir);
        representor_remove(sim, pf, vf);
        if (all->n_children == 0)
                node_remove(all);
}

void vfattr_forget(Node *pf) {
        Node *state = node_child(pf, STATE);

        if (!state)
                return;
        node_remove_child(state, KEPT);
        if (state->n_children == 0)
                node_remove(state);
}
