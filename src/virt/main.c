/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughd-libvirt: has libvirt validate the domain document on standard input; guest/validation.h is its contract.
 */

#include <errno.h>
#include <libxml/parser.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "culprit.h"
#include "util/strings.h"

#define INPUT_MAX ((size_t) 16 * 1024 * 1024)

/* All of standard input, with a NUL after it. *ret_size is without that. */
static char *read_input(size_t *ret_size) {
        _cleanup_free_ char *data = NULL;
        size_t n = 0;
        ssize_t k;

        do {
                if (n > INPUT_MAX || ARRAY_RESERVE(data, n + 65536) < 0)
                        return NULL;
                k = read(STDIN_FILENO, data + n, 65535);
                n += k > 0 ? (size_t) k : 0;
        } while (k > 0 || (k < 0 && errno == EINTR));
        if (k < 0)
                return NULL;
        data[n] = '\0';
        *ret_size = n;
        return TAKE_PTR(data);
}

/* The lines are in document order, one for each element. */
static void set_lines(xmlNode *element, char **lines) {
        element->_private = (void *) (intptr_t) strtol(*lines, lines, 10);
        for (xmlNode *c = xmlFirstElementChild(element); c; c = xmlNextElementSibling(c))
                set_lines(c, lines);
}

static Validation answer(Validation v, const char *reason) {
        printf("%.*s", (int) (VALIDATION_ANSWER_MAX / 2), reason ?: "Out of memory");
        return v;
}

static Validation blame(Libvirt *l, const char *document, char *lines, char *reason) {
        _cleanup_(culprit_done) Culprit culprit = { 0 };
        xmlDoc *doc = xmlReadMemory(document, (int) strlen(document), NULL, NULL,
                                    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_BIG_LINES);
        Validation v;

        if (!doc) {
                v = answer(VALIDATION_UNKNOWN, reason);
                free(reason);
                return v;
        }
        set_lines(xmlDocGetRootElement(doc), &lines);
        v = culprit_find(l, doc, reason, &culprit);
        if (v == VALIDATION_INVALID)
                printf("%ld %.64s\n", culprit.line, culprit.name);
        v = answer(v, culprit.reason);
        xmlFreeDoc(doc);
        return v;
}

static Validation run(void) {
        _cleanup_(cleanup_libvirt_close) Libvirt *l = NULL;
        _cleanup_free_ char *input = NULL, *reason = NULL;
        size_t size;
        Validation v;

        input = read_input(&size);
        if (!input)
                return answer(VALIDATION_UNKNOWN, "The document cannot be read");
        l = libvirt_open(&reason);
        if (!l)
                return answer(VALIDATION_UNKNOWN, reason);
        v = libvirt_validate(l, input, &reason);
        if (v == VALIDATION_VALID)
                return v;
        return blame(l, input, input + MIN(strlen(input) + 1, size), TAKE_PTR(reason));
}

int main(void) {
        Validation v;

        /* The caller kills a validation that takes too long. If the caller is gone, nobody does. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) alarm(2 * VALIDATION_TIMEOUT_SEC);
        v = run();
        (void) fflush(stdout);
        /* What libvirt put away for its exit is not waited for. */
        _exit((int) v);
}
