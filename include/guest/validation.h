/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The contract with passthroughd-libvirt, the program that has libvirt validate a domain document. Nothing else of this
 * package is linked with libvirt.
 *
 * Standard input: the document, a NUL, and then for each element, in document order, a line with a decimal number: the
 * line of the template that the element comes from, or 0 if it comes from no template.
 *
 * Exit status: a Validation. Any other end of the process counts as VALIDATION_UNKNOWN.
 *
 * Standard output, of less than VALIDATION_ANSWER_MAX bytes. VALIDATION_INVALID: "LINE NAME\nREASON", the refused
 * element and the reason. VALIDATION_UNKNOWN: the reason. VALIDATION_VALID: nothing.
 */

typedef enum Validation {
        VALIDATION_VALID,   /* libvirt accepts the document */
        VALIDATION_INVALID, /* libvirt refuses the document because it violates the schema or because of the template,
                               or an element has a reserved path (guest/domain-paths.h) */
        VALIDATION_UNKNOWN, /* libvirt could not check the document, or refuses it for another reason */
} Validation;

#define VALIDATION_PROGRAM    "passthroughd-libvirt"
#define VALIDATION_ANSWER_MAX 1024U

/*
 * Limits for one document: CPU time after which the program stops its search for the refused element, and CPU time
 * after which it ends. Then the same two limits in elapsed time, for a machine whose CPUs are busy; the daemon enforces
 * the last one.
 */
#define VALIDATION_SEARCH_CPU_SEC 4U
#define VALIDATION_CPU_SEC        10U
#define VALIDATION_SEARCH_SEC     30U
#define VALIDATION_TIMEOUT_SEC    60U
/* Priority of the program by nice(2): the daemon, for which others wait, gets the CPU first. */
#define VALIDATION_NICE           5
