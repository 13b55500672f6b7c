/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * passthroughd-libvirt: validates the domain document on stdin with libvirt. guest/validation.h describes input, output
 * and exit status. With one argument, the URI of a libvirt, it reports the running domains of that libvirt on the
 * socket at stdin; guest/guest-list.h describes the records. With more arguments, it defines a domain (guest/define.h)
 * or changes or prints a domain (guest/plug.h).
 */

#include <libxml/parser.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "culprit.h"
#include "define.h"
#include "guest/define.h"
#include "guest/domain-paths.h"
#include "guests.h"
#include "plug.h"
#include "util/fileio.h"
#include "util/strings.h"

#define LINKS_MAX 40U
#define INPUT_MAX ((size_t) 16 * 1024 * 1024)

/* Stores in _private of the element, and of each element inside it, the line of the template that the element comes
 * from. *lines: these line numbers in document order (guest/validation.h); moved behind those that were read. */
static void set_lines(xmlNode *element, char **lines) {
        element->_private = (void *) (intptr_t) strtol(*lines, lines, 10);
        for (xmlNode *c = xmlFirstElementChild(element); c; c = xmlNextElementSibling(c))
                set_lines(c, lines);
}

static xmlDoc *read_document(const char *document) {
        return xmlReadMemory(document, (int) strlen(document), NULL, NULL,
                             XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_BIG_LINES);
}

static Validation print_reason(Validation v, const char *reason) {
        printf("%.*s", (int) (VALIDATION_ANSWER_MAX / 2), reason ?: "Out of memory");
        return v;
}

/* Finds and prints the element that libvirt refuses, and why. Takes ownership of reason. */
static Validation print_culprit(Libvirt *l, const char *document, char *lines, Validation first, char *reason) {
        _cleanup_(culprit_done) Culprit culprit = { 0 };
        xmlDoc *doc = read_document(document);
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

/* Replaces a link in a path by the link's target: the first `count` bytes of the path name the link. Returns the new
 * path, which the caller frees; NULL if these bytes name no link, or when out of memory. */
static char *replace_link(const char *path, size_t count) {
        _cleanup_free_ char *link = strndup(path, count);
        char target[PATH_MAX];
        ssize_t n = link ? readlink(link, target, sizeof(target) - 1) : -1;

        if (n <= 0)
                return NULL;
        target[n] = '\0';
        *(strrchr(link, '/') + 1) = '\0';
        return string_format("%s%s%s", *target == '/' ? "" : link, target, path + count);
}

/* Returns the path with its links followed, even dangling ones. The part from the first missing component on is kept. A
 * relative path is taken as below "/". The caller frees. NULL: the first component of a relative path is missing, there
 * are too many dangling links, or memory is short. */
static char *resolve_path(const char *path) {
        char *whole = string_format("/%s", path);

        for (unsigned links = 0; whole && links < LINKS_MAX; links++) {
                _cleanup_free_ char *existing = strdup(whole), *real = NULL;
                char *next = NULL, *slash;

                while (existing && !(real = realpath(existing, NULL)) &&
                       !(next = replace_link(whole, strlen(existing))) && (slash = strrchr(existing, '/')) > existing)
                        *slash = '\0';
                if (!next)
                        next = real ? string_format("%s/%s", real, whole + strlen(existing)) : NULL;
                free(whole);
                whole = next;
                if (real)
                        return whole;
        }
        free(whole);
        return NULL;
}

/* Returns true for a terminal, and for a device that QEMU may open for any guest. */
static bool is_common_node(dev_t node) {
        static const struct {
                unsigned major, first, last;
        } nodes[] = {
                { 1, 3, 3 },        { 1, 5, 5 },        { 1, 7, 9 },      /* null, zero, full, random, urandom */
                { 10, 183, 183 },   { 10, 200, 200 },   { 10, 238, 238 }, /* hwrng, net/tun, vhost-net */
                { 4, 0, UINT_MAX }, { 5, 0, UINT_MAX }, { 136, 0, UINT_MAX },
        };

        for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
                if (major(node) == nodes[i].major && minor(node) >= nodes[i].first && minor(node) <= nodes[i].last)
                        return true;
        return false;
}

/* As resolve_path(), but for a character device that is_common_node() does not accept, returns its path in /dev/char,
 * which is reserved: such a node may be in any directory and belong to any vendor's device. */
static char *resolve_device(const char *path) {
        _cleanup_free_ char *whole = string_format("/%s", path);
        struct stat st;

        if (!whole || stat(whole, &st) < 0 || !S_ISCHR(st.st_mode) || is_common_node(st.st_rdev))
                return resolve_path(path);
        return string_format("/dev/char/%u:%u", major(st.st_rdev), minor(st.st_rdev));
}

/* Refuses a document with a reserved path. Checks each path also with its links resolved, because libvirt and QEMU
 * follow links. Sets *ret to true if the document was refused or cannot be read; then the answer was printed, and the
 * result is the exit status. */
static Validation check_paths(const char *document, char *lines, bool *ret) {
        xmlDoc *doc = read_document(document);
        _cleanup_free_ char *path = NULL, *reason = NULL;
        const xmlNode *found;

        *ret = !doc;
        if (!doc)
                return print_reason(VALIDATION_UNKNOWN, "The document cannot be read");
        set_lines(xmlDocGetRootElement(doc), &lines);
        found = domain_find_reserved_path(xmlDocGetRootElement(doc), resolve_device, &path);
        if (found) {
                *ret = true;
                printf("%ld %.64s\n", culprit_line(found), (const char *) found->name);
                reason = string_format("'%s' " RESERVED_PATH_REASON, QUOTABLE(path));
                (void) print_reason(VALIDATION_INVALID, reason);
        }
        xmlFreeDoc(doc);
        return VALIDATION_INVALID;
}

static Validation run(void) {
        _cleanup_(cleanup_libvirt_close) Libvirt *l = NULL;
        _cleanup_free_ char *input = NULL, *reason = NULL;
        size_t size;
        char *lines;
        Validation v;
        bool refused;

        if (read_all_fd(STDIN_FILENO, INPUT_MAX, &input, &size) < 0)
                return print_reason(VALIDATION_UNKNOWN, "The document cannot be read");
        lines = input + MIN(strlen(input) + 1, size);
        v = check_paths(input, lines, &refused);
        if (refused)
                return v;
        l = libvirt_open(&reason);
        if (!l)
                return print_reason(VALIDATION_UNKNOWN, reason);
        v = libvirt_validate(l, input, &reason);
        if (v == VALIDATION_VALID)
                return v;
        return print_culprit(l, input, lines, v, TAKE_PTR(reason));
}

int main(int argc, char *argv[]) {
        int status = EXIT_SUCCESS;

        /* The kernel kills this process when its parent dies. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (argc == 2)
                guests_report(argv[1], STDIN_FILENO);
        else if (argc > 2 && streq(argv[2], DEFINE_WORD))
                status = define_run(argv[1], argc > 3 && streq(argv[3], DEFINE_START_WORD));
        else if (argc > 2)
                status = plug_run(argc - 1, argv + 1);
        else {
                (void) setpriority(PRIO_PROCESS, 0, VALIDATION_NICE);
                (void) setrlimit(RLIMIT_CPU, &(struct rlimit) { VALIDATION_CPU_SEC, VALIDATION_CPU_SEC });
                (void) alarm(2 * VALIDATION_TIMEOUT_SEC);
                status = (int) run();
        }
        (void) fflush(stdout);
        /* _exit() does not run libvirt's exit handlers. */
        _exit(status);
}
