/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl: the table of verbs, --help, the check of arguments, and main(). */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>

#include "page.h"
#include "report.h"
#include "util/log.h"
#include "verbs.h"

#define BIT OPTION_BIT

static const OptionNote cdi_notes[] = {
        { OPTION_JSON, "The document is JSON in any case" },
        { 0 },
};
static const OptionNote monitor_notes[] = {
        { OPTION_JSON, "Print each line as a JSON object" },
        { 0 },
};
static const OptionNote snapshot_notes[] = {
        { OPTION_NODE, "Record NODE again instead of this machine" },
        { OPTION_JSON, NULL, "snapshot writes a .tree file; 'list --all --json --node FILE' converts one to JSON" },
        { 0 },
};

static const OptionNote metrics_notes[] = {
        { OPTION_JSON, NULL, "metrics prints OpenMetrics text; 'pools --json' and 'list --json' have the numbers" },
        { 0 },
};

static const OptionNote history_notes[] = {
        { OPTION_NODE, NULL, "a recorded node has no journal" },
        { 0 },
};

static const OptionNote check_notes[] = {
        { OPTION_NODE, "Check NODE instead of this machine" },
        { 0 },
};

static const OptionNote overview_notes[] = {
        { OPTION_JSON, NULL, "without a verb there is no JSON; 'list --json' and 'check --json' have it" },
        { 0 },
};

static const OptionNote suggest_notes[] = {
        { OPTION_NODE, "Suggest for NODE instead of this machine" },
        { OPTION_JSON, NULL, "suggest prints a configuration file" },
        { 0 },
};

