/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the element of a template that libvirt refuses, by bisection. */

#include "culprit.h"

#include "guest/xmlnode.h"
#include "util/clock.h"
#include "util/strings.h"

typedef struct Search {
        Libvirt *libvirt;
        xmlDoc *doc;
        uint64_t deadline, deadline_cpu;
        Culprit *found;
        Validation first; /* libvirt's first verdict, about the whole document */
        xmlNode **units;  /* elements of the template that the search can leave out, in document order */
        size_t n_units;
        bool failed; /* out of memory */
} Search;

void culprit_done(Culprit *c) {
        free(c->reason);
        *c = (Culprit) { 0 };
}

long culprit_line(const xmlNode *element) {
        return (long) (intptr_t) element->_private;
}

/* Leaves out an element, or puts it back. An element that is left out becomes a comment without text, which keeps its
 * place in the tree and is not written. */
static void leave_out(xmlNode *element, bool out) {
        element->type = out ? XML_COMMENT_NODE : XML_ELEMENT_NODE;
}

static bool is_time_over(const Search *s) {
        return s->failed || clock_usec(CLOCK_PROCESS_CPUTIME_ID) >= s->deadline_cpu ||
               clock_usec(CLOCK_MONOTONIC) >= s->deadline;
}

/* Has libvirt validate the document without the elements that are left out. Returns as libvirt_validate(). When out of
 * memory, sets s->failed and returns VALIDATION_UNKNOWN. */
static Validation validate(Search *s, char **ret_reason) {
        xmlChar *text = NULL;
        Validation v = VALIDATION_UNKNOWN;
        int size;

        xmlDocDumpMemory(s->doc, &text, &size);
        if (text)
                v = libvirt_validate(s->libvirt, (const char *) text, ret_reason);
        else
                s->failed = true;
        xmlFree(text);
        return v;
}

static bool is_valid(Search *s) {
        _cleanup_free_ char *reason = NULL;

        return validate(s, &reason) == VALIDATION_VALID;
}

/* Returns whether the document is valid now. If not, notes libvirt's reason in s->found. */
static bool is_valid_or_set_reason(Search *s) {
        _cleanup_free_ char *reason = NULL;

        if (validate(s, &reason) == VALIDATION_VALID)
                return true;
        free(s->found->reason);
        s->found->reason = TAKE_PTR(reason);
        return false;
}

/* Leaves out the elements from index `from` up to, but not including, `to`; or puts them back. */
static void leave_out_range(xmlNode **elements, size_t from, size_t to, bool out) {
        for (size_t i = from; i < to; i++)
                leave_out(elements[i], out);
}

/* Precondition: the document is valid without these elements and refused with all of them. Finds the element at which
 * the document becomes refused when the elements are added in their order. Leaves out all later elements. Returns NULL
 * when the time is over. */
static xmlNode *bisect(Search *s, xmlNode **elements, size_t n) {
        size_t valid = 0, refused = n;

        while (refused - valid > 1) {
                size_t middle = valid + (refused - valid) / 2;

                if (is_time_over(s))
                        return NULL;
                leave_out_range(elements, 0, middle, false);
                leave_out_range(elements, middle, n, true);
                if (is_valid_or_set_reason(s))
                        valid = middle;
                else
                        refused = middle;
        }
        leave_out_range(elements, 0, refused, false);
        leave_out_range(elements, refused, n, true);
        return elements[valid];
}

/* Finds a culprit among elements that cannot all be left out, because the schema or another element needs some of them.
 * Leaves out one element at a time, and returns the element without which the document is valid; NULL if there is none
 * or the time is over. */
static xmlNode *find_alone(Search *s, xmlNode **elements, size_t n) {
        for (size_t i = 0; i < n && !is_time_over(s); i++) {
                bool valid;

                leave_out(elements[i], true);
                valid = is_valid(s);
                leave_out(elements[i], false);
                if (valid)
                        return elements[i];
        }
        return NULL;
}

static int append(xmlNode ***elements, size_t *n, xmlNode *element) {
        if (ARRAY_RESERVE(*elements, *n) < 0)
                return -1;
        (*elements)[(*n)++] = element;
        return 0;
}

/* Precondition: the document is refused with the element and valid without it. Returns the smallest element inside it
 * that makes libvirt refuse the document, or the element itself. */
static xmlNode *descend(Search *s, xmlNode *element) {
        for (;;) {
                _cleanup_free_ xmlNode **children = NULL;
                xmlNode *child;
                size_t n = 0;

                for (xmlNode *c = xmlFirstElementChild(element); c; c = xmlNextElementSibling(c))
                        if (append(&children, &n, c) < 0)
                                return element;
                if (n == 0 || is_time_over(s))
                        return element;
                leave_out_range(children, 0, n, true);
                if (is_valid(s)) {
                        child = bisect(s, children, n);
                } else {
                        leave_out_range(children, 0, n, false);
                        child = find_alone(s, children, n);
                }
                if (!child)
                        return element;
                element = child;
        }
}

