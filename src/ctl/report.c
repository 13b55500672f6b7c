/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports failures: as sentences on stderr, or as JSON documents on stdout. */
#include <errno.h>
#include <stdio.h>

#include "document.h"
#include "page.h"
#include "reply.h"
#include "report.h"
#include "util/strings.h"

#define PROGRAM "passthroughctl: "

static int report_json(const Args *args, const char *error, const char *message) {
        json_object *o = json_object_new_object();

        if (!o || !document_add(o, "error", error ? error : SD_BUS_ERROR_FAILED) ||
            !document_add(o, "message", message)) {
                json_object_put(o);
                fputs(PROGRAM "Out of memory.\n", stderr);
                return EXIT_FAILURE;
        }
        (void) document_print(args, o);
        return EXIT_FAILURE;
}

/* Makes a message printable: unless text_is_clean(), replaces control characters and all bytes that are not ASCII by
 * "?". They may come from an argument, a file name or a recorded node. A terminal would interpret control characters,
 * and JSON is UTF-8. */
static void sanitize(char *text) {
        if (!text || text_is_clean(text))
                return;
        for (char *c = text; *c; c++)
                if ((unsigned char) *c < 0x20 || (unsigned char) *c >= 0x7f)
                        *c = '?';
}

int report_failure(const Args *args, const char *error, const char *format, ...) {
        _cleanup_free_ char *message = FORMAT_ARGUMENTS(format);

        sanitize(message);
        if (args->problem) {
                free(*args->problem);
                *args->problem = TAKE_PTR(message);
                return EXIT_FAILURE;
        }
        if (args_has(args, OPTION_JSON))
                return report_json(args, error, message);
        page_print(stderr, 0, PROGRAM "%s", message ? message : "Out of memory.");
        return EXIT_FAILURE;
}

int report_errno(const Args *args, int error, const char *what) {
        (void) report_failure(args, SD_BUS_ERROR_FAILED, "%s: %s", what, strerror(-error));
        return error;
}

int report_usage(const Args *args, const char *format, ...) {
        _cleanup_free_ char *message = FORMAT_ARGUMENTS(format);

        sanitize(message);
        page_print(stderr, 0, PROGRAM "%s; try 'passthroughctl %s%s--help'", message ?: "Out of memory",
                   args->verb ? args->verb : "", args->verb ? " " : "");
        return EXIT_USAGE;
}
