/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replaces serial numbers, MAC addresses, UUIDs and names by a keyed hash, SipHash-2-4. */

#include "identity.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <sys/random.h>

#include "util/strings.h"

#define UUID_LENGTH 36U
#define MAC_LENGTH  17U
#define HOST_MIN    3U /* shorter host names would occur in other words too often */

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

int identities_init(Identities *i, bool keep, const char *name) {
        size_t n = name ? strcspn(name, ".") : 0;

        *i = (Identities) { .keep = keep };
        if (getrandom(i->key, sizeof(i->key), 0) != sizeof(i->key))
                return -EIO;
        if (n < HOST_MIN || (n == strlen("localhost") && strncmp(name, "localhost", n) == 0))
                return 0;
        i->host = strndup(name, n);
        i->domain = strdup(name + n);
        return i->host && i->domain ? 0 : -ENOMEM;
}

void identities_done(Identities *i) {
        explicit_bzero(i->key, sizeof(i->key));
        free(TAKE_PTR(i->host));
        free(TAKE_PTR(i->domain));
}

/* Replaces the hex digits in the first n bytes of text. The new digits are those of a hash over all old ones. Digits
 * that are all zero stay. */
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
                if (at % 16 == 0) { /* a hash yields 16 digits: change the input for the next 16 */
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

/* Returns true for six pairs of hex digits with colons or dashes between them. A longer sequence is no MAC address. */
static bool is_mac(const char *s) {
        for (size_t i = 0; i < MAC_LENGTH; i++)
                if (i % 3 == 2 ? (s[i] != ':' && s[i] != '-') || s[i] != s[2] : !isxdigit((unsigned char) s[i]))
                        return false;
        if (s[MAC_LENGTH] == s[2])
                return !isxdigit((unsigned char) s[MAC_LENGTH + 1]);
        return !isalnum((unsigned char) s[MAC_LENGTH]);
}

static bool is_uuid(const char *s) {
        for (size_t i = 0; i < UUID_LENGTH; i++)
                if (i == 8 || i == 13 || i == 18 || i == 23 ? s[i] != '-' : !isxdigit((unsigned char) s[i]))
                        return false;
        return !isalnum((unsigned char) s[UUID_LENGTH]);
}

/* Returns 12, 16 or 32 if a number of so many hex digits begins at s: it may be a MAC address, a GUID or a machine ID
 * without separators. Else returns 0. decimal: also accepts a number without letters. */
static size_t bare_digits(const char *s, bool decimal) {
        size_t n = strspn(s, "0123456789abcdefABCDEF");

        if ((n != 12 && n != 16 && n != 32) || isalnum((unsigned char) s[n]))
                return 0;
        return decimal || strspn(s, "0123456789") < n ? n : 0;
}

/* Returns 3, the length of "enx", if s begins with an interface name that udev made of a MAC address, such as
 * "enx001b213a4f2c"; else 0. */
static size_t mac_name(const char *s) {
        static const char types[][3] = { "en", "ib", "sl", "wl", "ww" };

        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (strncmp(s, types[i], 2) == 0 && s[2] == 'x' && strspn(s + 3, "0123456789abcdef") == 12)
                        return 3;
        return 0;
}

/* Returns the length of a key at s whose value identifies a file system, "UUID=" or "LABEL="; else 0. This also finds
 * the end of "PARTUUID=" and "PARTLABEL=". */
static size_t identity_key(const char *s) {
        static const char *const keys[] = { "UUID=", "LABEL=" };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (strncmp(s, keys[i], strlen(keys[i])) == 0)
                        return strlen(keys[i]);
        return 0;
}

/* Returns the length of the host name at s, with the domain if that follows; else 0. */
static size_t host_name(const Identities *i, const char *s) {
        size_t host = strlen(i->host), domain = strlen(i->domain);

        if (strncasecmp(s, i->host, host) != 0 || isalnum((unsigned char) s[host]))
                return 0;
        return host + (strncasecmp(s + host, i->domain, domain) == 0 ? domain : 0);
}

#define HASH_FORMAT   "%012llx"
#define HASH(i, s, n) ((unsigned long long) sip_hash((i)->key, (s), (n)) & 0xffffffffffffULL)

void identities_write_hash(const Identities *i, const char *s, size_t n, FILE *f) {
        (void) fprintf(f, HASH_FORMAT, HASH(i, s, n));
}

char *identities_hash(const Identities *i, const char *s) {
        return string_format(HASH_FORMAT, HASH(i, s, strlen(s)));
}

static void write_replaced(const Identities *i, const char *s, size_t skip, size_t n, FILE *f) {
        char text[UUID_LENGTH + 1];

        (void) fwrite(s, 1, skip, f);
        memcpy(text, s + skip, n);
        text[n] = '\0';
        replace_digits(i, text, n);
        (void) fputs(text, f);
}

static size_t write_key_value(const Identities *i, const char *s, size_t skip, FILE *f) {
        size_t n = strcspn(s + skip, " \t\n/\"',");

        (void) fwrite(s, 1, skip, f);
        if (is_uuid(s + skip) && n == UUID_LENGTH)
                write_replaced(i, s + skip, 0, n, f);
        else if (n > 0)
                identities_write_hash(i, s + skip, n, f);
        return skip + n;
}

/* If an identifier begins at s, writes its replacement and returns its length; else returns 0. inside: s continues a
 * word, so that only a key ("UUID=") can begin at s. */
static size_t write_identity(const Identities *i, const char *s, bool inside, bool with_host, FILE *f) {
        size_t skip = identity_key(s), n;

        if (skip > 0)
                return write_key_value(i, s, skip, f);
        if (inside)
                return 0;
        if (is_uuid(s))
                return write_replaced(i, s, 0, UUID_LENGTH, f), UUID_LENGTH;
        if (is_mac(s))
                return write_replaced(i, s, 0, MAC_LENGTH, f), MAC_LENGTH;
        skip = mac_name(s);
        if (skip > 0)
                return write_replaced(i, s, skip, 12, f), skip + 12;
        skip = strncmp(s, "0x", 2) == 0 ? 2 : 0;
        n = bare_digits(s + skip, with_host);
        if (n > 0)
                return write_replaced(i, s, skip, n, f), skip + n;
        n = i->host && with_host ? host_name(i, s) : 0;
        if (n > 0)
                identities_write_hash(i, i->host, strlen(i->host), f);
        return n;
}

void identities_write(const Identities *i, const char *text, bool with_host, FILE *f) {
        bool inside = false;

        while (*text) {
                size_t n = i->keep ? 0 : write_identity(i, text, inside, with_host, f);

                if (n == 0) {
                        (void) fputc(*text, f);
                        n = 1;
                }
                inside = isalnum((unsigned char) text[n - 1]);
                text += n;
        }
}

char *identities_scrub(const Identities *i, const char *text, bool with_host) {
        _cleanup_free_ char *copy = NULL;
        size_t size;
        FILE *f = open_memstream(&copy, &size);

        if (!f)
                return NULL;
        identities_write(i, text, with_host, f);
        return fclose(f) == 0 ? TAKE_PTR(copy) : NULL;
}

char *identities_scrub_volume(const Identities *i, const char *name) {
        _cleanup_free_ char *plain = NULL, *scrubbed = NULL;
        char *copy, *to;

        if (!strstr(name, "--"))
                return identities_scrub(i, name, true);
        plain = to = strdup(name);
        if (!plain)
                return NULL;
        for (const char *p = name; *p; p++) {
                bool is_double = p[0] == '-' && p[1] == '-';

                *to++ = *p == '-' && !is_double ? '/' : *p;
                p += is_double;
        }
        *to = '\0';
        scrubbed = identities_scrub(i, plain, true);
        copy = to = scrubbed ? malloc(2 * strlen(scrubbed) + 1) : NULL;
        if (!copy)
                return NULL;
        for (const char *p = scrubbed; *p; p++)
                to = stpcpy(to, *p == '-' ? "--" : *p == '/' ? "-" : (char[]) { *p, '\0' });
        *to = '\0';
        return copy;
}

char *identities_scrub_path(const Identities *i, const char *path) {
        char *copy = strdup(path);
        bool inside = false;

        for (char *p = copy; p && *p && !i->keep; p++) {
                size_t skip = inside ? 0 : mac_name(p), n = skip > 0 ? 12 : !inside && is_uuid(p) ? UUID_LENGTH : 0;

                replace_digits(i, p + skip, n);
                p += n > 0 ? skip + n - 1 : 0;
                inside = isalnum((unsigned char) *p);
        }
        return copy;
}

/* Removes identifying values from a kernel command line. Values may contain anything, so only known keys keep theirs.
 */

#define WORD_MAX 64U /* a longer word counts as neither a flag nor a key */

/* Keys whose values are kept, because they matter for devices, their isolation, or the memory and CPUs of guests, or
 * identify no machine. An extended pattern of fnmatch(). '_' also matches '-', as in the kernel. */
static const char harmless[] =
        "@(acpi*|amd_*|amdgpu.*|bnxt_en.*|cgroup*|clocksource|console|crashkernel|default_hugepagesz|"
        "earlycon|efi|hugepages*|i40e.*|i915.*|ice.*|idle|intel_*|intremap|iommu*|irqaffinity|"
        "isolcpus|ixgbe*.*|kernelcore|kvm*.*|loglevel|maxcpus|mem|memmap|mitigations|mlx4_*.*|"
        "mlx5_*.*|mlxfw.*|modprobe.blacklist|module_blacklist|movablecore|nohz*|nosmt|nouveau.*|"
        "nr_cpus|numa*|nvidia*.*|nvme.*|nvme_core.*|panic|pci|pci_stub.*|pcie*|possible_cpus|preempt|"
        "processor.*|qed*.*|rcu_nocb*|rd.driver.*|rootfstype|skew_tick|spectre*|split_lock_detect|"
        "swiotlb|transparent_hugepage*|tsc|tsx*|vfio*|vga|video|x2apic*|xe.*)";

static bool is_harmless_key(const char *key) {
        char name[WORD_MAX + 1];
        size_t n = strlen(key);

        for (size_t i = 0; i <= n; i++)
                name[i] = (char) (key[i] == '-' ? '_' : key[i]);
        return fnmatch(harmless, name, FNM_EXTMATCH) == 0;
}

static bool is_cmdline_name(const char *s) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

        return n > 0 && n <= WORD_MAX && !s[n];
}

