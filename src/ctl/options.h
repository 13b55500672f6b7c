/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line: every option of every verb in one table, read in one pass, so that options may stand anywhere. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

/* Exit statuses besides EXIT_SUCCESS and EXIT_FAILURE (refused or failed). */
#define EXIT_USAGE       2
#define EXIT_INTERRUPTED 130

typedef enum Option {
        OPTION_HELP,
        OPTION_VERSION,
        OPTION_HOST,
        OPTION_NODE,
        OPTION_CONFIG,
        OPTION_JSON,
        OPTION_POOL,
        OPTION_ALL,
        OPTION_CPUS,
        OPTION_MEMORY,
        OPTION_PAGE_SIZE,
        OPTION_CELLS,
        OPTION_NUMA,
        OPTION_PROXIMITY,
        OPTION_TOPOLOGY,
        OPTION_SHARED_MEMORY,
        OPTION_OWNER,
        OPTION_FORCE,
        OPTION_RELEASE_WITH_DOMAIN,
        OPTION_GENERATION,
        OPTION_TEMPLATE,
        OPTION_NCCL,
        OPTION_NO_WAIT,
        OPTION_MATRIX,
        OPTION_SVG,
        OPTION_IDENTITIES,
        OPTION_LINES,
        OPTION_CLEAR,
        OPTION_REPEAT,
        _OPTION_MAX,
} Option;

#define OPTION_BIT(option) (1U << (option))
#define OPTIONS_GLOBAL                                                                                                 \
        (OPTION_BIT(OPTION_HELP) | OPTION_BIT(OPTION_VERSION) | OPTION_BIT(OPTION_HOST) | OPTION_BIT(OPTION_JSON))
/* Of the verbs that can ask a recorded node. */
#define OPTIONS_NODE (OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_CONFIG))
#define OPTIONS_REQUEST                                                                                                \
        (OPTION_BIT(OPTION_CPUS) | OPTION_BIT(OPTION_MEMORY) | OPTION_BIT(OPTION_PAGE_SIZE) |                          \
         OPTION_BIT(OPTION_CELLS) | OPTION_BIT(OPTION_NUMA) | OPTION_BIT(OPTION_PROXIMITY) |                           \
         OPTION_BIT(OPTION_TOPOLOGY) | OPTION_BIT(OPTION_OWNER) | OPTION_BIT(OPTION_SHARED_MEMORY) |                   \
         OPTION_BIT(OPTION_FORCE) | OPTION_BIT(OPTION_RELEASE_WITH_DOMAIN))

/* What the command line said. Strings belong to argv unless said otherwise. */
typedef struct Args {
        const char *verb; /* the first operand, NULL when there is none */
        unsigned given;   /* OPTION_BIT() of each option that was there */
        const char *text[_OPTION_MAX];
        char *lists[_OPTION_MAX]; /* the text of those that add up; owned */
        uint64_t number[_OPTION_MAX];
        const char **operands; /* those after the verb */
        size_t n_operands;
} Args;

static inline bool args_has(const Args *args, Option option) {
        return args->given & OPTION_BIT(option);
}

/* 0, EXIT_USAGE (already reported) or -ENOMEM. args starts zeroed; args_done() it in any case. */
int args_parse(Args *args, int argc, char **argv);
void args_done(Args *args);

/* "--pool": for sentences. */
const char *option_name(Option option);

/* What one verb has to say of an option of its own or of all verbs. Lists end with a note that says nothing. */
typedef struct OptionNote {
        Option option;
        const char *help;    /* instead of the general line */
        const char *refusal; /* or the verb does not take it, and why */
} OptionNote;

/* One help line per option in the set, on stdout. notes may be NULL. */
void options_print(unsigned set, const OptionNote *notes);
/* 0, or EXIT_USAGE (already reported) when one was given that the notes (may be NULL) refuse. */
int options_check(const Args *args, const OptionNote *notes);
