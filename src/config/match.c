/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The Match= lines of the configuration: parses their terms, and compares them with a device. */

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>

#include "config/config.h"
#include "util/strings.h"

#define NUMA_NODE_MAX 65535U
#define ADDRESS_GLOB  "0123456789abcdef:.*?[]-!"
#define WILDCARDS     "*?["

static void match_init(Match *m) {
        *m = (Match) {
                .vendor = -1, .device = -1, .subsystem_vendor = -1, .subsystem_device = -1, .type = -1, .numa = -1
        };
}

void match_done(Match *m) {
        free(m->address);
        free(m->pf);
        free(m->class);
        match_init(m);
}

/* Parses a glob for an address. If it has no wildcard, the address must be complete, because the short form "01:00.0"
 * of lspci would never match. */
static int parse_glob(const char *value, char **ret) {
        PciAddress a;

        if (!*value || value[strspn(value, ADDRESS_GLOB)])
                return -EINVAL;
        if (!strpbrk(value, WILDCARDS) && pci_address_parse(value, &a) < 0)
                return -EINVAL;
        return string_copy(ret, value);
}

static int parse_id(const char *value, int *ret) {
        uint64_t n;
        int r = parse_hex(value, UINT16_MAX, &n);

        if (r < 0)
                return r;
        *ret = (int) n;
        return 0;
}

/* Parses the value "VVVV:DDDD" of id= or subsystem=. */
static int parse_id_pair(const char *value, int *ret_vendor, int *ret_device) {
        const char *colon = strchr(value, ':');
        char vendor[8] = { 0 };
        int r;

        if (!colon || (size_t) (colon - value) >= sizeof(vendor))
                return -EINVAL;
        memcpy(vendor, value, (size_t) (colon - value));
        r = parse_id(vendor, ret_vendor);
        if (r < 0)
                return r;
        return parse_id(colon + 1, ret_device);
}

static int term_address(Match *m, const char *value) {
        return parse_glob(value, &m->address);
}

static int term_pf(Match *m, const char *value) {
        return parse_glob(value, &m->pf);
}

/* Sets the vendor, which both vendor= and id= contain. If a line has both, their vendors must agree, because the line
 * could never match otherwise. */
static int set_vendor(Match *m, int vendor) {
        if (m->vendor >= 0 && m->vendor != vendor)
                return -EINVAL;
        m->vendor = vendor;
        return 0;
}

static int term_vendor(Match *m, const char *value) {
        int vendor, r = parse_id(value, &vendor);

        return r < 0 ? r : set_vendor(m, vendor);
}

static int term_id(Match *m, const char *value) {
        int vendor, r = parse_id_pair(value, &vendor, &m->device);

        return r < 0 ? r : set_vendor(m, vendor);
}

static int term_subsystem(Match *m, const char *value) {
        if (!strchr(value, ':'))
                return parse_id(value, &m->subsystem_vendor);
        return parse_id_pair(value, &m->subsystem_vendor, &m->subsystem_device);
}

static int term_class(Match *m, const char *value) {
        size_t len;
        int r;

        if (strncmp(value, "0x", 2) == 0)
                value += 2;
        len = strlen(value);
        if (len == 0 || len > 6 || strspn(value, "0123456789abcdefABCDEF") != len)
                return -EINVAL;

        r = string_copy(&m->class, value);
        if (r < 0)
                return r;
        for (char *p = m->class; *p; p++)
                *p = (char) tolower(*p);
        return 0;
}

static int term_type(Match *m, const char *value) {
        for (int t = 0; t < _PCI_TYPE_MAX; t++)
                if (streq(pci_type_to_string((PciType) t), value)) {
                        m->type = t;
                        return 0;
                }
        return -EINVAL;
}

static int term_numa(Match *m, const char *value) {
        uint64_t n;
        int r = parse_unsigned(value, NUMA_NODE_MAX, &n);

        if (r < 0)
                return r;
        m->numa = (int) n;
        return 0;
}

#define EXPECT_ADDRESS "a whole address as in 0000:3b:00.0, lower case, or a pattern with * ? [] for it"

