/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Defines a domain in libvirt, and starts it if asked to. */

#include "define.h"

#include <libvirt/libvirt.h>
#include <stdio.h>

#include "guest/define.h"
#include "guest/domain-facts.h"
#include "libvirt.h"
#include "util/fileio.h"

/* Prints libvirt's reason, after the subject (unless that is "") and a colon. Returns result. */
static int fail(DefineResult result, const char *subject) {
        _cleanup_free_ char *reason = libvirt_last_reason();

        printf("%.256s%s%.*s", subject, *subject ? ": " : "", (int) DEFINE_REASON_MAX - 260, reason ?: "Out of memory");
        return (int) result;
}

int define_run(const char *uri, bool start) {
        _cleanup_free_ char *document = NULL;
        virConnect *connection;
        virDomain *domain;
        size_t size;

        libvirt_silence();
        if (read_all_fd(STDIN_FILENO, DEFINE_DOCUMENT_MAX, &document, &size) < 0) {
                printf("The document cannot be read");
                return DEFINE_REFUSED;
        }
        if (!*uri)
                uri = domain_facts_xen(document) ? "xen:///system" : "qemu:///system";
        connection = virConnectOpenAuth(uri, virConnectAuthPtrDefault, 0);
        if (!connection)
                return fail(DEFINE_NOT_CONNECTED, uri);
        domain = virDomainDefineXMLFlags(connection, document, VIR_DOMAIN_DEFINE_VALIDATE);
        if (!domain)
                return fail(DEFINE_REFUSED, "");
        if (start && virDomainCreate(domain) < 0)
                return fail(DEFINE_NOT_STARTED, "");
        return DEFINE_DONE;
}
