/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the config space, the power state and the fatal error counter of a device. */

#include "host/health.h"

#include "host/pcipath.h"
#include "reset.h"

void health_read(const Sysfs *fs, const PciDevice *dev, HealthReading *ret) {
        char power[SYSFS_ATTRIBUTE_MAX] = "", errors[SYSFS_ATTRIBUTE_MAX];

        /* This check comes first because it wakes a sleeping device. The power state "unknown" is no error: every
         * device that was unbound from its driver has it. */
        *ret = (HealthReading) { .error = reset_check(fs, dev->address) };
        (void) sysfs_read(fs, PCI_PATH(dev->address, "power_state"), power, sizeof(power));
        ret->cold = streq(power, "D3cold");
        ret->power_error = streq(power, "error");
        if (ret->error == 0 && dev->type != PCI_TYPE_VF)
                ret->counted = sysfs_read(fs, PCI_PATH(dev->address, "aer_dev_fatal"), errors, sizeof(errors)) >= 0 &&
                               health_parse_errors(errors, &ret->fatal) == 0;
}