static const Verb verbs[] = {
        { "check", verb_check, "", 0, 0, OPTIONS_NODE, "Say whether the node is ready, and what it lacks",
          check_notes },
        { "suggest", verb_suggest, "", 0, 0, BIT(OPTION_NODE), "Print a configuration for this node", suggest_notes,
          "suggest writes to standard output, use > " },
        { "list", verb_list, "[POOL]", 0, 1, BIT(OPTION_POOL) | BIT(OPTION_ALL) | OPTIONS_NODE,
          "List the devices in pools" },
        { "pools", verb_pools, "", 0, 0, OPTIONS_NODE, "Show what is free, by pool and by NUMA node" },
        { "show", verb_show, "DEVICE|ALLOCATION", 1, 1, OPTIONS_NODE,
          "Show all facts about a device or an allocation" },
        { "explain", verb_explain, "DEVICE", 1, 1, OPTIONS_NODE, "Say whether a device is available, or why not" },
        { "topology", verb_topology, "", 0, 0, BIT(OPTION_MATRIX) | BIT(OPTION_SVG) | BIT(OPTION_ALL) | OPTIONS_NODE,
          "Draw NUMA nodes, switches, devices, allocations" },
        { "plan", verb_plan, "[POOL=COUNT...]", 0, SIZE_MAX,
          BIT(OPTION_REPEAT) | BIT(OPTION_PATHS) | BIT(OPTION_STEPS) | OPTIONS_REQUEST | OPTIONS_NODE,
          "Show what allocate would choose" },
        { "allocate", verb_allocate, "NAME [POOL=COUNT...]", 1, SIZE_MAX,
          OPTIONS_REQUEST | BIT(OPTION_HOLD) | BIT(OPTION_TOKEN) | BIT(OPTION_NO_WAIT),
          "Reserve and prepare devices, CPUs and memory" },
        { "allocations", verb_allocations, "", 0, 0, 0, "List the allocations" },
        { "release", verb_release, "NAME", 1, 1, BIT(OPTION_GENERATION) | BIT(OPTION_NO_WAIT),
          "Release an allocation" },
        { "accept", verb_accept, "NAME", 1, 1, BIT(OPTION_GENERATION) | BIT(OPTION_NO_WAIT),
          "Accept replacement cards in an allocation" },
        { "prepare", verb_prepare, "NAME", 1, 1, BIT(OPTION_GENERATION) | BIT(OPTION_NO_WAIT),
          "Prepare an allocation that is reserved" },
        { "renew", verb_renew, "NAME SECONDS", 2, 2, BIT(OPTION_GENERATION), "Reserve an allocation for longer" },
        { "attach", verb_attach, "NAME POOL=COUNT...", 2, SIZE_MAX,
          BIT(OPTION_AT) | BIT(OPTION_NUMA) | BIT(OPTION_PROXIMITY) | BIT(OPTION_FABRIC) | BIT(OPTION_GENERATION) |
                  BIT(OPTION_NO_WAIT),
          "Add devices to an allocation and its guest" },
        { "detach", verb_detach, "NAME SLOT", 2, 2, BIT(OPTION_GENERATION) | BIT(OPTION_NO_WAIT),
          "Take a device from an allocation and its guest" },
        { "xml", verb_xml, "NAME [POOL=COUNT...]", 1, SIZE_MAX,
          BIT(OPTION_TEMPLATE) | BIT(OPTION_ALLOW_QEMU_COMMANDLINE) | BIT(OPTION_NCCL) | BIT(OPTION_DEVICE) |
                  BIT(OPTION_FORMAT) | BIT(OPTION_NO_GUEST_INFO) | BIT(OPTION_HOST_ADDRESSES) | OPTIONS_REQUEST |
                  OPTIONS_NODE,
          "Print the libvirt domain of an allocation" },
        { "define", verb_define, "NAME", 1, 1,
          BIT(OPTION_TEMPLATE) | BIT(OPTION_ALLOW_QEMU_COMMANDLINE) | BIT(OPTION_NO_GUEST_INFO) |
                  BIT(OPTION_HOST_ADDRESSES) | BIT(OPTION_START) | BIT(OPTION_CONNECT),
          "Define the domain of an allocation in libvirt" },
        { "cdi", verb_cdi, "NAME", 1, 1, 0, "Print an allocation for a container, by CDI", cdi_notes },
        { "sriov", verb_sriov, "[PF [NUMBER]]", 0, 2, BIT(OPTION_NO_WAIT),
          "List PFs or VFs of a PF, or set their number" },
        { "monitor", verb_monitor, "", 0, 0, 0, "Print each change as it happens", monitor_notes },
        { "snapshot", verb_snapshot, "", 0, 0, BIT(OPTION_IDENTITIES) | BIT(OPTION_NODE),
          "Record this machine as a .tree file on stdout", snapshot_notes,
          "snapshot writes to standard output, use > " },
        { "history", verb_history, "DEVICE", 1, 1, BIT(OPTION_LINES), "Show the past events and owners of a device",
          history_notes },
        { "quarantine", verb_quarantine, "[DEVICE]", 0, 1, BIT(OPTION_CLEAR) | BIT(OPTION_NO_WAIT),
          "List devices in quarantine, or clear one" },
        { "nova-config", verb_nova_config, "", 0, 0, OPTIONS_NODE, "Print the pools of Nova for nova.conf" },
        { "gres", verb_gres, "", 0, 0, OPTIONS_NODE, "Print the pools as resources for Slurm" },
        { "metrics", verb_metrics, "", 0, 0, 0, "Print numbers of the node for Prometheus", metrics_notes },
        { "rescan", verb_rescan, "", 0, 0, 0, "Read the hardware again" },
        { "reload", verb_reload, "", 0, 0, 0, "Read the configuration again" },
};

static const Verb overview = {
        "passthroughctl without a verb", overview_run, "", 0, 0, OPTIONS_NODE, NULL, overview_notes
};

static const Verb *verb_find(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (streq(verbs[i].name, name))
                        return &verbs[i];
        return NULL;
}

static int print_usage(void) {
        puts("Usage: passthroughctl [OPTION...] [VERB [ARGUMENT...]]\n"
             "Give the PCI devices, CPUs and memory of a node to virtual machines.\n"
             "Without a verb, show the node in a few lines.\n\nVerbs:");
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                char left[48];

                snprintf(left, sizeof(left), "%s %s", verbs[i].name, verbs[i].arguments);
                printf("  %-29s %s\n", left, verbs[i].help);
        }
        puts("\nRead-only verbs take --node, which reads a machine recorded by 'snapshot'.\n\nOptions:");
        options_print(OPTIONS_GLOBAL, NULL);
        puts("\n'passthroughctl VERB --help' shows the options of a verb; see passthroughctl(1).");
        return EXIT_SUCCESS;
}

