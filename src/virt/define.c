/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Defines a domain, and starts it. */

#include "define.h"

#include <libvirt/libvirt.h>
#include <stdio.h>

#include "guest/define.h"
#include "libvirt.h"
#include "util/fileio.h"

static DefineResult fail(DefineResult result) {
        _cleanup_free_ char *reason = libvirt_last_reason();

        printf("%.*s", (int) DEFINE_REASON_MAX, reason ?: "Out of memory");
        return result;
}

int define_run(const char *uri, bool start) {
        _cleanup_free_ char *document = NULL;
        virConnect *connection;
        virDomain *domain;
        size_t size;

        libvirt_silence();
        if (read_all_fd(STDIN_FILENO, DEFINE_DOCUMENT_MAX, &document, &size) < 0)
                return DEFINE_REFUSED;
        connection = virConnectOpenAuth(uri, virConnectAuthPtrDefault, 0);
        if (!connection)
                return (int) fail(DEFINE_NOT_CONNECTED);
        domain = virDomainDefineXMLFlags(connection, document, VIR_DOMAIN_DEFINE_VALIDATE);
        if (!domain)
                return (int) fail(DEFINE_REFUSED);
        if (start && virDomainCreate(domain) < 0)
                return (int) fail(DEFINE_NOT_STARTED);
        return DEFINE_DONE;
}
