/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attributes of a VF: which way its PF offers, in what order, and the look afterwards. */

#include "host/vfattr.h"

#include <errno.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "host/vfattr-internal.h"

/*
 * A PF can have several. The first that offers an attribute has it: MLNX_OFED's directory needs no IPoIB, and of mlx4's
 * two ports one may be InfiniBand and the other Ethernet.
 */
static const struct Way {
        int (*read)(const VfTarget *t, VfAttributes *ret);
        int (*write)(const VfTarget *t, const VfAttributes *change);
} ways[] = {
        { vf_ofed_read, vf_ofed_write },
        { vf_mlx4_read, vf_mlx4_write },
        { vf_netlink_read, vf_netlink_write },
};

typedef struct State {
        VfAttributes all;
        unsigned own[ELEMENTSOF(ways)]; /* the bits of all that are each way's */
} State;

static int check_exists(const VfTarget *t) {
        char link[32], target[PCI_ADDRESS_STRING_MAX];
        int r;

        (void) snprintf(link, sizeof(link), "virtfn%u", t->vf);
        r = sysfs_link_name(t->fs, PCI_PATH(t->pf, link), target, sizeof(target));
        return r == -ENOENT ? -ENODEV : r;
}

static int read_state(const VfTarget *t, State *ret) {
        State s = { 0 };
        int r = check_exists(t);

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(ways); i++) {
                VfAttributes offered = { 0 };

                r = ways[i].read(t, &offered);
                s.own[i] = offered.set & ~s.all.set;
                vf_attributes_merge(&offered, &s.all);
                s.all = offered;
        }
        if (r < 0)
                return r;
        if (s.all.set == 0)
                return -EOPNOTSUPP;
        *ret = s;
        return 0;
}

int vf_attributes_read(const Sysfs *fs, PciAddress pf, unsigned vf, VfAttributes *ret) {
        const VfTarget t = { fs, pf, vf };
        State s;
        int r = read_state(&t, &s);

        if (r >= 0)
                *ret = s.all;
        return r;
}

static int write_ways(const VfTarget *t, const State *now, const VfAttributes *want, unsigned bits) {
        for (size_t i = 0; i < ELEMENTSOF(ways); i++) {
                VfAttributes change = *want;
                int r;

                vf_attributes_keep(&change, bits & now->own[i]);
                if (change.set == 0)
                        continue;
                r = ways[i].write(t, &change);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A VLAN that is named without them has no priority and the usual protocol, not those of the VLAN before. */
static VfAttributes whole_vlan(const VfAttributes *want, const State *s) {
        static const VfAttribute with[] = { VF_QOS, VF_PROTOCOL };
        VfAttributes whole = *want;

        for (size_t i = 0; vf_attributes_have(want, VF_VLAN) && i < ELEMENTSOF(with); i++)
                if (!vf_attributes_have(want, with[i]) && vf_attributes_have(&s->all, with[i]))
                        vf_attributes_put(&whole, with[i], 0);
        return whole;
}

int vf_attributes_write(const Sysfs *fs, PciAddress pf, unsigned vf, const VfAttributes *wanted) {
        const VfTarget t = { fs, pf, vf };
        VfAttributes whole;
        const VfAttributes *want = &whole;
        unsigned bits;
        State s;
        int r = read_state(&t, &s);

        if (r < 0)
                return r;
        whole = whole_vlan(wanted, &s);
        bits = vf_attributes_differ(want, &s.all);
        if (bits == 0)
                return 0;
        if (bits & ~s.all.set)
                return -EOPNOTSUPP;
        r = write_ways(&t, &s, want, bits);
        if (r >= 0)
                r = read_state(&t, &s);
        if (r < 0)
                return r;
        return vf_attributes_differ(want, &s.all) ? -EIO : 1;
}
