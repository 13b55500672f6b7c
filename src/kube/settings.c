/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>

#include "agent/settings.h"
#include "messages.h"
#include "util/log.h"

/* The name of a slice is that of the node and a suffix: 253 bytes together. */
#define NODE_MAX 220U

static const AgentKey keys[] = {
        { "Kubernetes", "Kubeconfig", agent_parse_text, offsetof(Settings, kubeconfig) },
        { "Kubernetes", "Node", agent_parse_text, offsetof(Settings, node) },
        { "Kubernetes", "KubeletDirectory", agent_parse_text, offsetof(Settings, kubelet) },
        { "Kubernetes", "CdiDirectory", agent_parse_text, offsetof(Settings, cdi) },
};

void dra_settings_done(Settings *s) {
        agent_free_settings(keys, ELEMENTSOF(keys), s);
}

static int set_default(char **target, const char *value) {
        return *target ? 0 : string_copy(target, value);
}

/* The kubelet takes the name of the host in lower case. */
static int set_node(Settings *s) {
        char name[HOST_NAME_MAX + 1] = "";

        if (s->node)
                return 0;
        if (gethostname(name, sizeof(name) - 1) < 0)
                return -errno;
        for (char *c = name; *c; c++)
                *c = (char) tolower((unsigned char) *c);
        return string_copy(&s->node, name);
}

int dra_settings_read(const char *path, Settings *ret) {
        Settings s = { 0 };
        int r = access(path, F_OK) < 0 && errno == ENOENT ? 0 : agent_read_settings(path, keys, ELEMENTSOF(keys), &s);

        if (r >= 0)
                r = set_default(&s.kubeconfig, "/etc/kubernetes/kubelet.conf");
        if (r >= 0)
                r = set_default(&s.kubelet, "/var/lib/kubelet");
        if (r >= 0)
                r = set_default(&s.cdi, "/var/run/cdi");
        if (r >= 0)
                r = set_node(&s);
        if (r >= 0 && (!name_is_valid(s.node) || strlen(s.node) > NODE_MAX))
                r = log_error_errno(-EINVAL, "%s: '%s' is no name of a node.", path, QUOTABLE(s.node));
        if (r < 0) {
                dra_settings_done(&s);
                return r;
        }
        *ret = s;
        return 0;
}
