/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line. All options of all verbs are in one table, so that an option may stand before or after the verb. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

/* Exit statuses besides EXIT_SUCCESS and EXIT_FAILURE (refused or failed). */
#define EXIT_USAGE       2
#define EXIT_INTERRUPTED 130

/* The largest argument of --lines, and its default. */
#define HISTORY_LINES_MAX 1000U
/* The largest argument of --hold, in seconds. */
#define HOLD_MAX          86400U

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
        OPTION_AT,
        OPTION_HOST_NODES,
        OPTION_CPUS_FROM,
        OPTION_MEMORY_FROM,
        OPTION_CONFIDENTIAL,
        OPTION_NUMA,
        OPTION_PROXIMITY,
        OPTION_TOPOLOGY,
        OPTION_FABRIC,
        OPTION_SHARED_MEMORY,
        OPTION_OWNER,
        OPTION_HOLD,
        OPTION_TAG,
        OPTION_CONSUMER,
        OPTION_TOKEN,
        OPTION_FORCE,
        OPTION_RELEASE_WITH_DOMAIN,
        OPTION_GENERATION,
        OPTION_TEMPLATE,
        OPTION_ALLOW_QEMU_COMMANDLINE,
        OPTION_NCCL,
        OPTION_DEVICE,
        OPTION_FORMAT,
        OPTION_NO_GUEST_INFO,
        OPTION_HOST_ADDRESSES,
        OPTION_NO_WAIT,
        OPTION_MATRIX,
        OPTION_SVG,
        OPTION_IDENTITIES,
        OPTION_LINES,
        OPTION_CLEAR,
        OPTION_REPEAT,
        OPTION_PATHS,
        OPTION_STEPS,
        OPTION_START,
        OPTION_CONNECT,
        _OPTION_MAX,
} Option;

#define OPTION_BIT(option) (UINT64_C(1) << (option))
#define OPTIONS_GLOBAL                                                                                                 \
        (OPTION_BIT(OPTION_HELP) | OPTION_BIT(OPTION_VERSION) | OPTION_BIT(OPTION_HOST) | OPTION_BIT(OPTION_JSON))
/* Options of the verbs that work on a recorded node. */
#define OPTIONS_NODE (OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_CONFIG))
#define OPTIONS_REQUEST                                                                                                \
        (OPTION_BIT(OPTION_CPUS) | OPTION_BIT(OPTION_MEMORY) | OPTION_BIT(OPTION_PAGE_SIZE) |                          \
         OPTION_BIT(OPTION_CELLS) | OPTION_BIT(OPTION_NUMA) | OPTION_BIT(OPTION_PROXIMITY) |                           \
         OPTION_BIT(OPTION_TOPOLOGY) | OPTION_BIT(OPTION_OWNER) | OPTION_BIT(OPTION_TAG) |                             \
         OPTION_BIT(OPTION_CONSUMER) | OPTION_BIT(OPTION_SHARED_MEMORY) | OPTION_BIT(OPTION_FORCE) |                   \
         OPTION_BIT(OPTION_RELEASE_WITH_DOMAIN) | OPTION_BIT(OPTION_AT) | OPTION_BIT(OPTION_HOST_NODES) |              \
         OPTION_BIT(OPTION_CPUS_FROM) | OPTION_BIT(OPTION_MEMORY_FROM) | OPTION_BIT(OPTION_FABRIC) |                   \
         OPTION_BIT(OPTION_CONFIDENTIAL))

/* The parsed command line. Strings are borrowed from argv unless marked as owned. */
typedef struct Args {
        const char *verb; /* the first operand, NULL when there is none */
        uint64_t given;   /* OPTION_BIT() of each option on the command line */
        const char *text[_OPTION_MAX];
        char *lists[_OPTION_MAX]; /* owned: the joined text of an option that may be repeated */
        uint64_t number[_OPTION_MAX];
        char **problem;        /* where to store the sentence of a failure instead of printing it; NULL: print it */
        const char **operands; /* the operands after the verb; the array is owned */
        size_t n_operands;
} Args;

static inline bool args_has(const Args *args, Option option) {
        return args->given & OPTION_BIT(option);
}

/* Parses the command line. 0, EXIT_USAGE (reported) or -ENOMEM. args must be zeroed; the caller frees it with
 * args_done() in every case. */
int args_parse(Args *args, int argc, char **argv);
void args_done(Args *args);

/* Makes the words of a command line with the same meaning, with NULL at the end. The caller frees the array; the words
 * are borrowed. 0 or -ENOMEM. */
int args_words(const Args *args, const char ***ret);

/* Returns the option as users write it: "--pool". */
const char *option_name(Option option);

/* An exception of one verb from the option table. A list ends with an entry without help and refusal. */
typedef struct OptionNote {
        Option option;
        const char *help;    /* the verb's own help line */
        const char *refusal; /* the verb refuses the option; this sentence says why */
} OptionNote;

/* Prints one help line per option in the set to stdout. notes may be NULL. */
void options_print(uint64_t set, const OptionNote *notes);
/* Returns EXIT_USAGE (reported) when an option was given that the notes refuse, otherwise 0. notes may be NULL. */
int options_check(const Args *args, const OptionNote *notes);
