/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The contract with passthroughd-libvirt, the program that has libvirt validate a domain document. Nothing else of this
 * package is linked with libvirt.
 *
 * Standard input: the document, a NUL, and one decimal number per line for each element in document order: the line of
 * the template that the element comes from, 0 if it comes from no template.
 *
 * Exit status: a Validation. Any other end of the process counts as VALIDATION_UNKNOWN.
 *
 * Standard output of VALIDATION_INVALID: "LINE NAME\nREASON", the element that libvirt refuses and libvirt's reason. Of
 * VALIDATION_UNKNOWN: the reason. Of VALIDATION_VALID: nothing. It is less than VALIDATION_ANSWER_MAX bytes.
 */

typedef enum Validation {
        VALIDATION_VALID,   /* libvirt defines a domain from the document */
        VALIDATION_INVALID, /* libvirt refuses the document because of the template */
        VALIDATION_UNKNOWN, /* libvirt did not validate the document */
} Validation;

#define VALIDATION_PROGRAM    "passthroughd-libvirt"
#define VALIDATION_ANSWER_MAX 1024U

/*
 * For one document: CPU time after which the program stops its search for the element, and ends; and the time after
 * which it does so where other programs have the CPUs.
 */
#define VALIDATION_SEARCH_CPU_SEC 4U
#define VALIDATION_CPU_SEC        10U
#define VALIDATION_SEARCH_SEC     10U
#define VALIDATION_TIMEOUT_SEC    20U
/* nice(2): the daemon, which other callers wait for, gets the CPU before the program. */
#define VALIDATION_NICE           5
