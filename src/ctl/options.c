/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The option table, and the parser of the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "bus/names.h"
#include "options.h"
#include "report.h"
#include "util/strings.h"

typedef enum OptionType {
        OPTION_TYPE_FLAG,
        OPTION_TYPE_TEXT,
        OPTION_TYPE_LIST, /* text; if the option is repeated, its values are joined by commas */
        OPTION_TYPE_FILE, /* any bytes, because the value is not sent over the bus */
        OPTION_TYPE_NUMBER,
        OPTION_TYPE_SIZE,
} OptionType;

typedef struct OptionInfo {
        const char *name;
        char letter;
        OptionType type;
        const char *value; /* name of the value in --help */
        uint64_t max;      /* OPTION_TYPE_NUMBER: the largest number that is accepted */
        const char *help;
} OptionInfo;

static const OptionInfo options[_OPTION_MAX] = {
        [OPTION_HELP] = { "--help", 'h', OPTION_TYPE_FLAG, NULL, 0, "Show this help" },
        [OPTION_VERSION] = { "--version", 0, OPTION_TYPE_FLAG, NULL, 0, "Show the version" },
        [OPTION_HOST] = { "--host", 'H', OPTION_TYPE_FILE, "USER@HOST", 0, "Run on another node over SSH" },
        [OPTION_NODE] = { "--node", 0, OPTION_TYPE_FILE, "NODE", 0, "Read a recorded node: a .tree file or directory" },
        [OPTION_CONFIG] = { "--config", 0, OPTION_TYPE_FILE, "FILE", 0, "With --node: the passthroughd.conf to apply" },
        [OPTION_JSON] = { "--json", 0, OPTION_TYPE_FLAG, NULL, 0, "Print one JSON document" },
        [OPTION_POOL] = { "--pool", 0, OPTION_TYPE_TEXT, "POOL", 0, "Only devices of this pool" },
        [OPTION_ALL] = { "--all", 0, OPTION_TYPE_FLAG, NULL, 0, "Show all devices, also bridges" },
        [OPTION_CPUS] = { "--cpus", 0, OPTION_TYPE_NUMBER, "N", UINT32_MAX, "vCPUs, each pinned to a host CPU" },
        [OPTION_MEMORY] = { "--memory", 0, OPTION_TYPE_SIZE, "SIZE", 0, "Guest memory: 20G, 512M" },
        [OPTION_PAGE_SIZE] = { "--page-size", 0, OPTION_TYPE_SIZE, "SIZE", 0, "Use hugepages of this size: 2M, 1G" },
        [OPTION_CELLS] = { "--cells", 0, OPTION_TYPE_NUMBER, "N", UINT32_MAX,
                           "Guest NUMA cells (default: as few as fit)" },
        [OPTION_AT] = { "--at", 0, OPTION_TYPE_LIST, "POOL=ADDRESS", 0, "Take this device, or none" },
        [OPTION_HOST_NODES] = { "--host-nodes", 0, OPTION_TYPE_TEXT, "LIST", 0, "The host's NUMA nodes to take: 0,1" },
        [OPTION_CPUS_FROM] = { "--cpus-from", 0, OPTION_TYPE_TEXT, "LIST", 0,
                               "Take CPUs from these only: 8-15,120-127" },
        [OPTION_MEMORY_FROM] = { "--memory-from", 0, OPTION_TYPE_TEXT, "LIST", 0,
                                 "Take memory from these NUMA nodes: 2,3" },
        [OPTION_CONFIDENTIAL] = { "--confidential", 0, OPTION_TYPE_TEXT, "TYPE", 0,
                                  "Encrypt the guest's memory: snp or tdx" },
        [OPTION_NUMA] = { "--numa", 0, OPTION_TYPE_TEXT, "POLICY", 0,
                          "NUMA: single, required, socket, legacy, preferred" },
        [OPTION_PROXIMITY] = { "--proximity", 0, OPTION_TYPE_LIST, "LIMIT", 0,
                               "GPU to NIC at most: switch, root-complex, node, any" },
        [OPTION_TOPOLOGY] = { "--topology", 0, OPTION_TYPE_TEXT, "SHAPE", 0, "Guest's PCI tree: mirror or flat" },
        [OPTION_FABRIC] = { "--fabric", 0, OPTION_TYPE_TEXT, "off", 0, "Any GPUs: the guest uses no NVLink" },
        [OPTION_SHARED_MEMORY] = { "--shared-memory", 0, OPTION_TYPE_LIST, "REGION", 0,
                                   "Memory shared by guests: NAME=SIZE[:PAGESIZE]" },
        [OPTION_OWNER] = { "--owner", 0, OPTION_TYPE_NUMBER, "UID", UINT32_MAX,
                           "Allocate for this user (default: yourself)" },
        [OPTION_HOLD] = { "--hold", 0, OPTION_TYPE_NUMBER, "SECONDS", HOLD_MAX, "Only reserve, for so long" },
        [OPTION_TAG] = { "--tag", 0, OPTION_TYPE_TEXT, "TEXT", 0, "Show this text with the allocation" },
        [OPTION_CONSUMER] = { "--consumer", 0, OPTION_TYPE_TEXT, "UUID", 0, "The claim in Placement or Kubernetes" },
        [OPTION_TOKEN] = { "--token", 0, OPTION_TYPE_TEXT, "TEXT", 0, "The same call again means the same allocation" },
        [OPTION_RELEASE_WITH_DOMAIN] = { "--release-with-domain", 0, OPTION_TYPE_FLAG, NULL, 0,
                                         "Release the allocation when its domain is gone" },
        [OPTION_FORCE] = { "--force", 0, OPTION_TYPE_FLAG, NULL, 0, "Also permit the boot VGA and the console's card" },
        [OPTION_GENERATION] = { "--generation", 0, OPTION_TYPE_NUMBER, "N", UINT64_MAX,
                                "Only if the allocation has this generation" },
        [OPTION_TEMPLATE] = { "--template", 0, OPTION_TYPE_FILE, "FILE", 0, "Domain document to fill in; - is stdin" },
        [OPTION_ALLOW_QEMU_COMMANDLINE] = { "--allow-qemu-commandline", 0, OPTION_TYPE_FLAG, NULL, 0,
                                            "Permit <qemu:commandline> in the template" },
        [OPTION_NCCL] = { "--nccl", 0, OPTION_TYPE_FLAG, NULL, 0, "Print NCCL's topology file for the guest instead" },
        [OPTION_DEVICE] = { "--device", 0, OPTION_TYPE_TEXT, "SLOT", 0, "Print the <hostdev> of this device alone" },
        [OPTION_FORMAT] = { "--format", 0, OPTION_TYPE_TEXT, "FORMAT", 0,
                            "xml for libvirt (the default), or xl for xl of Xen" },
        [OPTION_NO_GUEST_INFO] = { "--no-guest-info", 0, OPTION_TYPE_FLAG, NULL, 0,
                                   "Tell the guest nothing in fw_cfg" },
        [OPTION_HOST_ADDRESSES] = { "--host-addresses", 0, OPTION_TYPE_FLAG, NULL, 0,
                                    "Tell the guest the host's addresses, too" },
        [OPTION_NO_WAIT] = { "--no-wait", 0, OPTION_TYPE_FLAG, NULL, 0, "Do not wait for the job to finish" },
        [OPTION_MATRIX] = { "--matrix", 0, OPTION_TYPE_FLAG, NULL, 0, "Show the distances between GPUs and NICs" },
        [OPTION_SVG] = { "--svg", 0, OPTION_TYPE_FILE, "FILE", 0, "Write an SVG picture to a file; - is stdout" },
        [OPTION_IDENTITIES] = { "--identities", 0, OPTION_TYPE_FLAG, NULL, 0,
                                "Keep serial numbers, MACs and names unchanged" },
        [OPTION_LINES] = { "--lines", 0, OPTION_TYPE_NUMBER, "N", HISTORY_LINES_MAX,
                           "Only the last N entries, at most 1000" },
        [OPTION_REPEAT] = { "--repeat", 0, OPTION_TYPE_FLAG, NULL, 0,
                            "Count how many such requests fit, and show where" },
        [OPTION_PATHS] = { "--paths", 0, OPTION_TYPE_FLAG, NULL, 0, "Add what ACS and ATS allow between the pairs" },
        [OPTION_STEPS] = { "--steps", 0, OPTION_TYPE_FLAG, NULL, 0, "Add the steps of the job" },
        [OPTION_START] = { "--start", 0, OPTION_TYPE_FLAG, NULL, 0, "Start the domain, too" },
        [OPTION_CONNECT] = { "--connect", 'c', OPTION_TYPE_FILE, "URI", 0,
                             "The libvirt (default: qemu:///system, or of Xen)" },
        [OPTION_CLEAR] = { "--clear", 0, OPTION_TYPE_FLAG, NULL, 0, "End the quarantine of DEVICE" },
};

