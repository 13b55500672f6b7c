/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "agent/settings.h"
#include "util/log.h"
#include "util/strings.h"

#define SECRET_NAME "passthrough-placement.secret"

static const AgentKey keys[] = {
        { "Placement", "Url", agent_parse_text, offsetof(Settings, url) },
        { "Placement", "Token", agent_parse_text, offsetof(Settings, token) },
        { "Placement", "CaFile", agent_parse_text, offsetof(Settings, ca_file) },
        { "Placement", "Host", agent_parse_text, offsetof(Settings, host) },
        { "Placement", "AddRoot", agent_parse_boolean, offsetof(Settings, add_root), "yes" },
        { "Placement", "Project", agent_parse_text, offsetof(Settings, project), "passthroughd" },
        { "Placement", "User", agent_parse_text, offsetof(Settings, user), "passthroughd" },
        { "Keystone", "Url", agent_parse_text, offsetof(Settings, keystone_url) },
        { "Keystone", "Credential", agent_parse_text, offsetof(Settings, credential) },
        { "Keystone", "SecretFile", agent_parse_text, offsetof(Settings, secret_file) },
        { "Keystone", "Region", agent_parse_text, offsetof(Settings, region) },
        { "Keystone", "Interface", agent_parse_text, offsetof(Settings, interface), "internal" },
};

void settings_done(Settings *s) {
        agent_free_settings(keys, ELEMENTSOF(keys), s);
        free(TAKE_PTR(s->secret));
}

static int read_secret(const char *file, Settings *s) {
        const char *directory = getenv("CREDENTIALS_DIRECTORY");
        char path[PATH_MAX];
        int r;

        if (s->secret_file)
                (void) snprintf(path, sizeof(path), "%s", s->secret_file);
        else if (directory)
                (void) snprintf(path, sizeof(path), "%s/" SECRET_NAME, directory);
        else
                return log_error("%s: [Keystone] needs SecretFile=, because this is no service of systemd.", file),
                       -EINVAL;
        r = agent_read_secret(path, &s->secret);
        return r < 0 ? log_error_errno(r, "Failed to read the secret of the application credential, %s: %m", path) : 0;
}

static int complete(const char *path, Settings *s) {
        char host[HOST_NAME_MAX + 1] = "";

        if (gethostname(host, sizeof(host) - 1) < 0)
                return log_error_errno(-errno, "Failed to read the name of the host: %m");
        if (!s->host && string_copy(&s->host, host) < 0)
                return log_error_errno(-ENOMEM, "Failed to complete the settings: %m");
        if (!s->url && !s->keystone_url)
                return log_error("%s: Neither [Placement] Url= nor [Keystone] Url= is set.", path), -EINVAL;
        if (s->keystone_url && !s->credential)
                return log_error("%s: [Keystone] needs Credential=.", path), -EINVAL;
        return s->keystone_url ? read_secret(path, s) : 0;
}

int settings_read(const char *path, Settings *ret) {
        int r;

        *ret = (Settings) { 0 };
        r = agent_read_settings(path, keys, ELEMENTSOF(keys), ret);
        if (r >= 0)
                r = complete(path, ret);
        if (r < 0)
                settings_done(ret);
        return r;
}
