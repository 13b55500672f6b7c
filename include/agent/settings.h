/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads settings files with [SECTION], KEY=VALUE and comments. A table of keys says which member of a structure each
 * key sets. */

#include <stddef.h>

typedef struct AgentKey {
        const char *section, *name;
        /* Parses the value, which may be "", and sets the member. Returns 0, or a negative errno if the value is not
         * valid. */
        int (*parse)(const char *value, void *member);
        size_t offset;       /* offset of the member in the target structure */
        const char *initial; /* the value of a key that is missing or empty; NULL: "" */
} AgentKey;

int agent_parse_text(const char *value, void *member);    /* member: a char *; NULL for "" */
int agent_parse_boolean(const char *value, void *member); /* member: a bool; value: yes or no */

/* Reads the file and sets the members of target, which must be zeroed. If path is NULL, only sets all members to their
 * initial values. Returns 0 or a negative errno, logged; -EINVAL when a line is wrong. Call agent_free_settings() in
 * both cases. */
int agent_read_settings(const char *path, const AgentKey *keys, size_t n, void *target);
/* Frees the strings that agent_read_settings() has set in target. */
void agent_free_settings(const AgentKey *keys, size_t n, void *target);

/* Reads the first line of a file that holds a secret, such as a token. The caller frees *ret. Returns 0 or a negative
 * errno, not logged. */
int agent_read_secret(const char *path, char **ret);
