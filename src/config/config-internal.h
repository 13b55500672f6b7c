/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The interface between config-parse.c, which reads lines and sections, and config-keys.c, which reads keys. */

#include "config/config.h"

typedef enum Section {
        SECTION_NONE,    /* before the first header */
        SECTION_IGNORED, /* after an ignored header, such as a broken or unknown one; the keys below it are skipped
                            without further problems */
        SECTION_DAEMON,
        SECTION_FABRIC,
        SECTION_POOL,    /* the pool is config->pools[pool] */
        SECTION_SERVICE, /* the service is config->services[service] */
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
        bool suspect; /* the section may be a misspelt [Exclude], so a Match= line in it withholds all devices */
        bool pending; /* read_line() has given a line to libinih, which has not reported a key in it yet */
        bool resets;  /* the line is just "Match=" */
        int error;    /* 0, or -ENOMEM: parsing stops */
} ConfigParser;

/* Sets Config.block_reason, unless it is set already: all devices are withheld, because the current line could not be
 * read and may exclude some. `what`: the beginning of the sentence. Returns 0 or -ENOMEM. */
int parser_hold_back(ConfigParser *p, const char *what);
int parser_hold_back_header(ConfigParser *p);

/* Adds a problem of the current line. In [Exclude], the problem also withholds all devices. Returns 0 or -ENOMEM. */
#define parser_problem(p, ...)                                                                                         \
        parser_told_problem((p), config_add_problem((p)->config, (p)->file, (p)->line, __VA_ARGS__))
int parser_told_problem(ConfigParser *p, int r);

/* Returns true when the text of a line without a leading '[' may be a broken section header, such as "Exclude]" or
 * "exclude". The lines after it are read as part of the previous section, so the caller withholds all devices. */
bool config_may_be_header(const char *text);

/* Reads one key of the current section. Returns 0, also when the key has a problem, or -ENOMEM. */
int config_parse_key(ConfigParser *p, const char *name, const char *value);