/* The options for getopt_long(). */
#define LONG_BASE 256 /* getopt_long() returns LONG_BASE + Option for a long option; letters are smaller */
typedef struct GetoptTables {
        struct option longs[_OPTION_MAX + 1];
        char shorts[2 + 2 * _OPTION_MAX + 1];
} GetoptTables;

static void getopt_tables_init(GetoptTables *t) {
        /* "-": getopt_long() returns the operands in their order, so that the verb is known when a later option is
         * refused. ":": getopt_long() returns ':' when a value is missing. */
        size_t n = 0;

        *t = (GetoptTables) { 0 };
        t->shorts[n++] = '-';
        t->shorts[n++] = ':';
        for (int i = 0; i < _OPTION_MAX; i++) {
                bool value = options[i].type != OPTION_TYPE_FLAG;
                t->longs[i] = (struct option) { options[i].name + 2, value ? required_argument : no_argument, NULL,
                                                LONG_BASE + i };
                if (!options[i].letter)
                        continue;
                t->shorts[n++] = options[i].letter;
                if (value)
                        t->shorts[n++] = ':';
        }
}

static int option_find(int c) {
        for (int i = 0; i < _OPTION_MAX; i++)
                if (c == LONG_BASE + i || (options[i].letter && c == options[i].letter))
                        return i;
        return -ENOENT;
}

