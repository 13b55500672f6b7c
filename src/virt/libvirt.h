/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Errors of libvirt, and validation of documents. Validation defines the domain with libvirt's test driver, in memory.
 * The test driver checks the document against the schema and runs all checks that need no hypervisor. It contacts no
 * daemon and writes no file. */

#include "guest/validation.h"
#include "util/cleanup.h"

typedef struct Libvirt Libvirt;

/* Keeps libvirt from writing its errors to stderr. */
void libvirt_silence(void);
/* Returns libvirt's last error as one line, which the caller frees; NULL when out of memory. */
char *libvirt_last_reason(void);
/* Opens the test driver. On failure returns NULL and sets *ret_reason, which must be NULL before and which the caller
 * frees. *ret_reason stays NULL when out of memory. */
Libvirt *libvirt_open(char **ret_reason);
/* Closes the test driver. Returns NULL. */
Libvirt *libvirt_close(Libvirt *l);
DEFINE_CLEANUP(Libvirt *, libvirt_close)

/*
 * Returns VALIDATION_VALID; VALIDATION_INVALID if the document violates the schema; or VALIDATION_UNKNOWN if libvirt
 * fails because of something else in the document or in libvirt. Unless the document is valid, sets *ret_reason to one
 * line, which the caller frees, or to NULL when out of memory.
 */
Validation libvirt_validate(Libvirt *l, const char *document, char **ret_reason);
