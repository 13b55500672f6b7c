/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Keyed replacement of serial numbers, MAC addresses, UUIDs and names. The hash is SipHash-2-4. */

#include <ctype.h>
#include <errno.h>
#include <sys/random.h>

#include "replay/identity.h"

#define UUID_LENGTH 36U
#define MAC_LENGTH  17U
#define HOST_MIN    3U /* shorter names would be found everywhere */

static uint64_t rotate(uint64_t x, unsigned n) {
        return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[static 4]) {
        v[0] += v[1];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[0] = rotate(v[0], 32);
        v[2] += v[3];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
}

static uint64_t sip_hash(const uint64_t key[static 2], const void *data, size_t size) {
        uint64_t v[4] = { key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                          key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573) };
        const unsigned char *bytes = data;

        for (size_t at = 0; at <= size; at += 8) {
                uint64_t word = size - at < 8 ? (uint64_t) size << 56 : 0;

                for (size_t i = 0; i < 8 && at + i < size; i++)
                        word |= (uint64_t) bytes[at + i] << 8 * i;
                v[3] ^= word;
                sip_round(v);
                sip_round(v);
                v[0] ^= word;
        }
        v[2] ^= 0xff;
        for (unsigned i = 0; i < 4; i++)
                sip_round(v);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int identities_init(Identities *i, bool keep, const char *host) {
        *i = (Identities){ .keep = keep };
        if (getrandom(i->key, sizeof(i->key), 0) != sizeof(i->key))
                return -EIO;
        if (host && strlen(host) >= HOST_MIN && !streq(host, "localhost") && !(i->host = strdup(host)))
                return -ENOMEM;
        return 0;
}

void identities_done(Identities *i) {
        explicit_bzero(i->key, sizeof(i->key));
        free(i->host);
        i->host = NULL;
}

/* Hex digits of text replaced by those of the hash of all of them; n is how many bytes of text. */
static void replace_digits(const Identities *i, char *text, size_t n) {
        char digits[64];
        size_t used = 0, at = 0;
        uint64_t hash = 0;
        bool zero = true;

        for (size_t j = 0; j < n && used < sizeof(digits); j++)
                if (isxdigit((unsigned char) text[j])) {
                        digits[used++] = (char) tolower((unsigned char) text[j]);
                        zero = zero && text[j] == '0';
                }
        if (zero)
                return;
        for (size_t j = 0; j < n; j++) {
                if (!isxdigit((unsigned char) text[j]))
                        continue;
                if (at % 16 == 0) { /* further digits come from the hash of the value and their place */
                        digits[0] = (char) (digits[0] + (at > 0));
                        hash = sip_hash(i->key, digits, used);
                }
                text[j] = "0123456789abcdef"[hash >> 4 * (at % 16) & 0xf];
                at++;
        }
}

void identities_replace_digits(const Identities *i, char *text) {
        if (!i->keep)
                replace_digits(i, text, strlen(text));
}

void identities_replace_bytes(const Identities *i, unsigned char *bytes, size_t size) {
        uint64_t hash = sip_hash(i->key, bytes, size);

        for (size_t j = 0; j < size && !i->keep; j++)
                bytes[j] = (unsigned char) (hash >> 8 * (j % 8));
}

/* Two hex digits, a colon, and so on. */
static bool is_mac(const char *s) {
        for (size_t i = 0; i < MAC_LENGTH; i++)
                if (i % 3 == 2 ? s[i] != ':' : !isxdigit((unsigned char) s[i]))
                        return false;
        return !isxdigit((unsigned char) s[MAC_LENGTH]) && s[MAC_LENGTH] != ':';
}

static bool is_uuid(const char *s) {
        for (size_t i = 0; i < UUID_LENGTH; i++)
                if (i == 8 || i == 13 || i == 18 || i == 23 ? s[i] != '-' : !isxdigit((unsigned char) s[i]))
                        return false;
        return !isalnum((unsigned char) s[UUID_LENGTH]);
}

/* udev's last resort for the name of an interface, "enx001b213a4f2c": how much comes before the digits. */
static size_t mac_name(const char *s) {
        if ((strncmp(s, "enx", 3) != 0 && strncmp(s, "wlx", 3) != 0) || strspn(s + 3, "0123456789abcdef") != 12)
                return 0;
        return 3;
}

/* A word that gives a name: how much of it comes before the name. "PARTUUID=" and "PARTLABEL=" too. */
static size_t named(const char *s, bool word_before) {
        static const char *const keys[] = { "UUID=",   "LABEL=",      "hostname=",     "ip=",      "nfsroot=", "uuid=",
                                            "BOOTIF=", "nameserver=", "rd.luks.name=", "netroot=", "ifname=" };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if ((!word_before || i < 2) && strncmp(s, keys[i], strlen(keys[i])) == 0)
                        return strlen(keys[i]);
        return 0;
}

static bool is_word(char c) {
        return isalnum((unsigned char) c) || c == '-';
}

static void write_hash(const Identities *i, const char *s, size_t n, FILE *f) {
        (void) fprintf(f, "%012llx", (unsigned long long) sip_hash(i->key, s, n) & 0xffffffffffffULL);
}

static void write_replaced(const Identities *i, const char *s, size_t skip, size_t n, FILE *f) {
        char text[UUID_LENGTH + 1];

        (void) fwrite(s, 1, skip, f);
        memcpy(text, s + skip, n);
        text[n] = '\0';
        replace_digits(i, text, n);
        (void) fputs(text, f);
}

/* Writes what s begins with, replaced; returns how much of s that was. */
static size_t write_identity(const Identities *i, const char *s, bool word_before, bool with_host, FILE *f) {
        size_t host = i->host && with_host ? strlen(i->host) : 0, skip;

        if (!word_before && is_uuid(s))
                return write_replaced(i, s, 0, UUID_LENGTH, f), UUID_LENGTH;
        if (!word_before && is_mac(s))
                return write_replaced(i, s, 0, MAC_LENGTH, f), MAC_LENGTH;
        skip = word_before ? 0 : mac_name(s);
        if (skip > 0)
                return write_replaced(i, s, skip, 12, f), skip + 12;
        skip = named(s, word_before);
        if (skip > 0) {
                size_t n = strcspn(s + skip, " \t\n/\"',");

                (void) fwrite(s, 1, skip, f);
                if (is_uuid(s + skip) && n == UUID_LENGTH)
                        write_replaced(i, s + skip, 0, n, f);
                else if (n > 0)
                        write_hash(i, s + skip, n, f);
                return skip + n;
        }
        if (host == 0 || word_before || strncasecmp(s, i->host, host) != 0 || is_word(s[host]))
                return 0;
        write_hash(i, i->host, host, f);
        return host;
}

char *identities_scrub(const Identities *i, const char *text, bool with_host) {
        char *copy = NULL;
        size_t size;
        bool word = false;
        FILE *f;

        if (i->keep)
                return strdup(text);
        f = open_memstream(&copy, &size);
        if (!f)
                return NULL;
        while (*text) {
                size_t n = write_identity(i, text, word, with_host, f);

                if (n == 0) {
                        (void) fputc(*text, f);
                        n = 1;
                }
                word = is_word(text[n - 1]);
                text += n;
        }
        if (fclose(f) != 0) {
                free(copy);
                return NULL;
        }
        return copy;
}