static const struct Term {
        const char *name;
        int (*parse)(Match *m, const char *value);
        const char *expected;
} terms[] = {
        { "address", term_address, EXPECT_ADDRESS },
        { "pf", term_pf, EXPECT_ADDRESS },
        { "id", term_id, "VENDOR:DEVICE in hexadecimal, as in 15b3:101c, and the same vendor as in vendor=" },
        { "vendor", term_vendor, "a vendor id in hexadecimal, as in 10de, and the same as in id=" },
        { "subsystem", term_subsystem, "VENDOR or VENDOR:DEVICE in hexadecimal, as in 10de:1463" },
        { "class", term_class, "the first one to six hexadecimal digits of a class, as in 0302" },
        { "type", term_type, "device, pf or vf" },
        { "numa", term_numa, "the number of a NUMA node" },
};

static const struct Term *find_term(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(terms); i++)
                if (streq(terms[i].name, name))
                        return &terms[i];
        return NULL;
}

/* Sets *ret to a sentence. The value of the expression is the error to return. */
#define problem(ret, ...) (string_replace((ret), __VA_ARGS__) < 0 ? -ENOMEM : -EINVAL)

/* Parses one term. seen: a bit for each term of the line so far, because a term may occur only once. */
static int parse_term(Match *m, char *text, unsigned *seen, char **ret_problem) {
        char *value = strchr(text, '=');
        const struct Term *term;
        unsigned kind;
        int r;

        if (!value)
                return problem(ret_problem,
                               "'%s' in Match= is not a term: write TERM=VALUE without spaces around the '='.", text);
        *value++ = 0;

        term = find_term(text);
        if (!term)
                return problem(ret_problem,
                               "Unknown term '%s=' in Match=; known are address=, pf=, id=, vendor=, subsystem=, "
                               "class=, type= and numa=.",
                               text);
        kind = 1U << (term - terms);
        if (*seen & kind)
                return problem(ret_problem, "Match= sets %s= twice; use a second Match= line for an alternative.",
                               text);
        *seen |= kind;

        r = term->parse(m, value);
        if (r < 0 && r != -ENOMEM)
                return problem(ret_problem, "%s=%s in Match= is not understood: expected %s.", text, value,
                               term->expected);
        return r;
}

int match_parse(const char *text, Match *ret, char **ret_problem) {
        _cleanup_free_ char *copy = strdup(text);
        char *position = NULL;
        unsigned seen = 0;
        Match m;

        if (!copy)
                return -ENOMEM;

        match_init(&m);
        for (char *t = strtok_r(copy, " \t", &position); t; t = strtok_r(NULL, " \t", &position)) {
                int r = parse_term(&m, t, &seen, ret_problem);

                if (r < 0) {
                        match_done(&m);
                        return r;
                }
        }
        if (!seen)
                return problem(ret_problem,
                               "Match= without a term would match every device; write address=* if that is meant.");

        *ret = m;
        return 0;
}

static bool glob_matches(const char *glob, PciAddress a) {
        return fnmatch(glob, PCI_ADDRESS_STR(a), 0) == 0;
}

static bool class_matches(const char *prefix, uint32_t class) {
        char text[16];

        (void) snprintf(text, sizeof(text), "%06x", class);
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool number_matches(int wanted, int value) {
        return wanted < 0 || wanted == value;
}

bool match_device(const Match *m, const PciDevice *dev) {
        return number_matches(m->vendor, dev->vendor) && number_matches(m->device, dev->device) &&
               number_matches(m->subsystem_vendor, dev->subsystem_vendor) &&
               number_matches(m->subsystem_device, dev->subsystem_device) && number_matches(m->type, (int) dev->type) &&
               number_matches(m->numa, dev->numa_node) && (!m->class || class_matches(m->class, dev->class)) &&
               (!m->address || glob_matches(m->address, dev->address)) &&
               (!m->pf || (dev->type == PCI_TYPE_VF && glob_matches(m->pf, dev->physfn)));
}

const Match *match_any(const Match *matches, size_t n, const PciDevice *dev) {
        for (size_t i = 0; i < n; i++)
                if (match_device(&matches[i], dev))
                        return &matches[i];
        return NULL;
}
