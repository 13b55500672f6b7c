/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that read Placement's tree into a Sync. Each returns 0, or a negative errno, logged. */

#include "sync.h"

/* Logs that a reply cannot be parsed; returns -EBADMSG. */
int placement_bad_reply(const char *path);
/* Reads the root, resource classes and traits, and all providers and claims. A provider with the same generation as
 * before is not read again. -ENOENT: the root does not exist, and the settings leave it to Nova. */
int placement_read_tree(Sync *s);
/* Searches all of Placement for a provider of this name, and adds it to the tree. -ENOENT: there is none. */
int placement_read_name(Sync *s, const char *name);
/* Reads inventories, traits and claims of a provider. -ENOENT: it no longer exists in Placement. */
int placement_read_provider(Sync *s, const char *uuid);
/* Reads Nova's providers of cleaned devices. A device that was clean at the last comparison is not read again. Returns
 * 1 when a provider that was read can be returned if its device is still clean: a guest may have used it between the
 * daemon's document and the read. */
int placement_read_cleaned(Sync *s, const Tree *wanted);
/* Reads the claim of a consumer, and whether the agent made it (Claim.is_foreign). */
int placement_read_claim(Sync *s, const char *consumer);
/* Reads further claims that a comparison needs: those that are not wanted, to tell the agent's from others; and those
 * of consumers that cover wanted claims. */
int placement_check_claims(Sync *s, const Tree *wanted);
