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

/* A word without a value that may stay: "quiet" and "3", but not "192.0.2.1". After "--" only options may stay. */
static bool is_flag(const char *word, bool for_init) {
        return for_init ? word[0] == '-' : !isdigit((unsigned char) word[0]) || !word[1];
}

static void write_part(const Identities *i, const char *part, bool stays, FILE *f) {
        if (stays)
                identities_write(i, part, true, f);
        else
                identities_write_hash(i, part, strlen(part), f);
}

/* Modifies word. for_init: the word follows "--", so the kernel passes it to init. */
static void write_word(const Identities *i, char *word, bool for_init, FILE *f) {
        char *value = strchr(word, '=');

        if (value)
                *value++ = '\0';
        write_part(i, word, is_name(word) && (value || is_flag(word, for_init)), f);
        if (value)
                (void) fputc('=', f);
        if (value && *value)
                write_part(i, value, is_name(word) && is_harmless(word), f);
}

/* Quotes protect blanks. */
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
                        write_word(i, word, for_init, f);
                word[n] = end;
                text = word + n;
        }
}
