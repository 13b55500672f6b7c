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
        char *host;   /* name of the machine, up to the first dot; NULL when not known */
        char *domain; /* the rest of it, with the dot */
} Identities;

/* name: of the machine, may be NULL. */
int identities_init(Identities *i, bool keep, const char *name);
void identities_done(Identities *i);

/*
 * A copy of text with these replaced: MAC addresses ("00:1b:21:3a:4f:2c", "00-1b-21-3a-4f-2c", "001b213a4f2c", and
 * those in names like "enx001b213a4f2c"), UUIDs and other long hexadecimal numbers, what follows "UUID=" and "LABEL=";
 * where with_host, which is for text that is only read by people, also the name of the machine and such numbers without
 * a letter in them. NULL when out of memory.
 */
char *identities_scrub(const Identities *i, const char *text, bool with_host);

/* A copy of a path or the name of an interface, which must stay the same wherever it stands: only names like
 * "enx001b213a4f2c" are replaced. NULL when out of memory. */
char *identities_scrub_path(const Identities *i, const char *path);

/* Writes 12 digits for the n bytes of s, whether identities are kept or not. */
void identities_write_hash(const Identities *i, const char *s, size_t n, FILE *f);

/* The whole value is one: its hex digits are replaced, what is between them stays ("0002:c903:00f5:1234"), and so do
 * zeros alone. In place. */
void identities_replace_digits(const Identities *i, char *text);
/* Bytes of a serial number. In place. */
void identities_replace_bytes(const Identities *i, unsigned char *bytes, size_t size);
