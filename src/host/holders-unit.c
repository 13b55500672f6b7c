/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names the service, session or container of a process by its control group. */

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>

#include "holders-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

/* Digits of a container ID: in full, and as users see it. */
#define CONTAINER_ID_LENGTH 64U
#define CONTAINER_ID_SHOWN  12

/* How container engines name control groups: PREFIX, the ID and ".scope"; or the ID alone, in the top group PREFIX. */
static const struct {
        const char *prefix, *name;
} containers[] = {
        { "docker-", "docker" },      { "libpod-", "podman" },
        { "crio-", "kubernetes" },    { "cri-containerd-", "kubernetes" },
        { "docker", "docker" },       { "libpod_parent", "podman" },
        { "kubepods", "kubernetes" }, { "kubepods.slice", "kubernetes" },
};

static bool is_container_id(const char *s) {
        for (size_t i = 0; i < CONTAINER_ID_LENGTH; i++)
                if (!isxdigit((unsigned char) s[i]))
                        return false;
        return s[CONTAINER_ID_LENGTH] == '\0' || streq(s + CONTAINER_ID_LENGTH, ".scope");
}

/* first: the topmost control group; component: the group to check. */
static bool find_container(const char *first, const char *component, char *buf, size_t size) {
        for (size_t i = 0; i < ELEMENTSOF(containers); i++) {
                const char *prefix = containers[i].prefix;
                size_t n = strlen(prefix);
                bool by_prefix = strncmp(component, prefix, n) == 0 && is_container_id(component + n);

                if (!by_prefix && !(streq(first, prefix) && is_container_id(component)))
                        continue;
                (void) snprintf(buf, size, "%s container %.*s", containers[i].name, CONTAINER_ID_SHOWN,
                                by_prefix ? component + n : component);
                return true;
        }
        return false;
}

/* Whether a group has a name that systemd allows for units. Delegated groups can have any name. */
static bool is_unit(const char *component) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@";
        const char *dot = strrchr(component, '.');

        return dot && dot != component && (streq(dot, ".service") || streq(dot, ".scope")) &&
               strspn(component, allowed) == strlen(component);
}

/* A container takes precedence over its unit, and the innermost unit over outer ones. */
static void name_group(char *path, char *buf, size_t size) {
        const char *first = NULL, *unit = NULL, *user = NULL;
        char *component;

        while ((component = strsep(&path, "/"))) {
                if (!*component)
                        continue;
                first = first ?: component;
                if (find_container(first, component, buf, size))
                        return;
                if (!is_unit(component))
                        continue;
                user = unit && strncmp(unit, "user@", strlen("user@")) == 0 ? unit : user;
                unit = component;
        }
        if (unit)
                (void) snprintf(buf, size, "%s%s%s", unit, user ? " of " : "", user ? user : "");
}

/* The line "0::/system.slice/x.service" counts, or with cgroup v1 the line "1:name=systemd:/system.slice/x.service". */
void holder_unit(const char *cgroups, char *buf, size_t size) {
        _cleanup_free_ char *copy = strdup(cgroups);
        char *line, *rest = copy;

        buf[0] = '\0';
        while ((line = strsep(&rest, "\n")) && !buf[0]) {
                char *path = strchr(line, ':');

                path = path ? strchr(path + 1, ':') : NULL;
                if (path && (strncmp(line, "0::", 3) == 0 || strstr(line, ":name=systemd:")))
                        name_group(path + 1, buf, size);
        }
}

void holder_unit_of_process(int pid, char *buf, size_t size) {
        _cleanup_free_ char *text = NULL;
        char path[64];

        buf[0] = '\0';
        (void) snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
        if (read_file_at(AT_FDCWD, path, CGROUPS_MAX, &text, NULL) >= 0)
                holder_unit(text, buf, size);
}
