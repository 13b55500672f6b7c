/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Replaces identifiers of a machine by keyed hashes. Within one recording the same value always has the same
 * replacement. The key is random and discarded after the recording, so a guessed value cannot be confirmed.
 */

#include <stdio.h>

#include "util/cleanup.h"

typedef struct Identities {
        bool keep; /* replace no identifiers (SNAPSHOT_IDENTITIES) */
        uint64_t key[2];
        char *host; /* the host name up to the first dot; NULL if it is unknown, "localhost" or too short to replace */
        char *domain; /* the rest of the host name, from the dot */
} Identities;

/* Initializes the replacement. name: the host name, or NULL. 0, -ENOMEM, or -EIO without random numbers. */
int identities_init(Identities *i, bool keep, const char *name);
void identities_done(Identities *i);

/*
 * Writes text to f and replaces in it: MAC addresses ("00:1b:21:3a:4f:2c", "00-1b-21-3a-4f-2c", "001b213a4f2c", and in
 * interface names like "enx001b213a4f2c"), UUIDs, hexadecimal numbers of 12, 16 or 32 digits, and the values of "UUID="
 * and "LABEL=". with_host: also replaces the host name, and decimal numbers of 12, 16 or 32 digits. Do not set it for
 * text in which such a name or number may mean something else, for example the settings of a configuration file.
 */
void identities_write(const Identities *i, const char *text, bool with_host, FILE *f);
/* As identities_write(), but returns the new text, which the caller frees. NULL when out of memory. */
char *identities_scrub(const Identities *i, const char *text, bool with_host);

/* As identities_scrub() with the host name, for the name of a device mapper device. The name of a logical volume is
 * VG-LV, in which LVM doubles the dashes of both names: "vg--a-lv--b". */
char *identities_scrub_volume(const Identities *i, const char *name);

/* Returns a copy of a path or of an interface name, in which UUIDs and interface names like "enx001b213a4f2c" are
 * replaced. Recorded paths and targets of links are made by this function, so they still match each other. Exceptions
 * are paths with names that an admin chose (record_named()). NULL when out of memory; the caller frees. */
char *identities_scrub_path(const Identities *i, const char *path);

/* Writes a hash of the n bytes of s as 12 hex digits. Also does so if keep is set. */
void identities_write_hash(const Identities *i, const char *s, size_t n, FILE *f);
/* As identities_write_hash() for a string, but returns the digits. NULL when out of memory; the caller frees. */
char *identities_hash(const Identities *i, const char *s);

/* Replaces the hex digits of text in place, and keeps its separators ("0002:c903:00f5:1234"). A text of zeros stays. */
void identities_replace_digits(const Identities *i, char *text);
/* Replaces a binary serial number in place. */
void identities_replace_bytes(const Identities *i, unsigned char *bytes, size_t size);

/* Writes a kernel command line to f, with a hash for each value except values of keys that are known to be harmless.
 * Flags, keys and harmless values stay; identities_write() replaces identifiers in them. A hash replaces a word that is
 * not a valid flag or key. If keep is set, writes all unchanged. Modifies text. */
void cmdline_write(const Identities *i, char *text, FILE *f);
