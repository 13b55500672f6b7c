/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Between config-parse.c, which reads lines and sections, and config-keys.c, which reads keys. */

#include "config/config.h"

typedef enum Section {
        SECTION_NONE,    /* before the first header */
        SECTION_IGNORED, /* after a header that was a problem: one is enough */
        SECTION_DAEMON,
        SECTION_POOL, /* config->pools[pool] */
        SECTION_EXCLUDE,
        _SECTION_MAX,
} Section;

typedef struct ConfigParser {
        Config *config;
        const char *file; /* of config->files */
        const char *text; /* what follows the current line */
        const char *end;
        unsigned line;
        Section section;
        size_t pool;
        bool suspect; /* the ignored section may be a misspelt [Exclude]: a Match= in it tells */
        bool pending; /* libinih has the line and did not yet make a key of it */
        bool resets;  /* the line is "Match=" and nothing else */
        int error;    /* 0, or -ENOMEM: the end */
} ConfigParser;

/* What the line says is not known, and it may have excluded something: nothing is on offer. what begins the sentence.
 */
int parser_hold_back(ConfigParser *p, const char *what);
int parser_hold_back_header(ConfigParser *p);

/* Every problem of a line is told by this: in [Exclude] it takes everything off offer. */
#define parser_problem(p, ...)                                                                                         \
        parser_told_problem((p), config_add_problem((p)->config, (p)->file, (p)->line, __VA_ARGS__))
int parser_told_problem(ConfigParser *p, int r);

/* "Exclude]", "[Exclude": after it the lines of [Exclude] would be taken for those of the section before. */
bool config_may_be_header(const char *text);

/* One line of a section. 0, with a problem if need be, or -ENOMEM. */
int config_parse_key(ConfigParser *p, const char *name, const char *value);
