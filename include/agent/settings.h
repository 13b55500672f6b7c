/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads files of settings with [SECTION], KEY=VALUE and comments, by a table of keys. */

#include <stddef.h>

typedef struct AgentKey {
        const char *section, *name;
        /* Parses the value, which may be "", and sets the member. -EINVAL: the value is not valid. */
        int (*parse)(const char *value, void *member);
        size_t offset;       /* offset of the member */
        const char *initial; /* the value of a key that is missing or empty; NULL: "" */
} AgentKey;

int agent_parse_text(const char *value, void *member);    /* char *; NULL for "" */
int agent_parse_boolean(const char *value, void *member); /* bool, yes or no */

/* Reads all lines into the members of target, which are not set before. path: NULL for a file without lines. 0 or a
 * negative errno, logged; -EINVAL when a line is wrong. Call agent_free_settings() in both cases. */
int agent_read_settings(const char *path, const AgentKey *keys, size_t n, void *target);
/* Frees the strings in target. */
void agent_free_settings(const AgentKey *keys, size_t n, void *target);

/* Reads the first line of a file that root and this program may read: a secret, a token. The caller frees. 0 or a
 * negative errno, not logged. */
int agent_read_secret(const char *path, char **ret);
