/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Marks the devices of each network interface that has a default route, a route to a noted address or the noted address
 * itself, or that KeepInterfaces= names. critical_note_address() notes addresses. */

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fnmatch.h>
#include <net/if.h>
#include <stdio.h>

#include "critical-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

#define INTERFACES   "sys/class/net"
/* The kernel's part of Open vSwitch. This interface is stacked on the ports of all bridges. A bridge is not stacked on
 * its ports: a userspace process connects them. */
#define OVS_DATAPATH "ovs-system"

/* Finds whether an interface may be a bridge of Open vSwitch: it has no PCI device and no lower interface. */
static int may_be_ovs_bridge(const Critical *c, const char *link, bool *ret) {
        _cleanup_free_ char *real = NULL;
        _cleanup_names_ char **names = NULL;
        PciAddress address;
        size_t n;
        int r = critical_realpath(c, link, &real);

        *ret = false;
        if (!real || critical_last_function(real, &address))
                return r;
        r = critical_list(c, real, &names, &n);
        *ret = r >= 0;
        for (size_t i = 0; i < n; i++)
                if (strncmp(names[i], "lower_", strlen("lower_")) == 0)
                        *ret = false;
        return r;
}

int critical_mark_interface(const Critical *c, const char *name, const char *use) {
        _cleanup_free_ char *link = string_format(INTERFACES "/%s", name), *through = NULL;
        bool ovs_bridge = false;
        int r;

        /* Such names are paths, not interfaces. */
        if (strspn(name, ".") == strlen(name) || strchr(name, '/'))
                return 0;
        r = link ? critical_mark_user(c, link, use) : -ENOMEM;
        if (r < 0)
                return r;
        r = may_be_ovs_bridge(c, link, &ovs_bridge);
        if (r < 0 || !ovs_bridge)
                return r;
        r = string_replace(&through, "%s <- %s", name, use);
        return r < 0 ? r : critical_mark_user(c, INTERFACES "/" OVS_DATAPATH, through);
}

#define PEERS_MAX      1024U /* the most noted addresses: each of them is compared with each route */
#define INTERFACES_MAX 64U   /* the most interfaces through which equal routes lead to one address */

#define ROUTE_REJECT 0x0200U     /* RTF_REJECT */
#define ROUTE_LOCAL  0x80000000U /* RTF_LOCAL */

#define IPV4_LENGTH 96U /* prefix length of ::ffff:0:0, where IPv4 addresses are */
#define IPV4_PREFIX 0xffffULL

/* An IPv6 address as two numbers. An IPv4 address is mapped: ::ffff:10.1.0.5. */
typedef struct Address {
        uint64_t high, low;
} Address;

typedef char InterfaceName[IF_NAMESIZE];

typedef struct Peer {
        Address address;
        bool own;
        uint64_t scope; /* index of the interface of a link-local address; 0: none */
        char *use;
        bool has_route; /* a route leads to the address; length and metric are those of the best one */
        unsigned length;
        uint64_t metric;
        InterfaceName *interfaces; /* where the best routes lead */
        size_t n_interfaces;
} Peer;

struct Peers {
        Peer *items;
        size_t n;
};

typedef struct Route {
        Address destination;
        unsigned length; /* prefix length; that of an IPv4 route plus IPV4_LENGTH */
        uint64_t metric;
        const char *interface; /* NULL: the route rejects packets */
} Route;

Peers *critical_peers_new(void) {
        return calloc(1, sizeof(Peers));
}

Peers *critical_peers_free(Peers *peers) {
        for (size_t i = 0; peers && i < peers->n; i++) {
                free(peers->items[i].use);
                free(peers->items[i].interfaces);
        }
        if (peers)
                free(peers->items);
        free(peers);
        return NULL;
}

static bool is_ipv4(Address a) {
        return a.high == 0 && a.low >> 32 == IPV4_PREFIX;
}

static Address address_of_ipv4(uint32_t network_order) {
        return (Address) { 0, IPV4_PREFIX << 32 | be32toh(network_order) };
}

