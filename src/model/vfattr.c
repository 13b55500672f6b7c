/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses and formats VF attributes. */

#include "model/vfattr.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "util/strings.h"
#include "util/stringtable.h"

#define MAC_OCTETS  6U
#define GUID_OCTETS 8U
#define VLAN_MAX    4094U
#define QOS_MAX     7U
#define TEXT_MAX    512U
#define TERM_MAX    (VF_VALUE_MAX + 32U) /* a space, the name, '=' and the value */

static const char *const on_off[] = { "off", "on" };
static const char *const protocols[_VF_PROTOCOL_MAX] = { "802.1q", "802.1ad" };
static const char *const links[_VF_LINK_MAX] = { "auto", "up", "down" };

/* How the value of an attribute is written: as octets with colons, as a word of a list, as a hexadecimal number, or as
 * a number up to max. */
static const struct Term {
        const char *name;
        unsigned octets;
        const char *const *words;
        size_t n_words;
        bool hex;
        uint64_t max;
        const char *expected;
} terms[_VF_ATTRIBUTE_MAX] = {
        [VF_MAC] = { "mac", .octets = MAC_OCTETS, .expected = "six octets, as in 02:00:00:00:00:01" },
        [VF_VLAN] = { "vlan", .max = VLAN_MAX, .expected = "a number from 0 to 4094" },
        [VF_QOS] = { "qos", .max = QOS_MAX, .expected = "a number from 0 to 7" },
        [VF_PROTOCOL] = { "protocol", .words = protocols, .n_words = _VF_PROTOCOL_MAX,
                          .expected = "802.1q or 802.1ad" },
        [VF_TRUST] = { "trust", .words = on_off, .n_words = 2, .expected = "on or off" },
        [VF_SPOOF_CHECK] = { "spoof-check", .words = on_off, .n_words = 2, .expected = "on or off" },
        [VF_MIN_RATE] = { "min-rate", .max = UINT32_MAX, .expected = "a number of Mbit/s" },
        [VF_MAX_RATE] = { "max-rate", .max = UINT32_MAX, .expected = "a number of Mbit/s" },
        [VF_LINK] = { "link", .words = links, .n_words = _VF_LINK_MAX, .expected = "auto, up or down" },
        [VF_NODE_GUID] = { "node-guid", .octets = GUID_OCTETS,
                           .expected = "eight octets, as in 02:00:00:00:00:00:00:01" },
        [VF_PORT_GUID] = { "port-guid", .octets = GUID_OCTETS,
                           .expected = "eight octets, as in 02:00:00:00:00:00:00:01" },
        [VF_SECOND_PORT_GUID] = { "second-port-guid", .octets = GUID_OCTETS,
                                  .expected = "eight octets, as in 02:00:00:00:00:00:00:01" },
        [VF_PKEY] = { "pkey", .hex = true, .max = UINT16_MAX, .expected = "a partition key, as in 0x8001" },
        [VF_SECOND_PORT_PKEY] = { "second-port-pkey", .hex = true, .max = UINT16_MAX,
                                  .expected = "a partition key, as in 0x8001" },
};

const char *vf_attribute_to_string(VfAttribute a) {
        return terms[a].name;
}

void vf_attributes_put(VfAttributes *v, VfAttribute a, uint64_t value) {
        v->set |= VF_ATTRIBUTE_BIT(a);
        v->value[a] = value;
}

void vf_attributes_merge(VfAttributes *v, const VfAttributes *over) {
        for (VfAttribute a = 0; a < _VF_ATTRIBUTE_MAX; a++)
                if (vf_attributes_have(over, a))
                        vf_attributes_put(v, a, over->value[a]);
}

unsigned vf_attributes_touched(unsigned mask) {
        return mask & VF_ATTRIBUTE_BIT(VF_VLAN) ? mask | VF_ATTRIBUTE_BIT(VF_QOS) | VF_ATTRIBUTE_BIT(VF_PROTOCOL)
                                                : mask;
}

void vf_attributes_keep(VfAttributes *v, unsigned mask) {
        v->set &= mask;
}

unsigned vf_attributes_differ(const VfAttributes *a, const VfAttributes *b) {
        unsigned bits = 0;

        for (VfAttribute i = 0; i < _VF_ATTRIBUTE_MAX; i++)
                if (vf_attributes_have(a, i) && (!vf_attributes_have(b, i) || a->value[i] != b->value[i]))
                        bits |= VF_ATTRIBUTE_BIT(i);
        return bits;
}

bool vf_attributes_have_identity(const VfAttributes *v, bool guid, uint64_t first, uint64_t last) {
        for (VfAttribute a = 0; a < _VF_ATTRIBUTE_MAX; a++)
                if (v->set & (guid ? VF_GUID_BITS : VF_ATTRIBUTE_BIT(VF_MAC)) & VF_ATTRIBUTE_BIT(a) &&
                    v->value[a] >= first && v->value[a] <= last)
                        return true;
        return false;
}

static int parse_octets(const char *text, unsigned octets, uint64_t *ret) {
        uint64_t value = 0;

        if (strlen(text) != 3U * octets - 1)
                return -EINVAL;
        for (unsigned i = 0; i < octets; i++) {
                char octet[3] = { text[3 * i], text[3 * i + 1], '\0' };
                uint64_t n;

                if ((i + 1 < octets && text[3 * i + 2] != ':') || strspn(octet, "0123456789abcdefABCDEF") != 2 ||
                    parse_hex(octet, UINT8_MAX, &n) < 0)
                        return -EINVAL;
                value = value << 8 | n;
        }
        *ret = value;
        return 0;
}

