/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes VF attributes: chooses the kernel interface of each attribute and verifies writes. */

#include "host/vfattr.h"

#include <errno.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "vfattr-internal.h"

/*
 * The kernel interfaces for VF attributes. A PF can have several. An attribute is read and written through the first
 * interface that supports it. MLNX_OFED precedes rtnetlink, because its directory exists without IPoIB, too. An mlx4
 * card can need two interfaces: one port may be InfiniBand and the other Ethernet.
 */
static const struct Interface {
        int (*read)(const VfTarget *t, VfAttributes *ret);
        int (*write)(const VfTarget *t, const VfAttributes *change);
} interfaces[] = {
        { vf_ofed_read, vf_ofed_write },
        { vf_mlx4_read, vf_mlx4_write },
        { vf_netlink_read, vf_netlink_write },
};

typedef struct State {
        VfAttributes all;
        unsigned own[ELEMENTSOF(interfaces)]; /* bit N of own[i]: attribute N of all is written by interfaces[i] */
} State;

static int check_exists(const VfTarget *t) {
        char link[32], target[PCI_ADDRESS_STRING_MAX];
        int r;

        (void) snprintf(link, sizeof(link), "virtfn%u", t->vf);
        r = sysfs_link_name(t->fs, PCI_PATH(t->pf, link), target, sizeof(target));
        return r == -ENOENT ? -ENODEV : r;
}

/* Reads the VF's attributes through all interfaces. ret->all is empty when the PF supports no attribute. */
static int read_state(const VfTarget *t, State *ret) {
        State s = { 0 };
        int r = check_exists(t);

        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTSOF(interfaces); i++) {
                VfAttributes offered = { 0 };

                r = interfaces[i].read(t, &offered);
                s.own[i] = offered.set & ~s.all.set;
                vf_attributes_merge(&offered, &s.all);
                s.all = offered;
                if (r < 0)
                        return r;
        }
        *ret = s;
        return r;
}

static int read_attributes(const VfTarget *t, VfAttributes *ret) {
        State s;
        int r = read_state(t, &s);

        if (r < 0)
                return r;
        if (s.all.set == 0)
                return -EOPNOTSUPP;
        *ret = s.all;
        return 0;
}

int vf_attributes_read(const Sysfs *fs, PciAddress pf, unsigned vf, VfAttributes *ret) {
        _cleanup_(pf_view_forget) PfView view = { 0 };

        return read_attributes(&(VfTarget) { fs, pf, vf, &view }, ret);
}

void vf_attributes_read_all(const Sysfs *fs, const VfPlace *vfs, size_t n,
                            void (*tell)(size_t i, int result, const VfAttributes *attributes, void *userdata),
                            void *userdata) {
        _cleanup_(pf_view_forget) PfView view = { 0 };

        for (size_t i = 0; i < n; i++) {
                VfAttributes attributes = { 0 };
                int r;

                if (i > 0 && !pci_address_equal(vfs[i].pf, vfs[i - 1].pf))
                        pf_view_forget(&view);
                r = read_attributes(&(VfTarget) { fs, vfs[i].pf, vfs[i].vf, &view }, &attributes);
                tell(i, r, &attributes, userdata);
        }
}

/* Writes the attributes that differ from `now`, each through its interface. Returns 1 or a negative errno. */
static int write_interfaces(const VfTarget *t, const VfChange *c, const State *now) {
        for (size_t i = 0; i < ELEMENTSOF(interfaces); i++) {
                VfAttributes change = c->wanted;
                int r;

                vf_attributes_keep(&change, vf_attributes_differ(&c->wanted, &now->all) & now->own[i]);
                if (change.set == 0)
                        continue;
                r = interfaces[i].write(t, &change);
                if (r < 0)
                        return r;
        }
        return 1;
}

/* Adds priority 0 and protocol 802.1Q to a VLAN without them, as far as the PF supports these. Otherwise the VF would
 * keep those of its previous VLAN. */
static VfAttributes complete_vlan(const VfAttributes *want, const State *s) {
        static const VfAttribute with[] = { VF_QOS, VF_PROTOCOL };
        VfAttributes whole = *want;

        for (size_t i = 0; vf_attributes_have(want, VF_VLAN) && i < ELEMENTSOF(with); i++)
                if (!vf_attributes_have(want, with[i]) && vf_attributes_have(&s->all, with[i]))
                        vf_attributes_put(&whole, with[i], 0);
        return whole;
}

/* Reads the VF's attributes into *now and c->had, completes c->wanted, and compares both. Returns 1 if a write is
 * needed, 0 if not, or a negative errno. */
static int prepare_change(const VfTarget *t, VfChange *c, State *now) {
        int r = read_state(t, now);

        if (r < 0)
                return r;
        c->had = now->all;
        c->wanted = complete_vlan(&c->wanted, now);
        if (c->only_offered)
                vf_attributes_keep(&c->wanted, now->all.set);
        if (vf_attributes_differ(&c->wanted, &now->all) & ~now->all.set)
                return -EOPNOTSUPP;
        return vf_attributes_differ(&c->wanted, &now->all) != 0;
}

static int verify_change(const VfTarget *t, const VfChange *c) {
        State then;
        int r = read_state(t, &then);

        if (r < 0)
                return r;
        if (then.all.set == 0) /* the PF's network interface has disappeared */
                return -EOPNOTSUPP;
        return vf_attributes_differ(&c->wanted, &then.all) ? -EIO : 1;
}

static void ignore_result(const VfChange *c _unused_, VfMoment moment _unused_, void *userdata _unused_) {
}

void vf_attributes_write(const Sysfs *fs, PciAddress pf, VfChange *changes, size_t n, VfTell tell, void *userdata) {
        _cleanup_(pf_view_forget) PfView before = { 0 }, after = { 0 };
        _cleanup_free_ State *now = calloc(n + 1, sizeof(*now));

        tell = tell ?: ignore_result;
        for (VfChange *c = changes; c < changes + n; c++) {
                tell(c, VF_LOOKING, userdata);
                c->result =
                        now ? prepare_change(&(VfTarget) { fs, pf, c->vf, &before }, c, &now[c - changes]) : -ENOMEM;
                if (c->result < 0)
                        tell(c, VF_DONE, userdata);
        }
        for (VfChange *c = changes; c < changes + n; c++) {
                if (c->result < 0)
                        continue;
                tell(c, VF_WRITING, userdata);
                if (c->result > 0)
                        c->result = write_interfaces(&(VfTarget) { fs, pf, c->vf, &before }, c, &now[c - changes]);
                if (c->result <= 0)
                        tell(c, VF_DONE, userdata);
        }
        for (VfChange *c = changes; c < changes + n; c++) {
                if (c->result <= 0)
                        continue;
                tell(c, VF_LOOKING, userdata);
                c->result = verify_change(&(VfTarget) { fs, pf, c->vf, &after }, c);
                tell(c, VF_DONE, userdata);
        }
}
