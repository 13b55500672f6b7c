/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line. All options of all verbs are in one table, so that an option may be before or after the verb. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/cleanup.h"

/* Exit statuses besides EXIT_SUCCESS and EXIT_FAILURE. EXIT_FAILURE: the call was refused, or has failed. The verb
 * check has other meanings for 1 and 2 (verbs.c). */
#define EXIT_USAGE       2
#define EXIT_INTERRUPTED 130

/* The largest number for --lines, which is also the default. */
#define HISTORY_LINES_MAX 1000U
/* The largest number of seconds for --hold. */
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
/* The options of verbs that read a recorded node. suggest and snapshot take only --node. */
#define OPTIONS_NODE (OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_CONFIG))
#define OPTIONS_REQUEST                                                                                                \
        (OPTION_BIT(OPTION_CPUS) | OPTION_BIT(OPTION_MEMORY) | OPTION_BIT(OPTION_PAGE_SIZE) |                          \
         OPTION_BIT(OPTION_CELLS) | OPTION_BIT(OPTION_NUMA) | OPTION_BIT(OPTION_PROXIMITY) |                           \
         OPTION_BIT(OPTION_TOPOLOGY) | OPTION_BIT(OPTION_OWNER) | OPTION_BIT(OPTION_TAG) |                             \
         OPTION_BIT(OPTION_CONSUMER) | OPTION_BIT(OPTION_SHARED_MEMORY) | OPTION_BIT(OPTION_FORCE) |                   \
         OPTION_BIT(OPTION_RELEASE_WITH_DOMAIN) | OPTION_BIT(OPTION_AT) | OPTION_BIT(OPTION_HOST_NODES) |              \
         OPTION_BIT(OPTION_CPUS_FROM) | OPTION_BIT(OPTION_MEMORY_FROM) | OPTION_BIT(OPTION_FABRIC) |                   \
         OPTION_BIT(OPTION_CONFIDENTIAL))

/* The parsed command line. Strings are borrowed from argv unless the comment says owned. */
typedef struct Args {
        const char *verb; /* the first operand; NULL: there is none */
        uint64_t given;   /* OPTION_BIT() of each option on the command line */
        const char *text[_OPTION_MAX];
        char *lists[_OPTION_MAX]; /* owned: the joined values of an option that may be repeated; text[] is the same
                                     pointer */
        uint64_t number[_OPTION_MAX];
        char **problem;        /* where the sentence of a failure is stored; NULL: it is printed */
        const char **operands; /* the operands after the verb; the array is owned */
        size_t n_operands;
} Args;

static inline bool args_has(const Args *args, Option option) {
        return args->given & OPTION_BIT(option);
}

/* Parses the command line into args, which must be zeroed. Returns 0, EXIT_USAGE (reported) or -ENOMEM. In every case
 * the caller then calls args_done(). */
int args_parse(Args *args, int argc, char **argv);
void args_done(Args *args);

/* Makes the words of a command line with the same meaning; NULL follows the last word. The caller frees the array; the
 * words are borrowed. Returns 0 or -ENOMEM. */
int args_words(const Args *args, const char ***ret);

/* Returns the option as users write it, "--pool" for example. */
const char *option_name(Option option);

/* How an option differs in one verb from the table of options. A list ends with an element without help and refusal. */
typedef struct OptionNote {
        Option option;
        const char *help;    /* the line of the option in the verb's --help */
        const char *refusal; /* a sentence: why the verb refuses the option */
} OptionNote;

/* Prints a line of --help for each option in the set that the notes do not refuse. notes may be NULL. */
void options_print(uint64_t set, const OptionNote *notes);
/* Returns EXIT_USAGE (reported) when an option was given that the notes refuse; otherwise 0. notes may be NULL. */
int options_check(const Args *args, const OptionNote *notes);
