/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Removes identifying values from a kernel command line. Values may contain anything, so only known keys keep theirs.
 */

#include "cmdline.h"

#include <ctype.h>
#include <fnmatch.h>

#define WORD_MAX 64U /* a longer word is not taken for a flag or a key */

/* Keys whose values stay: they matter for devices, their isolation, or the memory and CPUs of guests, or they identify
 * no machine. An extended pattern of fnmatch(). '_' also matches '-', as in the kernel. */
static const char harmless[] =
        "@(acpi*|amd_*|amdgpu.*|bnxt_en.*|cgroup*|clocksource|console|crashkernel|default_hugepagesz|"
        "earlycon|efi|hugepages*|i40e.*|i915.*|ice.*|idle|intel_*|intremap|iommu*|irqaffinity|"
        "isolcpus|ixgbe*.*|kernelcore|kvm*.*|loglevel|maxcpus|mem|memmap|mitigations|mlx4_*.*|"
        "mlx5_*.*|mlxfw.*|modprobe.blacklist|module_blacklist|movablecore|nohz*|nosmt|nouveau.*|"
        "nr_cpus|numa*|nvidia*.*|nvme.*|nvme_core.*|panic|pci|pci_stub.*|pcie*|possible_cpus|preempt|"
        "processor.*|qed*.*|rcu_nocb*|rd.driver.*|rootfstype|skew_tick|spectre*|split_lock_detect|"
        "swiotlb|transparent_hugepage*|tsc|tsx*|vfio*|vga|video|x2apic*|xe.*)";

static bool is_harmless(const char *key) {
        char name[WORD_MAX + 1];
        size_t n = strlen(key);

        for (size_t i = 0; i <= n; i++)
                name[i] = (char) (key[i] == '-' ? '_' : key[i]);
        return fnmatch(harmless, name, FNM_EXTMATCH) == 0;
}

static bool is_name(const char *s) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

        return n > 0 && n <= WORD_MAX && !s[n];
}

static int write_scrubbed(const Identities *i, const char *text, FILE *f) {
        _cleanup_free_ char *clean = identities_scrub(i, text, true);

        if (!clean)
                return -1;
        (void) fputs(clean, f);
        return 0;
}

/* A word without a value that may stay: "quiet" and "3", but not "192.0.2.1". After "--" only options may stay. */
static bool is_flag(const char *word, bool for_init) {
        return for_init ? word[0] == '-' : !isdigit((unsigned char) word[0]) || !word[1];
}

/* Modifies word. for_init: the word follows "--", so the kernel passes it to init. */
static int write_word(const Identities *i, char *word, bool for_init, FILE *f) {
        char *value = strchr(word, '=');

        if (value)
                *value++ = '\0';
        if (!is_name(word) || (!value && !is_flag(word, for_init))) {
                identities_write_hash(i, word, strlen(word), f);
                if (value)
                        (void) fputc('=', f);
        } else if (write_scrubbed(i, word, f) < 0)
                return -1;
        else if (value)
                (void) fputc('=', f);
        if (!value || !*value)
                return 0;
        if (is_name(word) && is_harmless(word))
                return write_scrubbed(i, value, f);
        identities_write_hash(i, value, strlen(value), f);
        return 0;
}

/* Quotes protect blanks. */
static size_t word_length(const char *s) {
        bool quoted = false;
        size_t n = 0;

        for (; s[n] && (quoted || !strchr(" \t\n", s[n])); n++)
                quoted = quoted != (s[n] == '"');
        return n;
}

static int write_words(const Identities *i, char *text, FILE *f) {
        bool for_init = false;

        while (*text) {
                size_t blank = strspn(text, " \t\n"), n;
                char *word = text + blank, end;
                int r;

                (void) fwrite(text, 1, blank, f);
                n = word_length(word);
                end = word[n];
                word[n] = '\0';
                for_init = for_init || streq(word, "--");
                r = n > 0 ? write_word(i, word, for_init, f) : 0;
                if (r < 0)
                        return r;
                word[n] = end;
                text = word + n;
        }
        return 0;
}

char *cmdline_scrub(const Identities *i, const char *text) {
        _cleanup_free_ char *words = strdup(text), *copy = NULL;
        size_t size;
        FILE *f;
        int r;

        if (i->keep || !words)
                return TAKE_PTR(words);
        f = open_memstream(&copy, &size);
        if (!f)
                return NULL;
        r = write_words(i, words, f);
        return fclose(f) == 0 && r == 0 ? TAKE_PTR(copy) : NULL;
}
