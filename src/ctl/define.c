/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * passthroughctl define: defines the libvirt domain of an allocation, over the caller's own connection to libvirt.
 * passthroughd-libvirt does it: linking libvirt would make every verb start several times slower.
 */

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "bus/names.h"
#include "document.h"
#include "domain.h"
#include "guest/define.h"
#include "report.h"
#include "util/fileio.h"
#include "util/program.h"
#include "util/strings.h"
#include "verbs.h"

#define PROGRAM "passthroughd-libvirt"

extern char **environ;

/* The libvirt of --connect, else of virsh's variable, else the one that the document is for. */
static const char *find_uri(const Args *args) {
        return args->text[OPTION_CONNECT] ?: getenv("LIBVIRT_DEFAULT_URI") ?: "";
}

/* Runs the program with these descriptors as standard input and output. Returns its exit status or a negative errno. */
static int run_program(const Args *args, int input, int output) {
        char program[PATH_MAX], *const arguments[] = { (char *) PROGRAM, (char *) find_uri(args), (char *) DEFINE_WORD,
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
        return WIFEXITED(status) ? WEXITSTATUS(status) : -EPROTO;
}

/* Hands the document to libvirt. Returns a DefineResult or a negative errno. *ret_reason: the caller frees. */
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

/* Prints the failure as a sentence. reason: of libvirt, which may end with a full stop. */
static int report_result(const Args *args, int result, const char *name, char *reason) {
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

static int print_done(const Args *args, const char *name) {
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
        int r = domain_read_template(args, &template);

        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r >= 0)
                r = domain_request(c, name, template, &xml);
        if (r < 0)
                return r;
        r = define(args, xml, &reason);
        if (r < 0)
                return report_errno(args, r, "Cannot run " PROGRAM);
        return r == DEFINE_DONE ? print_done(args, name) : report_result(args, r, name, reason);
}
