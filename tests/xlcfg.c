/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * xlcfg FILE: reads an xl configuration with Xen's own parser (libxlutil, which xl uses) and prints one value per line:
 * NAME=VALUE, NAME.INDEX=VALUE for list elements, NAME.INDEX.INDEX=VALUE for elements of nested lists. For disks and
 * PCI devices, the values are those of Xen's parsed structures. Exits with 1 when Xen cannot parse the file.
 */

#include <libxlutil.h>
#include <stdio.h>

#include "util/cleanup.h"
#include "util/strings.h"

static int print_string(const XLU_Config *cfg, const char *name) {
        const char *value;

        if (xlu_cfg_get_string(cfg, name, &value, true) != 0)
                return -1;
        printf("%s=%s\n", name, value);
        return 0;
}

static int print_pci(XLU_Config *cfg, int index, const char *text) {
        libxl_device_pci pci;

        libxl_device_pci_init(&pci);
        if (xlu_pci_parse_spec_string(cfg, &pci, text) != 0)
                return -1;
        printf("pci.%d=%04x:%02x:%02x.%x permissive=%d rdm_policy=%s\n", index, pci.domain, pci.bus, pci.dev, pci.func,
               pci.permissive, libxl_rdm_reserve_policy_to_string(pci.rdm_policy));
        libxl_device_pci_dispose(&pci);
        return 0;
}

static int print_disk(XLU_Config *cfg, int index, const char *text) {
        libxl_device_disk disk;

        libxl_device_disk_init(&disk);
        if (xlu_disk_parse(cfg, 1, &text, &disk) != 0)
                return -1;
        printf("disk.%d=%s %s %s\n", index, disk.vdev, libxl_disk_format_to_string(disk.format), disk.pdev_path);
        libxl_device_disk_dispose(&disk);
        return 0;
}

static int print_nested(const XLU_Config *cfg, const char *name, int index, XLU_ConfigValue *value) {
        XLU_ConfigList *list;
        const char *text;

        if (xlu_cfg_value_get_list(cfg, value, &list, false) != 0)
                return -1;
        for (int i = 0; (text = xlu_cfg_get_listitem(list, i)); i++)
                printf("%s.%d.%d=%s\n", name, index, i, text);
        return 0;
}

static int print_item(XLU_Config *cfg, const char *name, int index, XLU_ConfigValue *value) {
        char *text;

        if (xlu_cfg_value_type(value) == XLU_LIST)
                return print_nested(cfg, name, index, value);
        if (xlu_cfg_value_get_string(cfg, value, &text, false) != 0)
                return -1;
        if (streq(name, "pci"))
                return print_pci(cfg, index, text);
        if (streq(name, "disk"))
                return print_disk(cfg, index, text);
        printf("%s.%d=%s\n", name, index, text);
        return 0;
}

static int print_list(XLU_Config *cfg, const char *name) {
        XLU_ConfigList *list;
        int n, r = 0;

        if (xlu_cfg_get_list(cfg, name, &list, &n, false) != 0)
                return -1;
        for (int i = 0; i < n && r == 0; i++)
                r = print_item(cfg, name, i, xlu_cfg_get_listitem2(list, i));
        return r;
}

int main(int argc, char *argv[]) {
        static const char *const strings[] = { "name", "uuid", "type", "memory", "maxmem", "vcpus", "serial" };
        static const char *const lists[] = { "cpus", "vnuma", "disk", "vif", "pci" };
        XLU_Config *cfg = argc == 2 ? xlu_cfg_init(stderr, argv[1]) : NULL;
        int r = cfg ? xlu_cfg_readfile(cfg, argv[1]) : -1;

        for (size_t i = 0; i < ELEMENTSOF(strings) && r == 0; i++)
                r = print_string(cfg, strings[i]);
        for (size_t i = 0; i < ELEMENTSOF(lists) && r == 0; i++)
                r = print_list(cfg, lists[i]);
        if (cfg)
                xlu_cfg_destroy(cfg);
        return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
