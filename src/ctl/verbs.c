/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Verbs with little code, most of which make one call. */
#include <errno.h>
#include <stdio.h>

#include "bus/names.h"
#include "client.h"
#include "daemon.h"
#include "document.h"
#include "job.h"
#include "model/json-parse.h"
#include "page.h"
#include "replay/replay.h"
#include "reply.h"
#include "report.h"
#include "slurm/gres.h"
#include "table.h"
#include "util/strings.h"
#include "verbs.h"
#include "view.h"

/* passthroughctl rescan: has the daemon read the hardware again. */
int verb_rescan(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        int r;

        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = client_ask(c, "Rescan", NULL, "");
        return r < 0 ? r : document_print_done(args);
}

/* passthroughctl reload: has the daemon read its configuration again. Prints the problems of the configuration, and
 * which devices are no longer offered because of them. */

static int print_withdrawn(const Args *args, json_object *node) {
        json_object *o = json_object_new_object();

        if (!o || !document_add(o, "result", JOB_RESULT_DONE) ||
            !document_add(o, "none_offered", reply_text(node, "none_offered")) ||
            json_object_object_add(o, "withdrawn", json_object_get(member(node, "withdrawn"))) < 0) {
                json_object_put(o);
                return report_errno(args, -ENOMEM, "Cannot print");
        }
        return document_print(args, o);
}

int verb_reload(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_json_ json_object *node = NULL;
        bool withdrawn;
        int r;

        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = client_ask(c, "Reload", NULL, "");
        if (r < 0)
                return r;
        r = reply_ask(c, "Describe", NULL, NULL, &node);
        if (r < 0)
                return r;
        /* Print the effect first, and then the problems that caused it. */
        withdrawn = view_not_offered(node);
        for (size_t i = 0; i < member_length(node, "config_problems"); i++)
                page_wrap(stderr, reply_element_cell(node, "config_problems", i), 0, 0);
        if (args_has(args, OPTION_JSON))
                r = print_withdrawn(args, node);
        return r < 0 ? r : withdrawn ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* passthroughctl release, accept and prepare: start a job for an allocation, and follow it. renew: renews a lease. */

static int run_job(const Args *args, const JobCall *call) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        const char *name = args->operands[0];
        uint64_t generation;
        int r;

        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = watch_generation(c, name, &generation);
        return r < 0 ? r : watch_call(c, call, name, "st", name, generation);
}

int verb_release(const Args *args) {
        return run_job(args, &(JobCall) { "Release", "release", "is released.", "is being released." });
}

int verb_accept(const Args *args) {
        return run_job(args, &(JobCall) { "Accept", "prepare", "is ready.", "is being prepared." });
}

int verb_prepare(const Args *args) {
        return run_job(args, &(JobCall) { "Prepare", "prepare", "is ready.", "is being prepared." });
}

int verb_renew(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *name = args->operands[0];
        uint64_t generation, seconds;
        int r;

        if (parse_unsigned(args->operands[1], UINT32_MAX, &seconds) < 0)
                return report_usage(args, "'%s' is not a number of seconds", args->operands[1]);
        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = watch_generation(c, name, &generation);
        if (r < 0)
                return r;
        r = client_ask(c, "Renew", &reply, "stu", name, generation, (uint32_t) seconds);
        return r < 0 ? r : document_print_done(args);
}

/* passthroughctl quarantine: lists the devices in quarantine, or with --clear ends the quarantine of one device. */

static const Column quarantine_columns[] = {
        { "ADDRESS", "address" },
        { "OWNER", .text = view_owner },
        { "ALLOCATION", "allocation" },
        { "REASON", "reason", .wrapped = true },
};

/* Returns the quarantine entries of the device; device NULL: of all devices. The caller frees; NULL when out of
 * memory. */
static json_object *select_quarantine(json_object *node, const char *device) {
        json_object *found = json_object_new_array();

        for (size_t i = 0; found && i < member_length(node, "quarantine"); i++) {
                json_object *q = member_at(node, "quarantine", i);

                if (!device || streq_ptr(reply_text(q, "address"), device))
                        (void) json_object_array_add(found, json_object_get(q));
        }
        return found;
}

