/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads Placement's tree into a Sync. Each function returns 0, or a negative errno, logged. */

#include "sync.h"

/* Logs that a reply cannot be parsed; returns -EBADMSG. */
int placement_bad_reply(const char *path);
/* The root, resource classes and traits, and all providers and claims. A provider with the same generation as before is
 * not read again. -ENOENT: the root does not exist, and the settings leave it to Nova. */
int placement_read_tree(Sync *s);
/* Looks for a provider in all trees, and enters it into this one. -ENOENT: there is none of that name. */
int placement_read_name(Sync *s, const char *name);
/* Inventories, traits and claims of a provider. -ENOENT: Placement does not have it any more. */
int placement_read_provider(Sync *s, const char *uuid);
/* Nova's providers of cleaned devices. A device that was clean at the last comparison is not read again. 1: one that
 * was read can be returned if it is still clean: a guest may have used it between the daemon's document and the read.
 */
int placement_read_cleaned(Sync *s, const Tree *wanted);
/* What a consumer has, and whether the agent made its claim. */
int placement_read_claim(Sync *s, const char *consumer);
/* Reads the claims that the comparison needs: those that are not wanted, to find out which of them are the agent's, and
 * those of other consumers that cover wanted claims. */
int placement_check_claims(Sync *s, const Tree *wanted);
