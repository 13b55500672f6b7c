/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What tells one machine from another, replaced: the same value by the same replacement throughout one recording, under
 * a random key that is forgotten afterwards, so that no value can be guessed and tried.
 */

#include <stdio.h>

#include "util/cleanup.h"

typedef struct Identities {
        bool keep;
        uint64_t key[2];
        char *host; /* name of the machine; NULL when not known */
} Identities;

/* host may be NULL. */
int identities_init(Identities *i, bool keep, const char *host);
void identities_done(Identities *i);

/*
 * A copy of text with MAC addresses ("00:1b:21:3a:4f:2c", and those in names like "enx001b213a4f2c"), UUIDs, what
 * follows "UUID=", "LABEL=" and the like replaced, and where with_host the name of the machine. NULL when out of
 * memory.
 */
char *identities_scrub(const Identities *i, const char *text, bool with_host);

/* The whole value is one: its hex digits are replaced, what is between them stays ("0002:c903:00f5:1234"), and so do
 * zeros alone. In place. */
void identities_replace_digits(const Identities *i, char *text);
/* Bytes of a serial number. In place. */
void identities_replace_bytes(const Identities *i, unsigned char *bytes, size_t size);
