/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Interface between config-parse.c, which reads lines and sections, and config-keys.c, which reads keys. */

#include "config/config.h"

typedef enum Section {
        SECTION_NONE,    /* before the first header */
        SECTION_IGNORED, /* after a broken header: keys are skipped without further problems */
        SECTION_DAEMON,
        SECTION_FABRIC,
        SECTION_POOL,    /* config->pools[pool] */
        SECTION_SERVICE, /* config->services[service] */
        SECTION_EXCLUDE,
        _SECTION_MAX,
} Section;

typedef struct ConfigParser {
        Config *config;
        const char *file; /* points into config->files */
        const char *text; /* the text after the current line */
        const char *end;
        unsigned line;
        Section section;
        size_t pool, service;
        bool suspect; /* the ignored section may be a misspelt [Exclude]: a Match= line withholds all devices */
        bool pending; /* libinih has read the line, and not reported a key in it yet */
        bool resets;  /* the line is just "Match=" */
        int error;    /* 0, or -ENOMEM: parsing stops */
} ConfigParser;

/*
 * Withholds all devices, because the unreadable line may have excluded some. what: the beginning of the sentence in
 * Config.block_reason.
 */
int parser_hold_back(ConfigParser *p, const char *what);
int parser_hold_back_header(ConfigParser *p);

/* Adds a problem of the current line, which in [Exclude] also withholds all devices. 0 or -ENOMEM. */
#define parser_problem(p, ...)                                                                                         \
        parser_told_problem((p), config_add_problem((p)->config, (p)->file, (p)->line, __VA_ARGS__))
int parser_told_problem(ConfigParser *p, int r);

/*
 * Returns true when the text may be a broken section header, such as "Exclude]" or "[Exclude". The lines after it would
 * otherwise be read as part of the previous section.
 */
bool config_may_be_header(const char *text);

/* Reads one key. 0, also when it adds a problem, or -ENOMEM. */
int config_parse_key(ConfigParser *p, const char *name, const char *value);