/* `word` has no '='. Returns true when the recording may have it unchanged: "quiet" and "3", but not "192.0.2.1". A
 * word for init, which follows "--", must begin with a dash. */
static bool is_cmdline_flag(const char *word, bool for_init) {
        return for_init ? word[0] == '-' : !isdigit((unsigned char) word[0]) || !word[1];
}

static void write_cmdline_part(const Identities *i, const char *part, bool stays, FILE *f) {
        if (stays)
                identities_write(i, part, true, f);
        else
                identities_write_hash(i, part, strlen(part), f);
}

/* Writes a word of the command line; modifies it. for_init: the word follows "--", so the kernel passes it to init. */
static void write_cmdline_word(const Identities *i, char *word, bool for_init, FILE *f) {
        char *value = strchr(word, '=');
        bool is_harmless;

        if (value)
                *value++ = '\0';
        write_cmdline_part(i, word, is_cmdline_name(word) && (value || is_cmdline_flag(word, for_init)), f);
        if (!value)
                return;
        (void) fputc('=', f);
        is_harmless = is_cmdline_name(word) && is_harmless_key(word);
        if (is_harmless && !value[strspn(value, "0123456789")]) /* "mem=137438953472": 12 digits, but no identifier */
                (void) fputs(value, f);
        else if (*value)
                write_cmdline_part(i, value, is_harmless, f);
}

/* Returns the length of the word at s. Blanks between quotes belong to the word. */
static size_t word_length(const char *s) {
        bool quoted = false;
        size_t n = 0;

        for (; s[n] && (quoted || !strchr(" \t\n", s[n])); n++)
                quoted = quoted != (s[n] == '"');
        return n;
}

void cmdline_write(const Identities *i, char *text, FILE *f) {
        bool for_init = false;

        if (i->keep)
                (void) fputs(text, f);
        while (!i->keep && *text) {
                size_t blank = strspn(text, " \t\n"), n;
                char *word = text + blank, end;

                (void) fwrite(text, 1, blank, f);
                n = word_length(word);
                end = word[n];
                word[n] = '\0';
                for_init = for_init || streq(word, "--");
                if (n > 0)
                        write_cmdline_word(i, word, for_init, f);
                word[n] = end;
                text = word + n;
        }
}
