/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "util/group.h"

#include <errno.h>
#include <grp.h>
#include <stdint.h>
#include <stdlib.h>

#include "util/cleanup.h"
#include "util/strings.h"

#define GROUP_BUFFER 16384U

int group_find(const char *group, gid_t *ret) {
        _cleanup_free_ char *buffer = malloc(GROUP_BUFFER);
        struct group entry, *found = NULL;
        uint64_t number;
        int r;

        if (!buffer)
                return -ENOMEM;
        if (parse_unsigned(group, UINT32_MAX - 1, &number) == 0) {
                *ret = (gid_t) number;
                return 0;
        }
        r = getgrnam_r(group, &entry, buffer, GROUP_BUFFER, &found);
        if (!found)
                return r == ENOMEM ? -ENOMEM : -ESRCH;
        *ret = entry.gr_gid;
        return 0;
}
