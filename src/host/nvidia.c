/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/nvidia.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/strings.h"

/* The file information has a line such as "Device Minor: \t 3". */
uint32_t nvidia_read_minor(const Sysfs *fs, PciAddress gpu) {
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
