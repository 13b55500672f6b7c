/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl xml: prints the libvirt domain of an allocation, alone or filled into a template, or with --nccl the
 * topology file for NCCL in the guest. On a recorded node, which has no allocations, a request is allocated first. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "bus/names.h"
#include "document.h"
#include "reply.h"
#include "report.h"
#include "request.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "verbs.h"

#define TEMPLATE_MAX ((size_t) 256 * 1024)

/* file: "-" is standard input. *ret is NUL-terminated; *ret_size does not count the NUL. -E2BIG over TEMPLATE_MAX. */
static int read_text(const char *file, char **ret, size_t *ret_size) {
        _cleanup_close_ int fd = -1;

        if (streq(file, "-"))
                return read_all_fd(STDIN_FILENO, TEMPLATE_MAX, ret, ret_size);
        fd = open(file, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : read_all_fd(fd, TEMPLATE_MAX, ret, ret_size);
}

/* D-Bus strings must be UTF-8. Control characters other than tab and newlines are refused too. */
static bool is_utf8(const char *text) {
        _cleanup_free_ char *copy = strdup(text);

        for (char *p = copy; p && *p; p++)
                if (strchr("\t\r\n", *p))
                        *p = ' ';
        return copy && text_is_clean(copy);
}

static int read_template(const Args *args, char **ret) {
        const char *file = args->text[OPTION_TEMPLATE];
        _cleanup_free_ char *data = NULL;
        size_t size = 0;
        int r;

        r = read_text(file, &data, &size);
        if (r == -E2BIG)
                return report_failure(args, BUS_ERROR_INVALID_TEMPLATE, "Template %s is longer than %zu KiB.", file,
                                      TEMPLATE_MAX / 1024);
        if (r < 0)
                return report_failure(args, BUS_ERROR_INVALID_TEMPLATE, "Cannot read template %s: %s.", file,
                                      strerror(-r));
        if (strlen(data) != size || !is_utf8(data))
                return report_failure(args, BUS_ERROR_INVALID_TEMPLATE, "Template %s is not UTF-8 text.", file);
        *ret = TAKE_PTR(data);
        return 0;
}

/* xml takes a request only for a recorded node; elsewhere it prints an existing allocation. */
static int check_request(const Args *args) {
        uint64_t request = args->given & OPTIONS_REQUEST;

        if (args_has(args, OPTION_NODE) || (args->n_operands == 1 && !request))
                return 0;
        return report_usage(args,
                            "xml takes %s only with --node; without --node it prints the domain of an allocation "
                            "that 'passthroughctl allocate' made",
                            args->n_operands > 1 ? args->operands[1] : option_name((Option) __builtin_ctzll(request)));
}

/* Allocates on a recorded node; no hardware is involved. */
static int allocate(Client *c, const char *name, const PoolCounts *pools) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        int r;

        r = client_method(c, "Allocate", &call);
        if (r >= 0)
                r = request_append(c->args, name, pools, call);
        return r < 0 ? r : client_call(c, call, NULL);
}

static int request_xml(Client *c, const char *name, const char *template, sd_bus_message **ret_reply) {
        const char *method = args_has(c->args, OPTION_NCCL) ? "GetNcclTopology" : "GetDomainXML";

        return template ? client_ask(c, method, ret_reply, "sa{sv}", name, 2, OPTION_KEY_TEMPLATE, "s", template,
                                     OPTION_KEY_QEMU_COMMANDLINE, "b",
                                     (int) args_has(c->args, OPTION_ALLOW_QEMU_COMMANDLINE))
                        : client_ask(c, method, ret_reply, "sa{sv}", name, 0);
}

static int print_json(const Args *args, const char *name, const char *xml) {
        json_object *o = json_object_new_object();

        if (!o || !document_add(o, "name", name) || !document_add(o, "xml", xml)) {
                json_object_put(o);
                return report_errno(args, -ENOMEM, "Cannot print");
        }
        return document_print(args, o);
}

int verb_xml(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_pool_counts_ PoolCounts pools = { 0 };
        _cleanup_free_ char *template = NULL, *xml = NULL;
        const char *name = args->operands[0];
        int r;

        if (args_has(args, OPTION_ALLOW_QEMU_COMMANDLINE) && !args_has(args, OPTION_TEMPLATE))
                return report_usage(args, "--allow-qemu-commandline needs --template");
        r = check_request(args);
        if (r == 0)
                r = pool_counts_parse(args, 1, &pools);
        if (r != 0)
                return r;
        if (args_has(args, OPTION_TEMPLATE)) {
                r = read_template(args, &template);
                if (r != 0)
                        return r;
        }
        r = client_new(args, &c);
        if (r >= 0 && args_has(args, OPTION_NODE))
                r = allocate(c, name, &pools);
        if (r >= 0)
                r = request_xml(c, name, template, &reply);
        if (r < 0)
                return r;
        r = client_read_text(c, reply, &xml);
        if (r < 0)
                return r;
        if (args_has(args, OPTION_JSON))
                return print_json(args, name, xml);
        printf("%s%s", xml, *xml && xml[strlen(xml) - 1] == '\n' ? "" : "\n");
        return 0;
}
