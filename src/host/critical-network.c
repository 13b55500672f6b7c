/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Marks the devices of network interfaces: those of routes, and those that KeepInterfaces= names. */

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>

#include "critical-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

#define INTERFACES   "sys/class/net"
/* The kernel datapath of Open vSwitch. The ports are stacked on it, but the bridges that userspace creates are not. */
#define OVS_DATAPATH "ovs-system"

/* Whether an interface may be a bridge of Open vSwitch: it is not a PCI device and has no lower interface. */
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

        /* No directory of its own: "", ".", ".." and paths. */
        if (strspn(name, ".") == strlen(name) || strchr(name, '/'))
                return 0;
        r = link ? critical_mark_user(c, link, use) : -ENOMEM;
        if (r >= 0)
                r = may_be_ovs_bridge(c, link, &ovs_bridge);
        if (r < 0 || !ovs_bridge)
                return r;
        r = string_replace(&through, "%s <- %s", name, use);
        return r < 0 ? r : critical_mark_user(c, INTERFACES "/" OVS_DATAPATH, through);
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
        int r = critical_mark_routes(c);

        return r < 0 ? r : mark_kept(c);
}
