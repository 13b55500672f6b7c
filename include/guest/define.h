/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The contract with passthroughd-libvirt for "passthroughctl define": passthroughd-libvirt URI define [start]. It runs
 * with the rights and the environment of the caller of passthroughctl, so libvirt applies the caller's rights. An empty
 * URI means the libvirt of the document's hypervisor.
 *
 * Standard input: a domain document. Exit status: a DefineResult. Standard output: libvirt's reason, one line, unless
 * the result is DEFINE_DONE; for DEFINE_NOT_CONNECTED it begins with the URI.
 */

#define DEFINE_WORD         "define"
#define DEFINE_START_WORD   "start"
#define DEFINE_REASON_MAX   4096U
#define DEFINE_DOCUMENT_MAX (16U * 1024U * 1024U)

typedef enum DefineResult {
        DEFINE_DONE,
        DEFINE_NOT_CONNECTED, /* libvirt could not be reached */
        DEFINE_REFUSED,       /* libvirt refuses to define the document, or the document cannot be read */
        DEFINE_NOT_STARTED,   /* the domain is defined, but libvirt could not start it */
} DefineResult;

/* In a document: the prefix of the metadata's namespace, and the element with a sentence about what the guest lacks. */
#define DOMXML_PREFIX  "passthroughd"
#define DOMXML_WARNING "warning"
