/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the text of the kernel command line. */

#include <errno.h>
#include <string.h>

#include "model/cmdline.h"
#include "util/cleanup.h"

#define BLANKS " \t\n"

/* Returns true when the word, n bytes long, is the key; '-' and '_' are the same. */
static bool is_key(const char *word, size_t n, const char *key) {
        if (strlen(key) != n)
                return false;
        for (size_t i = 0; i < n; i++)
                if ((word[i] == '-' ? '_' : word[i]) != (key[i] == '-' ? '_' : key[i]))
                        return false;
        return true;
}

bool cmdline_next(const char **rest, const char *key, const char **ret_value, size_t *ret_n) {
        for (;;) {
                const char *word = *rest + strspn(*rest, BLANKS);
                size_t n = strcspn(word, BLANKS), length = strcspn(word, "=" BLANKS);

                if (n == 0)
                        return false;
                *rest = word + n;
                if (!is_key(word, length, key))
                        continue;
                *ret_value = length < n ? word + length + 1 : word + n;
                *ret_n = (size_t) (*rest - *ret_value);
                return true;
        }
}

bool cmdline_has(const char *cmdline, const char *key) {
        const char *value;
        size_t n;

        return cmdline_next(&cmdline, key, &value, &n);
}

static bool list_has(const char *list, size_t n, const char *word) {
        const char *end = list + n;
        size_t length;

        for (; list < end; list += length + 1) {
                length = strcspn(list, "," BLANKS);
                if (length == strlen(word) && strncmp(list, word, length) == 0)
                        return true;
        }
        return false;
}

bool cmdline_says(const char *cmdline, const char *key, const char *word) {
        const char *value;
        size_t n;

        while (cmdline_next(&cmdline, key, &value, &n))
                if (list_has(value, n, word))
                        return true;
        return false;
}

int cmdline_isolated(const char *cmdline, CpuSet *ret) {
        const char *value;
        CpuSet some;
        size_t n;

        while (cmdline_next(&cmdline, "isolcpus", &value, &n)) {
                _cleanup_free_ char *list = strndup(value, n);

                if (!list)
                        return -ENOMEM;
                if (cpuset_parse(list + strcspn(list, "0123456789"), &some) >= 0)
                        cpuset_merge(ret, &some);
        }
        return 0;
}

const char *cmdline_iommu_off(const char *cmdline) {
        static const char *const keys[] = { "intel_iommu", "amd_iommu", "iommu" };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (cmdline_says(cmdline, keys[i], "off"))
                        return keys[i];
        return NULL;
}

IommuBoot cmdline_iommu(const char *cmdline) {
        if (cmdline_iommu_off(cmdline))
                return IOMMU_BOOT_OFF;
        return cmdline_says(cmdline, "intel_iommu", "on") ? IOMMU_BOOT_ON : IOMMU_BOOT_DEFAULT;
}

bool cmdline_iommu_passthrough(const char *cmdline) {
        static const char *const words[] = { "1", "y", "Y", "on", "true" };

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (cmdline_says(cmdline, "iommu.passthrough", words[i]))
                        return true;
        return cmdline_says(cmdline, "iommu", "pt");
}
