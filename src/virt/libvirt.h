/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * libvirt's errors, and validation of domain documents by libvirt. libvirt's built-in test driver defines each document
 * in memory, which checks it against libvirt's schema and applies the checks that need no hypervisor. No libvirt daemon
 * is contacted and no file is written.
 */

#include "guest/validation.h"
#include "util/cleanup.h"

typedef struct Libvirt Libvirt;

/* Keeps libvirt from writing its errors to stderr. */
void libvirt_silence(void);
/* libvirt's last error as one line. The caller frees; NULL when out of memory. */
char *libvirt_last_reason(void);
/* Opens the test driver. On failure returns NULL with the reason in *ret_reason, which the caller frees. *ret_reason is
 * NULL when out of memory. */
Libvirt *libvirt_open(char **ret_reason);
/* Returns NULL. */
Libvirt *libvirt_close(Libvirt *l);
DEFINE_CLEANUP(Libvirt *, libvirt_close)

/*
 * VALIDATION_INVALID: the document violates the schema. VALIDATION_UNKNOWN: libvirt fails because of something else in
 * the document or in libvirt. Both set *ret_reason to one line, which the caller frees, or to NULL when out of memory.
 */
Validation libvirt_validate(Libvirt *l, const char *document, char **ret_reason);