/* Returns whether passthroughd has added the element, or one inside it. */
static bool has_generated_element(const xmlNode *element) {
        if (culprit_line(element) == 0)
                return true;
        for (const xmlNode *c = element->children; c; c = c->next)
                if (c->type == XML_ELEMENT_NODE && has_generated_element(c))
                        return true;
        return false;
}

/* Returns true for an element that the document cannot lack: the <type> of <os>, and if the document has an
 * <iothreadpin>, the <iothreads> and <iothreadids> that it needs. */
static bool is_needed(const Search *s, const xmlNode *c) {
        xmlNode *cputune = node_find(xmlDocGetRootElement(s->doc), "cputune");
        bool threads = node_is(c, "iothreads") || node_is(c, "iothreadids");

        return threads ? node_find(cputune, "iothreadpin") != NULL : node_is(c, "type") && node_is(c->parent, "os");
}

/* Collects the elements of the template that the search may leave out. <os>, <devices> and each element that contains
 * an element of passthroughd stay in the document; in place of these, collects the elements inside them. Needed
 * elements (is_needed()) stay, too. */
static void collect_units(Search *s, xmlNode *parent) {
        for (xmlNode *c = xmlFirstElementChild(parent); c && !s->failed; c = xmlNextElementSibling(c)) {
                if (culprit_line(c) == 0 || is_needed(s, c))
                        continue;
                if (node_is(c, "os") || node_is(c, "devices") || has_generated_element(c))
                        collect_units(s, c);
                else if (append(&s->units, &s->n_units, c) < 0)
                        s->failed = true;
        }
}

/* Called when the document violates the schema even with all units left out. Returns <os> or <type> if the document
 * becomes valid without its attributes, else NULL. */
static xmlNode *find_required(Search *s, xmlNode *root) {
        xmlNode *os = node_find(root, "os"), *type = node_find(os, "type"), *elements[] = { os, type };

        for (size_t i = 0; i < ELEMENTSOF(elements); i++) {
                xmlAttr *attributes;
                bool valid;

                if (!elements[i] || culprit_line(elements[i]) == 0)
                        continue;
                attributes = elements[i]->properties;
                elements[i]->properties = NULL;
                valid = is_valid(s);
                elements[i]->properties = attributes;
                if (valid)
                        return elements[i];
        }
        return NULL;
}

static Validation find_culprit(Search *s, xmlNode *root, xmlNode **ret) {
        _cleanup_free_ char *reason = NULL;
        xmlNode *unit, *required;
        Validation v;

        collect_units(s, root);
        leave_out_range(s->units, 0, s->n_units, true);
        v = validate(s, &reason);
        if (v == VALIDATION_VALID) {
                unit = s->n_units > 0 ? bisect(s, s->units, s->n_units) : NULL;
                *ret = unit ? descend(s, unit) : root;
                return VALIDATION_INVALID;
        }
        required = v == VALIDATION_INVALID ? find_required(s, root) : NULL;
        leave_out_range(s->units, 0, s->n_units, false);
        unit = required ? NULL : find_alone(s, s->units, s->n_units);
        *ret = required ?: unit ? descend(s, unit) : root;
        /* The reason is about the document without the units. Report it in place of libvirt's first reason only if the
         * units are not to blame. */
        if (required || (!unit && v == VALIDATION_UNKNOWN && s->first == VALIDATION_UNKNOWN)) {
                free(s->found->reason);
                s->found->reason = TAKE_PTR(reason);
        }
        return required || unit || s->first == VALIDATION_INVALID ? VALIDATION_INVALID : v;
}

Validation culprit_find(Libvirt *l, xmlDoc *doc, Validation first, char *reason, Culprit *ret) {
        Search s = { .libvirt = l,
                     .doc = doc,
                     .first = first,
                     .deadline = clock_usec(CLOCK_MONOTONIC) + VALIDATION_SEARCH_SEC * UINT64_C(1000000),
                     .deadline_cpu = VALIDATION_SEARCH_CPU_SEC * UINT64_C(1000000),
                     .found = ret };
        xmlNode *element, *root = xmlDocGetRootElement(doc);
        Validation v;

        *ret = (Culprit) { .reason = reason };
        v = find_culprit(&s, root, &element);
        leave_out_range(s.units, 0, s.n_units, false);
        ret->line = culprit_line(element);
        ret->name = (const char *) element->name;
        free(s.units);
        return v;
}
