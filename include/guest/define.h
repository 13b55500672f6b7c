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
        DEFINE_NOT_CONNECTED, /* there is no connection to libvirt */
        DEFINE_REFUSED,       /* libvirt does not define the document */
        DEFINE_NOT_STARTED,   /* the domain is defined, but does not start */
} DefineResult;

/* The namespace prefix of a document's metadata, and its element for a sentence about what the guest lacks. */
#define DOMXML_PREFIX  "passthroughd"
#define DOMXML_WARNING "warning"
