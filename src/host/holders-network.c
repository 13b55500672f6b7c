/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds network interfaces of a device that the host uses. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "holders-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

#define ENTRIES_MAX     65536U
#define IFF_UP_BIT      0x1U
#define IPV6_SCOPE_LINK "20"
#define UPPER_PREFIX    "upper_"

int holder_found(Holder *ret, const char *remedy, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(ret->text, sizeof(ret->text), format, ap);
        va_end(ap);
        (void) snprintf(ret->remedy, sizeof(ret->remedy), "%s", remedy);
        return 1;
}

/* Whether word number at of a line is the interface. With a scope (not 0), word number scope must also not be the scope
 * of link-local addresses. */
static bool line_matches(char *line, const char *interface, size_t at, size_t scope) {
        char *words[8] = { NULL }, *rest = line;

        return string_next_words(&rest, words, MAX(at, scope) + 1) && streq(words[at], interface) &&
               (scope == 0 || !streq(words[scope], IPV6_SCOPE_LINK));
}

/* A file of proc/net with one route or address a line. at, scope: the word numbers for line_matches(). */
typedef struct AddressFile {
        const char *path;
        size_t at, scope;
        const char *interface;
} AddressFile;

static int take_address(char *line, void *userdata) {
        const AddressFile *file = userdata;

        return line_matches(line, file->interface, file->at, file->scope);
}

static bool has_address(const Sysfs *fs, const char *interface) {
        AddressFile files[] = { { "proc/net/route", 0, 0, interface }, { "proc/net/if_inet6", 5, 3, interface } };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                int fd = sysfs_open(fs, files[i].path, O_RDONLY | O_NOCTTY | O_NONBLOCK);

                if (fd >= 0 && read_lines_fd(fd, take_address, &files[i]) > 0)
                        return true;
        }
        return false;
}

static bool is_up(const Sysfs *fs, int net_fd, const char *interface) {
        char path[NAME_MAX + 16], text[64];
        uint64_t flags;

        (void) snprintf(path, sizeof(path), "%s/flags", interface);
        return sysfs_read_at(fs, net_fd, path, text, sizeof(text)) >= 0 && parse_hex(text, UINT32_MAX, &flags) == 0 &&
               (flags & IFF_UP_BIT);
}

/* Returns 1 and the first interface that is stacked on this one: a VLAN, macvlan or bridge; 0 when there is none, or a
 * negative errno. */
static int find_upper(int net_fd, const char *interface, char *buf, size_t size) {
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = list_dir_at(net_fd, interface, ENTRIES_MAX, &names, &n);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        for (size_t i = 0; r == 0 && i < n; i++)
                if (strncmp(names[i], UPPER_PREFIX, strlen(UPPER_PREFIX)) == 0) {
                        (void) snprintf(buf, size, "%s", names[i] + strlen(UPPER_PREFIX));
                        r = 1;
                }
        return r;
}

static int visit_interface(const Sysfs *fs, bool is_vf, int net_fd, const char *name, Holder *ret) {
        char path[NAME_MAX + 16], other[NAME_MAX + 1], remedy[HOLDER_TEXT_MAX];
        int r;

        (void) snprintf(path, sizeof(path), "%s/master", name);
        if (sysfs_link_name_at(net_fd, path, other, sizeof(other)) >= 0) {
                (void) snprintf(remedy, sizeof(remedy), "Detach the interface first: ip link set %s nomaster.",
                                QUOTABLE(name));
                return holder_found(ret, remedy, "the host: its interface %s is a port of %s", QUOTABLE(name),
                                    QUOTABLE(other));
        }
        r = find_upper(net_fd, name, other, sizeof(other));
        if (r < 0)
                return r;
        if (r > 0) {
                (void) snprintf(remedy, sizeof(remedy), "Remove the upper interface first: ip link delete %s.",
                                QUOTABLE(other));
                return holder_found(ret, remedy, "the host: interface %s is stacked on its interface %s",
                                    QUOTABLE(other), QUOTABLE(name));
        }
        if (!is_up(fs, net_fd, name) || (is_vf && !has_address(fs, name)))
                return 0;
        (void) snprintf(remedy, sizeof(remedy), "Take the interface down first: ip link set %s down.", QUOTABLE(name));
        return holder_found(ret, remedy, "the host: its interface %s is up", QUOTABLE(name));
}

int holder_interfaces_find(const Sysfs *fs, bool is_vf, int net_fd, char **names, size_t n, Holder *ret) {
        int r = 0;

        /* The directory net exists but has no entry when the interface is in another network namespace. */
        if (n == 0)
                return holder_found(ret, "Stop the container that has the interface.",
                                    "the host: its interface is in another network namespace");
        for (size_t i = 0; r == 0 && i < n; i++)
                r = visit_interface(fs, is_vf, net_fd, names[i], ret);
        return r;
}
