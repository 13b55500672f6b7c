/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Errors of libvirt, and validation of documents. libvirt's test driver defines a document in memory: that checks the
 * document against the schema and runs all checks that need no hypervisor. It contacts no daemon and writes no file. */

#include "guest/validation.h"
#include "util/cleanup.h"

typedef struct Libvirt Libvirt;

/* Keeps libvirt from writing its errors to stderr. */
void libvirt_silence(void);
/* Returns libvirt's last error as one line, which the caller frees; NULL when out of memory. */
char *libvirt_last_reason(void);
/* Opens the test driver. NULL: failed, and *ret_reason, which the caller frees, says why (NULL: out of memory). */
Libvirt *libvirt_open(char **ret_reason);
/* Closes the test driver. Returns NULL. */
Libvirt *libvirt_close(Libvirt *l);
DEFINE_CLEANUP(Libvirt *, libvirt_close)

/*
 * VALIDATION_INVALID: the document violates the schema. VALIDATION_UNKNOWN: libvirt fails because of something else in
 * the document or in libvirt. Both set *ret_reason to one line, which the caller frees, or to NULL when out of memory.
 */
Validation libvirt_validate(Libvirt *l, const char *document, char **ret_reason);
