/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Validates a domain document with libvirt's parser. The parser runs in a separate process, passthroughd-libvirt, so
 * that the event loop is not blocked. */

#include <systemd/sd-event.h>

#include "guest/validation.h"
#include "model/refusal.h"

typedef struct Validator Validator;

/*
 * Called with the answer. refusal is NULL when the document is valid. VERDICT_INVALID_TEMPLATE has the reason and, if
 * the reason concerns an element of the template, its name and line. VERDICT_NOT_VALIDATED says why libvirt did not
 * validate the document. The refusal is valid only during the call.
 */
typedef void (*ValidatorAnswered)(const Refusal *refusal, void *userdata);
/* Called when the process of a validator has exited. */
typedef void (*ValidatorEnded)(void *userdata);

/*
 * Starts the validation of a document: a file in the format of domxml_make_with_lines(). Calls answered() once, after
 * at most VALIDATION_TIMEOUT_SEC, and then ended() when the process has exited; the validator is already freed when
 * ended() is called. Returns VERDICT_NOT_VALIDATED when the process cannot be started, or VERDICT_LIMIT when out of
 * memory; neither function is called then. SIGCHLD must be blocked.
 */
Verdict validator_start(sd_event *event, int document, ValidatorAnswered answered, ValidatorEnded ended, void *userdata,
                        Validator **ret, Refusal *ret_refusal);
/* Kills the process. answered(), if not called yet, and ended() are called as usual. */
void validator_kill(Validator *v);
/* Kills the process, and frees the validator. Neither answered() nor ended() is called. */
Validator *validator_free(Validator *v);