static int parse_word(const struct Term *t, const char *text, uint64_t *ret) {
        for (size_t i = 0; i < t->n_words; i++)
                if (streq(text, t->words[i])) {
                        *ret = i;
                        return 0;
                }
        return -EINVAL;
}

static int parse_value(const struct Term *t, const char *text, uint64_t *ret) {
        if (t->octets > 0)
                return parse_octets(text, t->octets, ret);
        if (t->words)
                return parse_word(t, text, ret);
        return t->hex ? parse_hex(text, t->max, ret) : parse_unsigned(text, t->max, ret);
}

/* Sets *ret to a sentence. The value of the expression is the error to return. */
#define problem(ret, ...) (string_replace((ret), __VA_ARGS__) < 0 ? -ENOMEM : -EINVAL)

static int parse_term(char *term, VfAttributes *v, char **ret_problem) {
        char *value = strchr(term, '=');

        if (!value)
                return problem(ret_problem, "'%s' is not ATTRIBUTE=VALUE, as in vlan=100.", QUOTABLE(term));
        *value++ = '\0';
        for (VfAttribute a = 0; a < _VF_ATTRIBUTE_MAX; a++) {
                uint64_t n;

                if (!streq(term, terms[a].name))
                        continue;
                if (vf_attributes_have(v, a))
                        return problem(ret_problem, "'%s' is given twice.", term);
                if (parse_value(&terms[a], value, &n) < 0)
                        return problem(ret_problem, "%s=%s is not understood: expected %s.", term, QUOTABLE(value),
                                       terms[a].expected);
                vf_attributes_put(v, a, n);
                return 0;
        }
        return problem(ret_problem,
                       "There is no VF attribute '%s'; known: mac, vlan, qos, protocol, trust, spoof-check, min-rate, "
                       "max-rate, link, node-guid, port-guid, second-port-guid, pkey, second-port-pkey.",
                       QUOTABLE(term));
}

int vf_attributes_parse(const char *text, VfAttributes *ret, char **ret_problem) {
        VfAttributes v = { 0 };
        char copy[TEXT_MAX], *save = NULL;

        if (strlen(text) >= sizeof(copy))
                return problem(ret_problem, "The VF attributes are longer than %u bytes.", TEXT_MAX - 1);
        (void) strcpy(copy, text);
        for (char *term = strtok_r(copy, " \t,", &save); term; term = strtok_r(NULL, " \t,", &save)) {
                int r = parse_term(term, &v, ret_problem);

                if (r < 0)
                        return r;
        }
        *ret = v;
        return 0;
}

/* Returns true for a group (multicast) address: the lowest bit of its first octet is set. */
static bool is_group(uint64_t mac) {
        return mac >> (8 * (MAC_OCTETS - 1)) & 1;
}

static int check_wanted(const VfAttributes *v, char **ret_problem) {
        if (vf_attributes_have(v, VF_MAC) && (v->value[VF_MAC] == 0 || is_group(v->value[VF_MAC])))
                return problem(ret_problem, "mac= must be a unicast address other than zero.");
        for (VfAttribute a = 0; a < _VF_ATTRIBUTE_MAX; a++)
                if (v->set & VF_GUID_BITS & VF_ATTRIBUTE_BIT(a) && (v->value[a] == 0 || v->value[a] == UINT64_MAX))
                        return problem(ret_problem, "%s= can be neither all zeros nor all ones.", terms[a].name);
        if ((vf_attributes_have(v, VF_QOS) || vf_attributes_have(v, VF_PROTOCOL)) &&
            (!vf_attributes_have(v, VF_VLAN) || v->value[VF_VLAN] == 0))
                return problem(ret_problem, "qos= and protocol= need vlan= too.");
        if (vf_attributes_have(v, VF_MIN_RATE) && vf_attributes_have(v, VF_MAX_RATE) && v->value[VF_MAX_RATE] > 0 &&
            v->value[VF_MIN_RATE] > v->value[VF_MAX_RATE])
                return problem(ret_problem, "min-rate= is more than max-rate=.");
        return 0;
}

int vf_attributes_parse_wanted(const char *text, VfAttributes *ret, char **ret_problem) {
        VfAttributes v;
        int r = vf_attributes_parse(text, &v, ret_problem);

        if (r < 0)
                return r;
        r = check_wanted(&v, ret_problem);
        if (r < 0)
                return r;
        *ret = v;
        return r;
}

static void format_octets(uint64_t value, unsigned octets, char *at) {
        for (unsigned i = octets; i > 0; i--) {
                at = format_hex(at, value >> (8 * (i - 1)) & 0xff, 2);
                *at++ = i > 1 ? ':' : '\0';
        }
}

const char *vf_value_format(VfAttribute a, uint64_t value, char buf[static VF_VALUE_MAX]) {
        const struct Term *t = &terms[a];

        if (t->octets > 0)
                format_octets(value, t->octets, buf);
        else if (t->words && value < t->n_words)
                (void) snprintf(buf, VF_VALUE_MAX, "%s", t->words[value]);
        else
                (void) snprintf(buf, VF_VALUE_MAX, t->hex ? "0x%04" PRIx64 : "%" PRIu64, value);
        return buf;
}

char *vf_attributes_format(const VfAttributes *v) {
        char text[_VF_ATTRIBUTE_MAX * TERM_MAX] = "", value[VF_VALUE_MAX], *at = text;

        for (VfAttribute a = 0; a < _VF_ATTRIBUTE_MAX; a++)
                if (vf_attributes_have(v, a))
                        at += snprintf(at, TERM_MAX, "%s%s=%s", at > text ? " " : "", terms[a].name,
                                       vf_value_format(a, v->value[a], value));
        return strdup(text);
}