static int take_number(Args *args, Option option, const char *value) {
        const OptionInfo *info = &options[option];
        bool size = info->type == OPTION_TYPE_SIZE;
        int r = size ? parse_size(value, &args->number[option])
                     : parse_unsigned(value, info->max, &args->number[option]);

        if (r == -ERANGE)
                return report_usage(args, "'%s %s' is too large", info->name, value);
        if (r == 0 && args->number[option] == 0 && option != OPTION_GENERATION && option != OPTION_OWNER)
                return report_usage(args, "'%s %s' asks for nothing: leave the option out, or ask for more", info->name,
                                    value);
        if (r < 0)
                return report_usage(args, "'%s %s' is not a %s", info->name, value,
                                    size ? "size: give a number with K, M, G or T, such as 20G" : "whole number");
        return 0;
}

/* Stores the value of an option, after a comma if the option was given before. Returns 0 or -ENOMEM. */
static int take_list(Args *args, Option option, const char *value) {
        const char *before = args->text[option];
        char *longer = NULL;

        if (string_replace(&longer, "%s%s%s", before ?: "", before ? "," : "", value) < 0)
                return -ENOMEM;
        free(args->lists[option]);
        args->text[option] = args->lists[option] = longer;
        return 0;
}

static int take_option(Args *args, Option option, const char *value) {
        const OptionInfo *info = &options[option];
        bool text = info->type == OPTION_TYPE_TEXT || info->type == OPTION_TYPE_LIST;

        args->given |= OPTION_BIT(option);
        if (info->type != OPTION_TYPE_LIST)
                args->text[option] = value;
        if (info->type != OPTION_TYPE_FLAG && !*value)
                return report_usage(args, "%s needs a value, %s", info->name, info->value);
        if (info->type == OPTION_TYPE_NUMBER || info->type == OPTION_TYPE_SIZE)
                return take_number(args, option, value);
        if (text && !text_is_clean(value))
                return report_usage(args, "the value of %s is not printable UTF-8 text", info->name);
        return info->type == OPTION_TYPE_LIST ? take_list(args, option, value) : 0;
}

