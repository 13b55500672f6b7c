/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "util/program.h"

#include <errno.h>
#include <stdio.h>

#include "util/cleanup.h"

int program_find(const char *name, char ret[static PATH_MAX]) {
        static const char *const places[] = { "", "../libexec/" };
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        char *slash;

        if (n < 0)
                return -errno;
        self[n] = '\0';
        slash = strrchr(self, '/');
        if (!slash)
                return -ENOENT;
        slash[1] = '\0';
        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                if (snprintf(ret, PATH_MAX, "%s%s%s", self, places[i], name) >= PATH_MAX)
                        return -ENAMETOOLONG;
                if (access(ret, X_OK) >= 0)
                        return 0;
        }
        return -errno;
}
