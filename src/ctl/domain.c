/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl xml and define: the libvirt domain for an allocation. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "bus/names.h"
#include "document.h"
#include "guest/define.h"
#include "page.h"
#include "report.h"
#include "request.h"
#include "util/fileio.h"
#include "util/program.h"
#include "util/strings.h"
#include "verbs.h"

#define TEMPLATE_MAX ((size_t) 256 * 1024)

/* Reads a file; "-" is standard input. *ret has a NUL at its end, which *ret_size does not count. Returns 0 or a
 * negative errno; -E2BIG: more than TEMPLATE_MAX bytes. */
static int read_input(const char *file, char **ret, size_t *ret_size) {
        _cleanup_close_ int fd = -1;

        if (streq(file, "-"))
                return read_all_fd(STDIN_FILENO, TEMPLATE_MAX, ret, ret_size);
        fd = open(file, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : read_all_fd(fd, TEMPLATE_MAX, ret, ret_size);
}

/* Returns true when a template is UTF-8, as D-Bus requires, without control characters except tab and newlines. */
static bool is_utf8(const char *text) {
        _cleanup_free_ char *copy = strdup(text);

        for (char *p = copy; p && *p; p++)
                if (strchr("\t\r\n", *p))
                        *p = ' ';
        return copy && text_is_clean(copy);
}

/* Reads the file of --template into *ret, which the caller frees. Leaves *ret unchanged without the option. Returns 0;
 * or EXIT_USAGE or another value after a failure that was reported. */
static int read_template(const Args *args, char **ret) {
        const char *file = args->text[OPTION_TEMPLATE];
        _cleanup_free_ char *data = NULL;
        size_t size = 0;
        int r;

        if (!file)
                return args_has(args, OPTION_ALLOW_QEMU_COMMANDLINE)
                               ? report_usage(args, "--allow-qemu-commandline needs --template")
                               : 0;
        r = read_input(file, &data, &size);
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

static int append_text(sd_bus_message *call, const char *key, const char *text) {
        return text ? sd_bus_message_append(call, "{sv}", key, "s", text) : 0;
}

/* Appends the arguments of the call: name, and the options with the template. template NULL: none. */
static int append_arguments(const Args *args, const char *name, const char *template, sd_bus_message *call) {
        static const struct {
                Option option;
                const char *key;
                int value;
        } flags[] = { { OPTION_ALLOW_QEMU_COMMANDLINE, OPTION_KEY_QEMU_COMMANDLINE, 1 },
                      { OPTION_NO_GUEST_INFO, OPTION_KEY_GUEST_INFO, 0 },
                      { OPTION_HOST_ADDRESSES, OPTION_KEY_HOST_ADDRESSES, 1 } };
        int r = sd_bus_message_append(call, "s", name);

        if (r < 0)
                return r;
        r = sd_bus_message_open_container(call, 'a', "{sv}");
        if (r < 0)
                return r;
        r = append_text(call, OPTION_KEY_TEMPLATE, template);
        if (r < 0)
                return r;
        r = append_text(call, OPTION_KEY_DEVICE, args->text[OPTION_DEVICE]);
        if (r < 0)
                return r;
        r = append_text(call, OPTION_KEY_FORMAT, args->text[OPTION_FORMAT]);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(flags); i++)
                if (args_has(args, flags[i].option))
                        r = sd_bus_message_append(call, "{sv}", flags[i].key, "b", flags[i].value);
        return r < 0 ? r : sd_bus_message_close_container(call);
}

/* Asks the daemon for the document that the options describe. template NULL: none. The caller frees *ret. Returns 0 or
 * a negative errno, reported. */
static int request_document(Client *c, const char *name, const char *template, char **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        bool nccl = args_has(c->args, OPTION_NCCL);
        int r = client_method(c, nccl ? "GetNcclTopology" : "GetDomainXML", &call);

        if (r < 0)
                return r;
        r = append_arguments(c->args, name, template, call);
        if (r < 0)
                return report_errno(c->args, r, "Cannot build the D-Bus call");
        r = client_call(c, call, &reply);
        return r < 0 ? r : client_read_text(c, reply, ret);
}

/* passthroughctl xml: prints the libvirt domain for an allocation, made from nothing or from a template; or only the
 * <hostdev> of one device, the configuration for xl, or the topology file for NCCL in the guest. A recorded node has no
 * allocations, so there the request is allocated first. */

/* Checks the operands. A request is allowed only with a recorded node. Otherwise the operand is the name of an existing
 * allocation. */
static int check_xml_request(const Args *args) {
        uint64_t request = args->given & OPTIONS_REQUEST;

        if (args_has(args, OPTION_NODE) || (args->n_operands == 1 && !request))
                return 0;
        return report_usage(args,
                            "xml takes %s only with --node; without --node it prints the domain of an allocation "
                            "that 'passthroughctl allocate' made",
                            args->n_operands > 1 ? args->operands[1] : option_name((Option) __builtin_ctzll(request)));
}

/* Allocates on a recorded node, where no hardware is touched. */
static int allocate_recorded(Client *c, const char *name, const RequestItems *items) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        int r;

        r = client_method(c, "Allocate", &call);
        if (r < 0)
                return r;
        r = request_append(c->args, name, items, call);
        return r < 0 ? r : client_call(c, call, NULL);
}

