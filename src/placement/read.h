/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that read Placement's tree into a Sync. Each returns 0 (placement_read_cleaned() also 1), or a negative
 * errno, logged. The -ENOENT of placement_read_name() and placement_read_provider() is not logged. */

#include "sync.h"

/* Logs that a reply cannot be parsed; returns -EBADMSG. */
int placement_bad_reply(const char *path);
/* Reads the root, resource classes and traits, all providers of the tree, and the inventories, traits and claims of the
 * agent's providers. The inventories and traits of a provider with the same generation as before are not read again.
 * -ENOENT: the root does not exist, and the settings leave it to Nova. */
int placement_read_tree(Sync *s);
/* Searches all of Placement for a provider of this name, and adds it to the tree. -ENOENT: there is none. */
int placement_read_name(Sync *s, const char *name);
/* Reads inventories, traits and claims of a provider. -ENOENT: it no longer exists in Placement. */
int placement_read_provider(Sync *s, const char *uuid);
/* Reads Nova's providers of cleaned devices. A provider is not read again if its device was clean at the last
 * comparison and was not reserved for a consumer then. Returns 1 when it has read a provider that the agent could free
 * now. Then the caller needs a new document of the daemon, because a guest may have used the device between the
 * document and the read. */
int placement_read_cleaned(Sync *s, const Tree *wanted);
/* Reads the claim of a consumer, and whether the agent made it (Claim.is_foreign). */
int placement_read_claim(Sync *s, const char *consumer);
/* Reads further claims that a comparison needs: claims that are not wanted, to find out which of them the agent made,
 * and the claims of consumers that cover wanted claims (Claim.covered_by). */
int placement_check_claims(Sync *s, const Tree *wanted);