static bool addresses_equal(Address a, Address b) {
        return a.high == b.high && a.low == b.low;
}

/* Returns whether the address is in fe80::/10. Every interface has a route there. */
static bool is_link_local(Address a) {
        return a.high >> 54 == 0xfe80U >> 6;
}

static bool is_loopback_or_unspecified(Address a) {
        uint32_t ipv4 = (uint32_t) a.low;

        return is_ipv4(a) ? ipv4 == 0 || ipv4 >> 24 == 127 : a.high == 0 && a.low <= 1;
}

static bool parse_address(const char *text, Address *ret) {
        unsigned char bytes[sizeof(struct in6_addr)];
        uint32_t ipv4;

        if (inet_pton(AF_INET, text, &ipv4) == 1) {
                *ret = address_of_ipv4(ipv4);
                return true;
        }
        if (inet_pton(AF_INET6, text, bytes) != 1)
                return false;
        memcpy(&ret->high, bytes, sizeof(ret->high));
        memcpy(&ret->low, bytes + sizeof(ret->high), sizeof(ret->low));
        ret->high = be64toh(ret->high);
        ret->low = be64toh(ret->low);
        return true;
}

static void format_address(Address a, char buf[static INET6_ADDRSTRLEN]) {
        uint64_t halves[] = { htobe64(a.high), htobe64(a.low) };
        uint32_t ipv4 = htobe32((uint32_t) a.low);

        (void) inet_ntop(is_ipv4(a) ? AF_INET : AF_INET6, is_ipv4(a) ? (void *) &ipv4 : halves, buf, INET6_ADDRSTRLEN);
}

/* Cuts off brackets and port in buf. Returns the address, a part of buf. */
static char *remove_port(char *buf) {
        char *colon = strchr(buf, ':');

        if (*buf == '[') {
                buf[strcspn(buf, "]")] = '\0';
                return buf + 1;
        }
        if (colon && !strchr(colon + 1, ':'))
                *colon = '\0';
        return buf;
}

static int note_too_many(const Critical *c, const char *what) {
        if (c->inv->critical_error)
                return 0;
        return string_replace(&c->inv->critical_error, "The host uses too many %s to follow.", what);
}

static int append_peer(const Critical *c, Address address, bool own, uint64_t scope, const char *use) {
        Peers *peers = c->peers;
        char shown[INET6_ADDRSTRLEN];
        Peer *p;
        int r;

        for (size_t i = 0; i < peers->n; i++) {
                p = &peers->items[i];
                if (addresses_equal(p->address, address) && p->own == own && p->scope == scope)
                        return 0;
        }
        if (peers->n >= PEERS_MAX)
                return note_too_many(c, "network addresses");
        r = ARRAY_RESERVE(peers->items, peers->n);
        if (r < 0)
                return r;
        p = &peers->items[peers->n];
        *p = (Peer) { .address = address, .own = own, .scope = scope };
        format_address(address, shown);
        p->use = string_format("%s <- %s", shown, use);
        peers->n += !!p->use;
        return p->use ? 0 : -ENOMEM;
}

int critical_note_address(const Critical *c, const char *text, bool own, const char *use) {
        char buf[INET6_ADDRSTRLEN + IF_NAMESIZE + sizeof("[%]:65535/4294967295")], *bare, *scope;
        uint64_t index = 0;
        Address address;

        if (snprintf(buf, sizeof(buf), "%s", text) >= (int) sizeof(buf))
                return 0;
        bare = remove_port(buf);
        scope = strchr(bare, '%');
        if (scope)
                *scope++ = '\0';
        if (!parse_address(bare, &address) || is_loopback_or_unspecified(address))
                return 0;
        if (scope && parse_unsigned(scope, UINT32_MAX, &index) < 0) {
                _cleanup_free_ char *chain = string_format("%s <- %s", bare, use);

                return chain ? critical_mark_interface(c, scope, chain) : -ENOMEM;
        }
        return append_peer(c, address, own, index, use);
}

