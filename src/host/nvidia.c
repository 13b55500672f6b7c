/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/nvidia.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/strings.h"

/* The file information has a line such as "Device Minor: \t 3". */
static uint32_t read_minor(const Sysfs *fs, PciAddress gpu) {
        static const char key[] = "Device Minor:";
        char path[128], text[SYSFS_ATTRIBUTE_MAX];
        const char *at = NULL;
        unsigned minor;

        (void) snprintf(path, sizeof(path), "proc/driver/nvidia/gpus/%s/information", PCI_ADDRESS_STR(gpu));
        if (sysfs_read(fs, path, text, sizeof(text)) >= 0)
                at = strstr(text, key);
        return at && sscanf(at + strlen(key), "%u", &minor) == 1 && minor <= NVIDIA_MINOR_LAST ? minor
                                                                                               : NVIDIA_MINOR_UNKNOWN;
}

int nvidia_query(const Sysfs *fs, const PciAddress *gpus, size_t n,
                 void (*tell)(size_t i, uint32_t minor, void *userdata), void *userdata) {
        for (size_t i = 0; i < n; i++)
                tell(i, read_minor(fs, gpus[i]), userdata);
        return 0;
}