#define WARNING_BEGIN "<" DOMXML_PREFIX ":" DOMXML_WARNING ">"
#define WARNING_END   "</" DOMXML_PREFIX ":" DOMXML_WARNING ">"

/* Prints on standard error the warnings in the metadata of the document. They need no unescaping, because they
 * have no character that XML escapes. */
static void print_lacks(const char *xml) {
        for (const char *at = xml, *end; (at = strstr(at, WARNING_BEGIN)); at = end) {
                _cleanup_free_ char *text = NULL;

                at += strlen(WARNING_BEGIN);
                end = strstr(at, WARNING_END);
                if (!end)
                        return;
                text = string_format("%.*s", (int) (end - at), at);
                if (text)
                        page_wrap(stderr, text, 0, 0);
        }
}

static int print_xml_json(const Args *args, const char *name, const char *xml) {
        json_object *o = json_object_new_object();

        if (!o || !document_add(o, "name", name) || !document_add(o, "xml", xml)) {
                json_object_put(o);
                return report_errno(args, -ENOMEM, "Cannot print");
        }
        return document_print(args, o);
}

int verb_xml(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_request_items_ RequestItems items = { 0 };
        _cleanup_free_ char *template = NULL, *xml = NULL;
        const char *name = args->operands[0];
        int r;

        if (args_has(args, OPTION_NCCL) && args_has(args, OPTION_DEVICE))
                return report_usage(args, "--nccl and --device are different documents: give only one of them");
        if (args_has(args, OPTION_NCCL) && args_has(args, OPTION_FORMAT))
                return report_usage(args, "--nccl and --format are different documents: give only one of them");
        r = check_xml_request(args);
        if (r != 0)
                return r;
        r = request_items_parse(args, 1, &items);
        if (r != 0)
                return r;
        r = read_template(args, &template);
        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r < 0)
                return r;
        if (args_has(args, OPTION_NODE))
                r = allocate_recorded(c, name, &items);
        if (r < 0)
                return r;
        r = request_document(c, name, template, &xml);
        if (r < 0)
                return r;
        print_lacks(xml);
        if (args_has(args, OPTION_JSON))
                return print_xml_json(args, name, xml);
        printf("%s%s", xml, *xml && xml[strlen(xml) - 1] == '\n' ? "" : "\n");
        return 0;
}

/* passthroughctl define: defines the libvirt domain for an allocation, over a connection of the caller to libvirt. The
 * program passthroughd-libvirt does this, because passthroughctl would start several times slower if it were linked
 * with libvirt. */

#define PROGRAM "passthroughd-libvirt"

extern char **environ;