static int list_quarantine(Client *c, const char *device) {
        char empty[PCI_ADDRESS_STRING_MAX + 32] = "No device is in quarantine.";
        _cleanup_json_ json_object *node = NULL, *devices = NULL;
        int r = reply_ask(c, "Describe", NULL, NULL, &node);

        if (r < 0)
                return r;
        devices = select_quarantine(node, device);
        if (!devices)
                return report_errno(c->args, -ENOMEM, "Cannot print");
        if (args_has(c->args, OPTION_JSON))
                return document_print(c->args, TAKE_PTR(devices));
        if (device)
                (void) snprintf(empty, sizeof(empty), "%s is not in quarantine.", device);
        return table_print_array(c->args, quarantine_columns, ELEMENTSOF(quarantine_columns), devices, empty);
}

int verb_quarantine(const Args *args) {
        static const JobCall clear = { "ClearQuarantine", "clear the quarantine of", "is not in quarantine any more.",
                                       "is being taken out of quarantine." };
        _cleanup_(cleanup_client_free) Client *c = NULL;
        char address[PCI_ADDRESS_STRING_MAX];
        const char *device = args->n_operands > 0 ? address : NULL;
        int r = 0;

        if (args_has(args, OPTION_CLEAR) && args->n_operands == 0)
                return report_usage(args, "quarantine --clear needs the address of a device");
        if (!args_has(args, OPTION_CLEAR) && args_has(args, OPTION_NO_WAIT))
                return report_usage(args, "quarantine takes --no-wait only with --clear");
        if (device)
                r = reply_device_address(args, args->operands[0], address);
        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r < 0)
                return r;
        return args_has(args, OPTION_CLEAR) ? watch_call(c, &clear, device, "s", device) : list_quarantine(c, device);
}

/* passthroughctl explain: prints whether a device is available, and if not, why and what to do. */

static const Column group_columns[] = { { "ADDRESS", "address" }, { "DRIVER", "driver" }, { "ROLE", "role" } };

static void print_verdict(json_object *d) {
        const char *address = reply_cell(d, "address"), *name = reply_text(d, "name");
        const char *reason = reply_text(d, "reason"), *remedy = reply_text(d, "remedy");
        const char *allocation = reply_text(d, "allocation");
        const char *module = reply_text(d, "module"), *partition = reply_text(d, "partition");
        _cleanup_free_ char *device = string_format("%s%s%s%s", address, name ? " (" : "", name ?: "", name ? ")" : "");

        if (streq_ptr(reply_text(d, "state"), "available"))
                page_print(stdout, 0, "%s is available in pool '%s'.", device ?: address, reply_cell(d, "pool"));
        else if (allocation)
                page_print(stdout, 0, "%s is not available: allocation '%s' has it.", device ?: address, allocation);
        else
                page_print(stdout, 0, "%s is not available.", device ?: address);
        if (module)
                page_print(stdout, 0, "It is NVLink module %s%s%s.", module, partition ? ", in partition " : "",
                           partition ?: "");
        if (reason)
                page_wrap(stdout, reason, 0, 0);
        if (remedy)
                page_wrap(stdout, remedy, 0, 0);
}

static int print_explanation(const Args *args, json_object *device) {
        view_read_only(device);
        print_verdict(device);
        if (member_length(device, "group") == 0)
                return 0;
        printf("\nMembers of IOMMU group %s, which is allocated as a whole:\n", reply_cell(device, "iommu_group"));
        return table_print_array(args, group_columns, ELEMENTSOF(group_columns), member(device, "group"), NULL);
}

int verb_explain(const Args *args) {
        return reply_show_device(args, args->operands[0], print_explanation);
}

/* passthroughctl suggest: prints a configuration for the machine of the daemon, or of --node. If the daemon does not
 * answer, prints one for this machine. */

int verb_suggest(const Args *args) {
        _cleanup_daemon_report_ DaemonReport daemon = { 0 };
        _cleanup_free_ char *problem = NULL, *text = NULL;
        _cleanup_json_ json_object *node = NULL;
        int r = args_has(args, OPTION_NODE) ? 0 : daemon_ask(args, &daemon, &node);

        if (r >= 0)
                r = replay_suggest(daemon_node(args, &daemon), &text, &problem);
        if (r < 0)
                return report_failure(args, NULL, "%s", problem ?: "Out of memory.");
        fputs(text, stdout);
        return EXIT_SUCCESS;
}