static uint64_t make_mask(unsigned length) {
        return length == 0 ? 0 : length >= 64 ? UINT64_MAX : ~(UINT64_MAX >> length);
}

static bool route_covers(const Route *route, Address a) {
        Address d = route->destination;

        /* The default route of IPv6 does not apply to IPv4. */
        if (is_ipv4(a) && route->length < IPV4_LENGTH)
                return false;
        return ((a.high ^ d.high) & make_mask(route->length)) == 0 &&
               ((a.low ^ d.low) & make_mask(route->length > 64 ? route->length - 64 : 0)) == 0;
}

static int append_interface(const Critical *c, Peer *p, const char *name) {
        int r;

        for (size_t i = 0; i < p->n_interfaces; i++)
                if (streq(p->interfaces[i], name))
                        return 0;
        if (p->n_interfaces >= INTERFACES_MAX)
                return note_too_many(c, "routes to one address");
        r = ARRAY_RESERVE(p->interfaces, p->n_interfaces);
        if (r < 0)
                return r;
        (void) snprintf(p->interfaces[p->n_interfaces++], IF_NAMESIZE, "%s", name);
        return 0;
}

/* Keeps the best routes: the longest prefix and, among these, the lowest metric. For an address of the host itself,
 * keeps all routes of the longest prefix, because the routes do not say which interface has the address. */
static int offer_route(const Critical *c, Peer *p, const Route *route) {
        bool better = !p->has_route || route->length > p->length;

        if (!better && (route->length < p->length || (!p->own && route->metric > p->metric)))
                return 0;
        if (better || (!p->own && route->metric < p->metric)) {
                p->has_route = true;
                p->length = route->length;
                p->metric = route->metric;
                p->n_interfaces = 0;
        }
        return route->interface ? append_interface(c, p, route->interface) : 0;
}

static int take_route(const Critical *c, const Route *route) {
        bool is_default = route->length == (is_ipv4(route->destination) ? IPV4_LENGTH : 0);
        int r = is_default && route->interface ? critical_mark_interface(c, route->interface, "default route") : 0;

        if (r < 0)
                return r;
        for (size_t i = 0; i < c->peers->n; i++) {
                Peer *p = &c->peers->items[i];

                /* take_interface_address() marks the interfaces of these addresses: by the scope, or by the address
                 * itself. */
                if (is_link_local(p->address) || (p->own && !is_ipv4(p->address)))
                        continue;
                if (route_covers(route, p->address))
                        r = offer_route(c, p, route);
                if (r < 0)
                        return r;
        }
        return r;
}

/* Returns the interface of a route; NULL if the route rejects packets, or the name is too long for an interface. In
 * proc/net a blackhole of IPv4 is "*"; an IPv6 route of type unreachable leads to lo. */
static const char *usable_interface(const char *name, uint64_t flags) {
        bool rejects = flags & ROUTE_REJECT || streq(name, "*") || streq(name, "lo");

        return rejects || strlen(name) >= IF_NAMESIZE ? NULL : name;
}

/* Parses a line of proc/net/route, "eth0 DESTINATION GATEWAY FLAGS REFCNT USE METRIC MASK ..." */
static int take_route4(const Critical *c, char *line) {
        uint64_t destination, flags, metric, mask;
        char *words[8] = { NULL }, *rest = line;
        Route route;

        if (!string_next_words(&rest, words, ELEMENTSOF(words)))
                return 0;
        if (parse_hex(words[1], UINT32_MAX, &destination) < 0 || parse_hex(words[3], UINT32_MAX, &flags) < 0 ||
            parse_unsigned(words[6], UINT32_MAX, &metric) < 0 || parse_hex(words[7], UINT32_MAX, &mask) < 0)
                return 0;
        /* The kernel prints an address, which is in network byte order, as an integer of the host: "0100007F" is
         * 127.0.0.1 on x86. So the parsed number is in network byte order again. */
        route = (Route) { .destination = address_of_ipv4((uint32_t) destination),
                          .length = IPV4_LENGTH + (unsigned) __builtin_popcountll(mask),
                          .metric = metric,
                          .interface = usable_interface(words[0], flags) };
        return take_route(c, &route);
}

