/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Has libvirt validate a domain document in a process of its own, passthroughd-libvirt, while the event loop goes on.
 */

#include <systemd/sd-event.h>

#include "guest/validation.h"
#include "model/refusal.h"

typedef struct Validator Validator;

/*
 * refusal: NULL, the document is valid; VERDICT_INVALID_TEMPLATE, the line of the template, the element and libvirt's
 * reason; VERDICT_NOT_VALIDATED, why libvirt did not validate it. Borrowed.
 */
typedef void (*ValidatorAnswered)(const Refusal *refusal, void *userdata);
/* The process is gone. */
typedef void (*ValidatorEnded)(void *userdata);

/*
 * document: as domxml_make_with_lines() makes it, size bytes. Calls answered once, after VALIDATION_TIMEOUT_SEC at the
 * latest, and after that, when the process is gone, ended; the validator is free then. VERDICT_NOT_VALIDATED when the
 * process cannot be started; then nothing is called. SIGCHLD must be blocked.
 */
Verdict validator_start(sd_event *event, const char *document, size_t size, ValidatorAnswered answered,
                        ValidatorEnded ended, void *userdata, Validator **ret, Refusal *ret_refusal);
/* It was answered because of the time-out, and the process is not gone yet. */
bool validator_is_late(const Validator *v);
/* Kills the process; nothing is called any more. */
Validator *validator_free(Validator *v);
