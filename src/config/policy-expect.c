/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The VFs that the daemon would create on a recorded machine. */

#include <errno.h>

#include "config/policy.h"
#include "util/strings.h"

typedef struct Wish {
        PciAddress pf;
        unsigned n;
} Wish;

static bool is_wanted(const Policy *p, const PciDevice *pf) {
        const Pool *pool = pf->n_virtfns == 0 ? policy_asking_pool(p, pf) : NULL;

        return pool && policy_check_vf_number(p, pf, pool, NULL) == VERDICT_NONE;
}

static int list_wishes(const Policy *p, Wish **ret, size_t *ret_n) {
        const Inventory *inv = p->inventory;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *pf = &inv->devices[i];

                if (!is_wanted(p, pf))
                        continue;
                if (ARRAY_RESERVE(*ret, *ret_n) < 0)
                        return -ENOMEM;
                (*ret)[(*ret_n)++] = (Wish) { pf->address, policy_vf_pool(p, pf)->virtual_functions };
        }
        return 0;
}

int policy_expect_vfs(const Config *config, Inventory *inv) {
        _cleanup_(cleanup_policy_free) Policy *p = NULL;
        _cleanup_free_ Wish *wishes = NULL;
        size_t n = 0;
        int r = policy_new(config, inv, &p);

        if (r < 0)
                return r;
        r = list_wishes(p, &wishes, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                r = inventory_expect_vfs(inv, wishes[i].pf, wishes[i].n);
                if (r == -ENODATA || r == -ERANGE)
                        r = 0;
                if (r < 0)
                        return r;
        }
        return r;
}