/* Runs PROGRAM with `input` and `output` as its standard input and output. Returns a DefineResult or a negative errno;
 * -EPROTO: it ended with no DefineResult. */
static int run_program(const Args *args, int input, int output) {
        /* The URI of libvirt: that of --connect, else $LIBVIRT_DEFAULT_URI, which virsh also uses, else "", which means
         * the libvirt of the document's hypervisor. */
        const char *uri = args->text[OPTION_CONNECT] ?: getenv("LIBVIRT_DEFAULT_URI") ?: "";
        char program[PATH_MAX], *const arguments[] = { (char *) PROGRAM, (char *) uri, (char *) DEFINE_WORD,
                                                       args_has(args, OPTION_START) ? (char *) DEFINE_START_WORD : NULL,
                                                       NULL };
        posix_spawn_file_actions_t files;
        int status, r = program_find(PROGRAM, program);
        pid_t pid;

        if (r < 0)
                return r;
        (void) posix_spawn_file_actions_init(&files);
        r = posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawn(&pid, program, &files, NULL, arguments, environ);
        (void) posix_spawn_file_actions_destroy(&files);
        if (r > 0)
                return -r;
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) <= DEFINE_NOT_STARTED ? WEXITSTATUS(status) : -EPROTO;
}

/* Has libvirt define the domain of the document. Returns a DefineResult or a negative errno. Sets *ret_reason to
 * libvirt's message, which the caller frees. */
static int define(const Args *args, const char *document, char **ret_reason) {
        _cleanup_close_ int input = memfd_create("document", MFD_CLOEXEC), output = memfd_create("reason", MFD_CLOEXEC);
        size_t size;
        int r, result;

        if (input < 0 || output < 0)
                return -errno;
        r = write_all_fd(input, document, strlen(document));
        if (r < 0)
                return r;
        if (lseek(input, 0, SEEK_SET) < 0)
                return -errno;
        result = run_program(args, input, output);
        if (result < 0)
                return result;
        if (lseek(output, 0, SEEK_SET) < 0)
                return -errno;
        r = read_all_fd(output, DEFINE_REASON_MAX, ret_reason, &size);
        return r < 0 ? r : result;
}

/* Reports a failure to define as a sentence. reason: libvirt's message, which may end with a full stop. */
static int report_definition(const Args *args, int result, const char *name, char *reason) {
        size_t n = strlen(reason);

        while (n > 0 && strchr(". ", reason[n - 1]))
                reason[--n] = '\0';
        switch (result) {
        case DEFINE_NOT_CONNECTED:
                return report_failure(args, NULL, "Cannot connect to libvirt: %s.", reason);
        case DEFINE_REFUSED:
                return report_failure(args, NULL, "libvirt refuses the domain '%s': %s.", name, reason);
        default:
                return report_failure(args, NULL, "libvirt has defined the domain '%s', but does not start it: %s.",
                                      name, reason);
        }
}

static int print_defined(const Args *args, const char *name) {
        bool started = args_has(args, OPTION_START);
        json_object *o;

        if (!args_has(args, OPTION_JSON)) {
                printf("libvirt has defined %sthe domain '%s'.\n", started ? "and started " : "", name);
                return 0;
        }
        o = json_object_new_object();
        if (!o || !document_add(o, "name", name) ||
            json_object_object_add(o, "started", json_object_new_boolean(started)) < 0) {
                json_object_put(o);
                return report_errno(args, -ENOMEM, "Cannot print");
        }
        return document_print(args, o);
}

int verb_define(const Args *args) {
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_free_ char *template = NULL, *xml = NULL, *reason = NULL;
        const char *name = args->operands[0];
        int r = read_template(args, &template);

        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r < 0)
                return r;
        r = request_document(c, name, template, &xml);
        if (r < 0)
                return r;
        print_lacks(xml);
        r = define(args, xml, &reason);
        if (r < 0)
                return report_errno(args, r, "Cannot run " PROGRAM);
        return r == DEFINE_DONE ? print_defined(args, name) : report_definition(args, r, name, reason);
}
