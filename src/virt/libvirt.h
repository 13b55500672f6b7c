/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * libvirt as the judge of domain documents: its built-in test driver defines each document in memory and validates it
 * by libvirt's schema and by the checks that do not depend on a hypervisor. No libvirt daemon is asked, no file is
 * written.
 */

#include "guest/validation.h"
#include "util/cleanup.h"

typedef struct Libvirt Libvirt;

/* NULL when libvirt cannot be used; then *ret_reason is why, freed by the caller. */
Libvirt *libvirt_open(char **ret_reason);
Libvirt *libvirt_close(Libvirt *l);
DEFINE_CLEANUP(Libvirt *, libvirt_close)

/*
 * VALIDATION_INVALID: the document violates the schema. VALIDATION_UNKNOWN: libvirt refuses it for another reason,
 * which may be the document's or libvirt's own. Both set *ret_reason, one line, which the caller frees; NULL when out
 * of memory.
 */
Validation libvirt_validate(Libvirt *l, const char *document, char **ret_reason);