static bool parse_digits(const char *digits, Address *ret) {
        char high[17];

        if (strlen(digits) != 32)
                return false;
        (void) snprintf(high, sizeof(high), "%.16s", digits);
        return parse_hex(high, UINT64_MAX, &ret->high) >= 0 && parse_hex(digits + 16, UINT64_MAX, &ret->low) >= 0;
}

/* Parses a line of proc/net/ipv6_route, "DESTINATION LENGTH SOURCE LENGTH NEXT-HOP METRIC REFCNT USE FLAGS eth0" */
static int take_route6(const Critical *c, char *line) {
        uint64_t length, flags, metric;
        char *words[10] = { NULL }, *rest = line;
        Route route = { 0 };

        if (!string_next_words(&rest, words, ELEMENTSOF(words)))
                return 0;
        if (!parse_digits(words[0], &route.destination) || parse_hex(words[1], 128, &length) < 0 ||
            parse_hex(words[5], UINT32_MAX, &metric) < 0 || parse_hex(words[8], UINT32_MAX, &flags) < 0)
                return 0;
        /* A local route, to an address of the host itself, leads to lo. Skip it: for a mount from that address, the
         * next best route leads to the interface that has the address. */
        if (flags & ROUTE_LOCAL)
                return 0;
        route.length = (unsigned) length;
        route.metric = metric;
        route.interface = usable_interface(words[9], flags);
        return take_route(c, &route);
}

/* Parses a line of proc/net/if_inet6, "ADDRESS INDEX LENGTH SCOPE FLAGS eth0" */
static int take_interface_address(const Critical *c, char *line) {
        char *words[6] = { NULL }, *rest = line;
        uint64_t index;
        Address address;
        int r = 0;

        if (!string_next_words(&rest, words, ELEMENTSOF(words)))
                return 0;
        if (!parse_digits(words[0], &address) || parse_hex(words[1], UINT32_MAX, &index) < 0)
                return 0;
        for (size_t i = 0; i < c->peers->n; i++) {
                const Peer *p = &c->peers->items[i];

                if (p->scope > 0 ? p->scope == index : p->own && addresses_equal(p->address, address))
                        r = critical_mark_interface(c, words[5], p->use);
                if (r < 0)
                        return r;
        }
        return r;
}

/* Marks the devices of default routes, and of the best routes to noted addresses. */
static int mark_routes(const Critical *c) {
        int r = critical_lines(c, "proc/net/route", true, take_route4);

        if (r < 0)
                return r;
        r = critical_lines(c, "proc/net/ipv6_route", true, take_route6);
        if (r < 0 || c->peers->n == 0)
                return r;
        r = critical_lines(c, "proc/net/if_inet6", true, take_interface_address);
        for (size_t i = 0; i < c->peers->n; i++) {
                const Peer *p = &c->peers->items[i];

                for (size_t j = 0; j < p->n_interfaces && r >= 0; j++)
                        r = critical_mark_interface(c, p->interfaces[j], p->use);
        }
        return r;
}

static bool is_kept(const Config *config, const char *name) {
        for (size_t i = 0; i < config->n_keep_interfaces; i++)
                if (fnmatch(config->keep_interfaces[i], name, 0) == 0)
                        return true;
        return false;
}

static int mark_kept(const Critical *c) {
        _cleanup_names_ char **names = NULL;
        size_t n;
        int r;

        if (!c->config || c->config->n_keep_interfaces == 0)
                return 0;
        r = critical_list(c, INTERFACES, &names, &n);
        for (size_t i = 0; i < n && r >= 0; i++)
                if (is_kept(c->config, names[i]))
                        r = critical_mark_interface(c, names[i], "KeepInterfaces=");
        return r;
}

int critical_mark_network(const Critical *c) {
        int r = mark_routes(c);

        return r < 0 ? r : mark_kept(c);
}
