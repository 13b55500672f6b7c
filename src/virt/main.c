/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * passthroughd-libvirt: validates the domain document on stdin with libvirt. guest/validation.h describes input, output
 * and exit status. With one argument, the URI of a libvirt, it reports the running domains of that libvirt on the
 * socket at stdin; guest/guest-list.h describes the records. With more arguments, it defines a domain (guest/define.h)
 * or changes the devices of one (guest/plug.h).
 */

#include <libxml/parser.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "culprit.h"
#include "define.h"
#include "guest/define.h"
#include "guests.h"
#include "plug.h"
#include "util/fileio.h"
#include "util/strings.h"

#define INPUT_MAX ((size_t) 16 * 1024 * 1024)

/* Stores the template line of each element in _private. lines: one number for each element, in document order. */
static void set_lines(xmlNode *element, char **lines) {
        element->_private = (void *) (intptr_t) strtol(*lines, lines, 10);
        for (xmlNode *c = xmlFirstElementChild(element); c; c = xmlNextElementSibling(c))
                set_lines(c, lines);
}

static Validation print_reason(Validation v, const char *reason) {
        printf("%.*s", (int) (VALIDATION_ANSWER_MAX / 2), reason ?: "Out of memory");
        return v;
}

/* Prints the culprit and the reason. Takes over reason. */
static Validation print_culprit(Libvirt *l, const char *document, char *lines, Validation first, char *reason) {
        _cleanup_(culprit_done) Culprit culprit = { 0 };
        xmlDoc *doc = xmlReadMemory(document, (int) strlen(document), NULL, NULL,
                                    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_BIG_LINES);
        Validation v;

        if (!doc) {
                v = print_reason(VALIDATION_UNKNOWN, reason);
                free(reason);
                return v;
        }
        set_lines(xmlDocGetRootElement(doc), &lines);
        v = culprit_find(l, doc, first, reason, &culprit);
        if (v == VALIDATION_INVALID)
                printf("%ld %.64s\n", culprit.line, culprit.name);
        v = print_reason(v, culprit.reason);
        xmlFreeDoc(doc);
        return v;
}

static Validation run(void) {
        _cleanup_(cleanup_libvirt_close) Libvirt *l = NULL;
        _cleanup_free_ char *input = NULL, *reason = NULL;
        size_t size;
        Validation v;

        if (read_all_fd(STDIN_FILENO, INPUT_MAX, &input, &size) < 0)
                return print_reason(VALIDATION_UNKNOWN, "The document cannot be read");
        l = libvirt_open(&reason);
        if (!l)
                return print_reason(VALIDATION_UNKNOWN, reason);
        v = libvirt_validate(l, input, &reason);
        if (v == VALIDATION_VALID)
                return v;
        return print_culprit(l, input, input + MIN(strlen(input) + 1, size), v, TAKE_PTR(reason));
}

int main(int argc, char *argv[]) {
        int status = EXIT_SUCCESS;

        /* The parent kills a validation that takes too long. In case the parent dies, this process ends by itself. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (argc == 2)
                guests_report(argv[1], STDIN_FILENO);
        else if (argc > 2 && streq(argv[2], DEFINE_WORD))
                status = define_run(argv[1], argc > 3 && streq(argv[3], DEFINE_START_WORD));
        else if (argc > 2)
                status = plug_run(argc - 1, argv + 1);
        else {
                (void) setpriority(PRIO_PROCESS, 0, VALIDATION_NICE);
                (void) alarm(2 * VALIDATION_TIMEOUT_SEC);
                status = (int) run();
        }
        (void) fflush(stdout);
        /* Skip libvirt's exit handlers. */
        _exit(status);
}
