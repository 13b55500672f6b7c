/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vf-attributes ROOT PF VF [TERMS]: sets TERMS, and prints the attributes of the VF that the PF reports, in one line,
 * or the name of an errno. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/vfattr.h"

static int change(const Sysfs *fs, PciAddress pf, unsigned vf, const char *terms) {
        _cleanup_free_ char *problem = NULL;
        VfChange c = { .vf = vf };
        int r = vf_attributes_parse(terms, &c.wanted, &problem);

        if (r < 0) {
                fprintf(stderr, "%s\n", problem ?: strerror(-r));
                return r;
        }
        vf_attributes_write(fs, pf, &c, 1, NULL, NULL);
        return c.result;
}

static int show(const Sysfs *fs, PciAddress pf, unsigned vf) {
        _cleanup_free_ char *text = NULL;
        VfAttributes now = { 0 };
        int r = vf_attributes_read(fs, pf, vf, &now);

        if (r < 0)
                return r;
        text = vf_attributes_format(&now);
        return text && puts(text) >= 0 ? 0 : -ENOMEM;
}

int main(int argc, char *argv[]) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        PciAddress pf;
        int r;

        if (argc < 4 || argc > 5 || pci_address_parse(argv[2], &pf) < 0) {
                fputs("vf-attributes ROOT PF VF [TERMS]\n", stderr);
                return 2;
        }
        r = sysfs_new(argv[1], &fs);
        if (r >= 0 && argc == 5)
                r = change(fs, pf, (unsigned) atoi(argv[3]), argv[4]);
        if (r >= 0)
                r = show(fs, pf, (unsigned) atoi(argv[3]));
        if (r < 0)
                puts(strerrorname_np(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
