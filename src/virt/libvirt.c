/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Validates domain documents with libvirt's test driver. */

#include "libvirt.h"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include "util/strings.h"

#define TEST_DRIVER "test:///default"

struct Libvirt {
        virConnect *connection;
};

/* Ignores an error, which libvirt's default handler would write to stderr. */
static void ignore_error(void *userdata, virError *error) {
}

/* libvirt's message for a schema violation has several lines: the first names the schema file, each further line is an
 * error. */
char *libvirt_last_reason(void) {
        const virError *error = virGetLastError();
        const char *message = error && error->message ? error->message : "libvirt gives no reason", *line;
        _cleanup_free_ char *copy = NULL, *reason = NULL;
        char *rest;

        line = error && error->code == VIR_ERR_XML_INVALID_SCHEMA ? strchr(message, '\n') : NULL;
        copy = rest = strdup(line && line[1] ? line + 1 : message);
        while (rest && (line = strsep(&rest, "\n")))
                if (*line && string_replace(&reason, "%s%s%s", reason ?: "", reason ? "; " : "", line) < 0)
                        return NULL;
        return TAKE_PTR(reason);
}

void libvirt_silence(void) {
        virSetErrorFunc(NULL, ignore_error);
}

Libvirt *libvirt_open(char **ret_reason) {
        Libvirt *l = calloc(1, sizeof(*l));

        if (!l)
                return NULL;
        libvirt_silence();
        l->connection = virConnectOpen(TEST_DRIVER);
        if (l->connection)
                return l;
        *ret_reason = libvirt_last_reason();
        return libvirt_close(l);
}

Libvirt *libvirt_close(Libvirt *l) {
        if (l && l->connection)
                (void) virConnectClose(l->connection);
        free(l);
        return NULL;
}

Validation libvirt_validate(Libvirt *l, const char *document, char **ret_reason) {
        virDomain *domain = virDomainDefineXMLFlags(l->connection, document, VIR_DOMAIN_DEFINE_VALIDATE);
        int code;

        if (domain) {
                (void) virDomainUndefine(domain);
                (void) virDomainFree(domain);
                return VALIDATION_VALID;
        }
        code = virGetLastErrorCode();
        /* The test driver has a domain 'test'. A document of that name fails with this code, after it has passed all
         * checks. */
        if (code == VIR_ERR_OPERATION_FAILED)
                return VALIDATION_VALID;
        *ret_reason = libvirt_last_reason();
        return code == VIR_ERR_XML_INVALID_SCHEMA ? VALIDATION_INVALID : VALIDATION_UNKNOWN;
}
