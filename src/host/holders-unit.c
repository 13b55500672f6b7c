/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose a process is, by its control group: a service, a session or a container. */

#include <ctype.h>
#include <stdio.h>

#include "holders-internal.h"
#include "util/strings.h"

/* The full id of a container; twelve digits of it are what people see. */
#define CONTAINER_ID_LENGTH 64U
#define CONTAINER_ID_SHOWN  12

/* How those who make containers call their groups: PREFIX, the id, and ".scope"; or a directory of that name with the
 * id in it. */
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

/* component: one below first, the topmost group. */
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

/* Groups below one may be called anything by whoever was given it: only what systemd would take is a unit. */
static bool is_unit(const char *component) {
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@";
        const char *dot = strrchr(component, '.');

        return dot && dot != component && (streq(dot, ".service") || streq(dot, ".scope")) &&
               strspn(component, allowed) == strlen(component);
}

/* A container says more than the unit it runs in, and the innermost unit more than those around it. */
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

/* "0::/system.slice/x.service", or on older systems "1:name=systemd:/system.slice/x.service" among others. */
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
