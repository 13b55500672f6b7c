/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Which words of the kernel command line may be shown. Anybody can invent a key, so those are named that are known. */

#include "cmdline.h"

#include <ctype.h>
#include <fnmatch.h>

#define WORD_MAX 64U /* a longer one is no flag or key */

/* Of these the value stays: what a device, its isolation or the memory and CPUs of guests depend on, and what tells
 * nothing of a machine. As the kernel has it, '-' and '_' are the same. */
static const char *const harmless[] = {
        "acpi*",
        "amd_*",
        "amdgpu.*",
        "bnxt_en.*",
        "cgroup*",
        "clocksource",
        "console",
        "crashkernel",
        "default_hugepagesz",
        "earlycon",
        "efi",
        "hugepages*",
        "i40e.*",
        "i915.*",
        "ice.*",
        "idle",
        "intel_*",
        "intremap",
        "iommu*",
        "irqaffinity",
        "isolcpus",
        "ixgbe*.*",
        "kernelcore",
        "kvm*.*",
        "loglevel",
        "maxcpus",
        "mem",
        "memmap",
        "mitigations",
        "mlx4_*.*",
        "mlx5_*.*",
        "mlxfw.*",
        "modprobe.blacklist",
        "module_blacklist",
        "movablecore",
        "nohz*",
        "nosmt",
        "nouveau.*",
        "nr_cpus",
        "numa*",
        "nvidia*.*",
        "nvme.*",
        "nvme_core.*",
        "panic",
        "pci",
        "pci_stub.*",
        "pcie*",
        "possible_cpus",
        "preempt",
        "processor.*",
        "qed*.*",
        "rcu_nocb*",
        "rd.driver.*",
        "rootfstype",
        "skew_tick",
        "spectre*",
        "split_lock_detect",
        "swiotlb",
        "transparent_hugepage*",
        "tsc",
        "tsx*",
        "vfio*",
        "vga",
        "video",
        "x2apic*",
        "xe.*",
};

static bool is_harmless(const char *key) {
        char name[WORD_MAX + 1];
        size_t n = strlen(key);

        for (size_t i = 0; i <= n; i++)
                name[i] = (char) (key[i] == '-' ? '_' : key[i]);
        for (size_t i = 0; i < ELEMENTSOF(harmless); i++)
                if (fnmatch(harmless[i], name, 0) == 0)
                        return true;
        return false;
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

/* "quiet", "3"; not "192.0.2.1", and of what the first process is started with only its options. */
static bool is_flag(const char *word, bool of_init) {
        return of_init ? word[0] == '-' : !isdigit((unsigned char) word[0]) || !word[1];
}

/* Cuts word up. of_init: it comes after "--". */
static int write_word(const Identities *i, char *word, bool of_init, FILE *f) {
        char *value = strchr(word, '=');

        if (value)
                *value++ = '\0';
        if (!is_name(word) || (!value && !is_flag(word, of_init))) {
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

/* Blanks between quotes are a part of the word. */
static size_t word_length(const char *s) {
        bool quoted = false;
        size_t n = 0;

        for (; s[n] && (quoted || !strchr(" \t\n", s[n])); n++)
                quoted = quoted != (s[n] == '"');
        return n;
}

static int write_words(const Identities *i, char *text, FILE *f) {
        bool of_init = false;

        while (*text) {
                size_t blank = strspn(text, " \t\n"), n;
                char *word = text + blank, end;
                int r;

                (void) fwrite(text, 1, blank, f);
                n = word_length(word);
                end = word[n];
                word[n] = '\0';
                of_init = of_init || streq(word, "--");
                r = n > 0 ? write_word(i, word, of_init, f) : 0;
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