/* passthroughctl snapshot: writes this machine, or the one of --node, to standard output as a .tree file, without the
 * daemon. */

int verb_snapshot(const Args *args) {
        SnapshotFlags flags = args_has(args, OPTION_IDENTITIES) ? SNAPSHOT_IDENTITIES : 0;
        _cleanup_free_ char *problem = NULL;
        int r = snapshot_write(args->text[OPTION_NODE] ?: "/", flags, stdout, &problem);

        if (r < 0 && problem)
                return report_failure(args, NULL, "%s", problem);
        return r < 0 ? report_errno(args, r, "Cannot record") : EXIT_SUCCESS;
}

/* passthroughctl cdi: prints the device nodes of an allocation as a CDI document. */

int verb_cdi(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *text = NULL;
        int r = client_new(args, &c);

        if (r < 0)
                return r;
        r = client_ask(c, "GetDomainXML", &reply, "sa{sv}", args->operands[0], 1, OPTION_KEY_FORMAT, "s",
                       DOCUMENT_FORMAT_CDI);
        if (r < 0)
                return r;
        r = client_read_text(c, reply, &text);
        if (r < 0)
                return r;
        puts(text);
        return 0;
}

/* passthroughctl show: prints everything about one device or one allocation. */

/* Prints since when it is unknown which domains run, and why. A ready allocation may be in use then. */
static void view_unknown(json_object *node) {
        json_object *libvirt = member(node, "libvirt");
        char time[DOCUMENT_TIME_MAX];
        int64_t since;

        if (JSON_READ_INTEGER(libvirt, "unknown_since", INT64_MAX, &since) < 0)
                return;
        document_time((uint64_t) since * 1000000, true, time);
        view_field("Domain", "unknown since %s: %s", time, reply_cell(libvirt, "reason"));
}

static int show_allocation(const Args *args, json_object *node, json_object *allocation) {
        if (args_has(args, OPTION_JSON))
                return document_print(args, json_object_get(allocation));
        view_allocation(allocation);
        view_unknown(node);
        return 0;
}

static int print_device(const Args *args, json_object *device) {
        view_device(device);
        return 0;
}

int verb_show(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_json_ json_object *node = NULL;
        json_object *allocation;
        const char *name = args->operands[0];
        int r;

        /* A PCI address has a colon, and the name of an allocation has none. */
        if (strchr(name, ':'))
                return reply_show_device(args, name, print_device);
        if (args_has(args, OPTION_NODE))
                return report_failure(args, BUS_ERROR_NO_SUCH_ALLOCATION,
                                      "A recorded node has no allocations, so there is no '%s'. Give the address of a "
                                      "device, such as 0000:82:00.0.",
                                      name);
        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = reply_ask(c, "Describe", NULL, NULL, &node);
        if (r < 0)
                return r;
        allocation = json_find(member(node, "allocations"), "name", name);
        if (allocation)
                return show_allocation(args, node, allocation);
        /* The reply lacks this allocation. Ask for it by itself, because the daemon's error says why. */
        r = client_ask(c, "GetAllocation", NULL, "s", name);
        return r < 0 ? r : report_failure(args, NULL, "'%s' has just appeared; run the command again.", name);
}

/* passthroughctl check: prints whether the node is ready for passthrough, and what it lacks. The daemon need not
 * run. */

enum {
        EXIT_WARNING = 1,
        EXIT_NOT_READY = 2
};

#define INDENT 24 /* columns before the message and the remedy */

static void print_finding(json_object *finding) {
        const char *remedy = reply_text(finding, "remedy");

        printf("%-8s %-14s ", reply_cell(finding, "result"), reply_cell(finding, "check"));
        page_wrap(stdout, reply_cell(finding, "message"), INDENT, INDENT);
        if (remedy) {
                printf("%*s", INDENT, "");
                page_wrap(stdout, remedy, INDENT, INDENT);
        }
}

static int exit_status(const char *result) {
        return streq(result, "ok") ? EXIT_SUCCESS : streq(result, "warning") ? EXIT_WARNING : EXIT_NOT_READY;
}