static int take_operand(Args *args, const char *value) {
        if (!text_is_clean(value))
                return report_usage(args, "an argument is not printable UTF-8 text");
        if (!args->verb)
                args->verb = value;
        else
                args->operands[args->n_operands++] = value;
        return 0;
}

/* Refuses a word that getopt_long() could not parse. getopt_long() has set optopt to the letter of a short option, to
 * LONG_BASE + Option for a long one, or to 0 for an unknown or ambiguous long one. */
static int refuse_option(const Args *args, int c, const char *word) {
        int option = option_find(optopt);

        if (c == ':')
                return report_usage(args, "%s needs a value, %s", option_name(option), options[option].value);
        if (option >= 0)
                return report_usage(args, "%s takes no value", option_name(option));
        if (optopt > 0)
                return report_usage(args, "there is no option '-%c'", optopt);
        return report_usage(args, "there is no option '%s', or it is not unique", word);
}

int args_parse(Args *args, int argc, char **argv) {
        GetoptTables tables;
        int c, r = 0;

        getopt_tables_init(&tables);
        args->operands = calloc((size_t) argc + 1, sizeof(*args->operands));
        if (!args->operands)
                return -ENOMEM;
        opterr = 0;
        while (r == 0 && (c = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) >= 0)
                if (c == 1)
                        r = take_operand(args, optarg);
                else if (c == '?' || c == ':')
                        r = refuse_option(args, c, argv[optind - 1]);
                else
                        r = take_option(args, (Option) option_find(c), optarg);
        while (r == 0 && optind < argc)
                r = take_operand(args, argv[optind++]);
        return r;
}

void args_done(Args *args) {
        for (int i = 0; i < _OPTION_MAX; i++)
                free(args->lists[i]);
        free(args->operands);
        args->operands = NULL;
}

int args_words(const Args *args, const char ***ret) {
        const char **words = calloc(2 * _OPTION_MAX + args->n_operands + 3, sizeof(*words));
        size_t n = 0;

        if (!words)
                return -ENOMEM;
        if (args->verb)
                words[n++] = args->verb;
        for (int i = 0; i < _OPTION_MAX; i++) {
                if (!args_has(args, (Option) i))
                        continue;
                words[n++] = options[i].name;
                if (options[i].type != OPTION_TYPE_FLAG)
                        words[n++] = args->text[i];
        }
        words[n++] = "--";
        for (size_t i = 0; i < args->n_operands; i++)
                words[n++] = args->operands[i];
        *ret = words;
        return 0;
}

const char *option_name(Option option) {
        return options[option].name;
}

static bool note_is_end(const OptionNote *note) {
        return !note->help && !note->refusal;
}

static const OptionNote *note_find(const OptionNote *notes, Option option) {
        for (; notes && !note_is_end(notes); notes++)
                if (notes->option == option)
                        return notes;
        return NULL;
}

void options_print(uint64_t set, const OptionNote *notes) {
        for (int i = 0; i < _OPTION_MAX; i++) {
                const OptionInfo *info = &options[i];
                const OptionNote *note = note_find(notes, (Option) i);
                char left[40];

                if (!(set & OPTION_BIT(i)) || (note && note->refusal))
                        continue;
                snprintf(left, sizeof(left), "%c%c%c %s%s%s", info->letter ? '-' : ' ',
                         info->letter ? info->letter : ' ', info->letter ? ',' : ' ', info->name,
                         info->value ? " " : "", info->value ? info->value : "");
                printf("  %-25s %s\n", left, note ? note->help : info->help);
        }
}

int options_check(const Args *args, const OptionNote *notes) {
        for (; notes && !note_is_end(notes); notes++)
                if (notes->refusal && args_has(args, notes->option))
                        return report_usage(args, "%s", notes->refusal);
        return 0;
}