static void print_operands(void) {
        puts("\n  POOL=COUNT               COUNT devices of a pool, in slots POOL0, POOL1...\n"
             "  SLOT:ATTRIBUTE=VALUE[,ATTRIBUTE=VALUE...]\n"
             "                           Attributes of a slot's VF, or of all VFs of POOL:\n"
             "                           eth-vf0:vlan=100,trust=on");
}

static int print_verb_usage(const Verb *verb) {
        bool request = verb->options & BIT(OPTION_AT);

        printf("Usage: passthroughctl %s [OPTION...]%s%s%s\n%s.\n", verb->name, *verb->arguments ? " " : "",
               verb->arguments, request ? "\n                        [SLOT:ATTRIBUTES...]" : "", verb->help);
        if (request)
                print_operands();
        puts("\nOptions:");
        options_print(verb->options, verb->notes);
        options_print(OPTIONS_GLOBAL, verb->notes);
        return EXIT_SUCCESS;
}

static int refuse_node(const Args *args, const Verb *verb) {
        char list[128] = "";
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (verbs[i].options & BIT(OPTION_NODE))
                        n += (size_t) snprintf(list + n, sizeof(list) - MIN(n, sizeof(list)), "%s%s", n > 0 ? ", " : "",
                                               verbs[i].name);
        return report_usage(args, "%s needs a running daemon; the verbs that take --node are %s", verb->name, list);
}

static int check_args(const Args *args, const Verb *verb) {
        uint64_t foreign = args->given & ~(verb->options | OPTIONS_GLOBAL);
        int r = options_check(args, verb->notes);

        if (r != 0)
                return r;
        if (foreign & BIT(OPTION_NODE))
                return refuse_node(args, verb);
        if (args_has(args, OPTION_NODE) && args_has(args, OPTION_HOST))
                return report_usage(args, "--node reads a recorded node, --host a running one: give only one of them");
        if (foreign)
                return report_usage(args, "%s does not take %s", verb->name,
                                    option_name((Option) __builtin_ctzll(foreign)));
        if (args_has(args, OPTION_CONFIG) && !args_has(args, OPTION_NODE))
                return report_usage(args, "--config needs --node: a running daemon uses its own configuration");
        if (args->n_operands < verb->min)
                return report_usage(args, "%s needs %s", verb->name, verb->arguments);
        if (args->n_operands > verb->max)
                return report_usage(args, "%s takes no argument '%s'%s%s%s", verb->name, args->operands[verb->max],
                                    verb->hint ? ": " : "", verb->hint ?: "",
                                    verb->hint ? args->operands[verb->max] : "");
        return 0;
}

static int run_verb(const Args *args) {
        const Verb *verb = &overview;
        int r;

        if (args->verb) {
                verb = verb_find(args->verb);
                if (!verb)
                        return report_usage(&(Args) { 0 }, "there is no verb '%s'", args->verb);
        }
        if (args_has(args, OPTION_HELP))
                return args->verb ? print_verb_usage(verb) : print_usage();
        if (args_has(args, OPTION_VERSION)) {
                puts("passthroughctl " VERSION);
                return EXIT_SUCCESS;
        }
        r = check_args(args, verb);
        if (r != 0)
                return r;
        return args_has(args, OPTION_HOST) ? remote_run(args) : verb->run(args);
}

/* Opens /dev/null for each standard descriptor that is closed. Otherwise a file could be opened as standard output. */
static void fill_descriptors(void) {
        int fd;

        do
                fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && fd <= STDERR_FILENO);
        cleanup_close(&fd);
}

static void print_message(const char *message) {
        page_wrap(stderr, message, 0, 0);
}

int main(int argc, char **argv) {
        _cleanup_(args_done) Args args = { 0 };
        int r;

        fill_descriptors();
        (void) setlocale(LC_CTYPE, "");
        log_set_printer(print_message);
        r = args_parse(&args, argc, argv);
        if (r == -ENOMEM)
                (void) report_errno(&args, r, "Cannot read the arguments");
        if (r == 0)
                r = run_verb(&args);
        if (fflush(stdout) != 0 || ferror(stdout)) {
                fprintf(stderr, "passthroughctl: Cannot write: %s\n", strerror(errno));
                return EXIT_FAILURE;
        }
        return r < 0 ? EXIT_FAILURE : r;
}