static int print_report(const Args *args, const char *text) {
        json_object *report, *findings;
        int status, r = json_parse(text, strlen(text), &report);

        if (r < 0)
                return report_errno(args, r, "Cannot print");
        findings = member(report, "findings");
        status = exit_status(reply_cell(report, "result"));
        if (args_has(args, OPTION_JSON))
                puts(text);
        for (size_t i = 0; !args_has(args, OPTION_JSON) && i < json_length(findings); i++)
                print_finding(json_at(findings, i));
        json_object_put(report);
        return status;
}

int verb_check(const Args *args) {
        _cleanup_daemon_report_ DaemonReport daemon = { 0 };
        _cleanup_free_ char *problem = NULL, *text = NULL;
        _cleanup_json_ json_object *node = NULL;
        bool recorded = args_has(args, OPTION_NODE);
        int r = recorded ? 0 : daemon_ask(args, &daemon, &node);

        if (r < 0)
                return EXIT_NOT_READY;
        r = replay_check(daemon_node(args, &daemon), daemon_config(args, &daemon), recorded ? NULL : &daemon, &text,
                         &problem);
        if (r < 0)
                (void) report_failure(args, NULL, "%s", problem ?: "Out of memory.");
        else
                r = print_report(args, text);
        return r < 0 ? EXIT_NOT_READY : r;
}

/* passthroughctl gres: prints the pools of the node as generic resources (GRES) for Slurm. */

/* Prints the lines for gres.conf and slurm.conf. Each line of gres.conf has CountOnly, because otherwise slurmd would
 * look for a file of each device, and pools have no such files. Only one line is printed for each name, because slurmd
 * would exit at a second one. */
static int print_text(const GresList *list, const char *gres) {
        printf("# gres.conf; if several nodes read it, NodeName= of this node before each line\n");
        for (size_t i = 0; i < list->n; i++) {
                const Gres *g = &list->items[i];

                printf("Name=" GRES_PREFIX "%s%s%s Count=%u Flags=CountOnly\n", g->pool, g->type ? " Type=" : "",
                       g->type ?: "", g->total);
        }
        printf("# slurm.conf: for all nodes, and in the line NodeName= of this node\nGresTypes=");
        for (size_t i = 0; i < list->n; i++)
                printf("%s" GRES_PREFIX "%s", i > 0 ? "," : "", list->items[i].pool);
        printf("\nGres=%s\n", gres);
        return 0;
}

static json_object *make_item(const Gres *g) {
        json_object *o = json_object_new_object();
        _cleanup_free_ char *name = string_format(GRES_PREFIX "%s", g->pool);

        if (o && name && document_add(o, "name", name) && document_add(o, "pool", g->pool) &&
            document_add(o, "type", g->type) &&
            json_object_object_add(o, "total", json_object_new_int64(g->total)) == 0 &&
            json_object_object_add(o, "healthy", json_object_new_int64(g->healthy)) == 0)
                return o;
        json_object_put(o);
        return NULL;
}

static int print_gres_json(const Args *args, const GresList *list, const char *gres) {
        json_object *o = json_object_new_object(), *items = json_object_new_array();
        bool ok = o && items && document_add(o, "gres", gres) && json_object_object_add(o, "resources", items) == 0;

        for (size_t i = 0; ok && i < list->n; i++) {
                json_object *item = make_item(&list->items[i]);

                ok = item && json_object_array_add(items, item) == 0;
        }
        if (ok)
                return document_print(args, o);
        json_object_put(o);
        return report_errno(args, -ENOMEM, "Cannot print");
}

int verb_gres(const Args *args) {
        _cleanup_json_ json_object *node = NULL;
        _cleanup_gres_list_ GresList list = { 0 };
        _cleanup_free_ char *gres = NULL;
        int r = reply_ask_once(args, "Describe", NULL, NULL, &node);

        if (r < 0)
                return r;
        if (gres_list_new(node, &list) < 0 || !(gres = gres_list_format(&list)))
                return report_errno(args, -ENOMEM, "Cannot print");
        return args_has(args, OPTION_JSON) ? print_gres_json(args, &list, gres) : print_text(&list, gres);
}
